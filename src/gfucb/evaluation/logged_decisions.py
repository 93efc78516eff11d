"""Logged decisions: what was offered, chosen with which probability, and rewarded."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from gfucb.core.errors import InvalidInputError
from gfucb.core.row_selection import selected_rows
from gfucb.core.validation.arrays import ArrayLike, to_tensor
from gfucb.core.validation.bandits import validate_action_sets
from gfucb.core.validation.distributions import ROUNDING, validate_distribution
from gfucb.core.validation.settings import LARGEST_REWARD, validate_count

# Squares of weights and rewards are summed, so weights have a limit.
SMALLEST_PROBABILITY = 1e-50


class LoggedDecisions:
    """A log for off-policy estimates: one row for each decision, in the order they were made.

    The estimates need actions that were drawn at random with known probabilities; a log of a
    deterministic agent is not enough. All arguments are copied and checked, and the log does not
    change afterwards. `log[rows]` is the log of some of its rows.

    >>> log = LoggedDecisions(actions=[0, 1, 1], probabilities=[0.5, 0.5, 0.25], rewards=[1, 0, 1])
    >>> log
    LoggedDecisions(3 rows, 2 actions, 1 task)

    Args:
        actions: numbers of the chosen actions, [row].
        probabilities: with which the chosen actions were drawn, [row]; above 0, at most 1.
        rewards: [row].
        candidates: the inputs of all actions, [row, action, *input], for agents and the direct
            method; by default one-hot actions without a context.
        tasks: [row]; by default all rows belong to task 0.
        available: which actions could be chosen, [row, action] of booleans; by default all.
        action_probabilities: with which each action would have been drawn, [row, action]; None if
            unknown. The confidence sequence of the doubly robust estimate needs them.
        num_actions: by default that of the arrays above, or the largest chosen action plus 1.
        num_tasks: by default the largest task plus 1.
    """

    def __init__(
        self,
        actions: ArrayLike,
        probabilities: ArrayLike,
        rewards: ArrayLike,
        candidates: ArrayLike | None = None,
        tasks: ArrayLike | None = None,
        available: ArrayLike | None = None,
        action_probabilities: ArrayLike | None = None,
        *,
        num_actions: int | None = None,
        num_tasks: int | None = None,
    ) -> None:
        self.actions = _validate_actions(actions)
        rows = len(self.actions)
        self.probabilities = _validate_probabilities(probabilities, rows)
        self.rewards = _validate_log_rewards(rewards, rows)
        columns = {
            "candidates": candidates,
            "available": available,
            "action_probabilities": action_probabilities,
        }
        sizes = {name: _num_columns(x, rows, name) for name, x in columns.items() if x is not None}
        self.num_actions = _validate_num_actions(num_actions, sizes, self.actions)
        given_tasks = torch.zeros(rows, dtype=torch.int64) if tasks is None else tasks
        self.num_tasks = _num_tasks(given_tasks) if num_tasks is None else num_tasks
        self.has_candidates = candidates is not None
        arms = torch.eye(self.num_actions, dtype=torch.float64).expand(rows, -1, -1)
        action_sets = validate_action_sets(
            arms if candidates is None else candidates,
            given_tasks,
            available,
            num_tasks=validate_count(self.num_tasks, "num_tasks"),
            device="cpu",
        )
        self.candidates = action_sets.candidates
        self.tasks = action_sets.tasks
        self.available = action_sets.available
        self._require_available_actions()
        self.action_probabilities: Tensor | None = None
        if action_probabilities is not None:
            self.action_probabilities = self._validate_own_distribution(action_probabilities)

    def __len__(self) -> int:
        return len(self.actions)

    def __repr__(self) -> str:
        sizes = {"row": len(self), "action": self.num_actions, "task": self.num_tasks}
        shown = [f"{size} {name}{'' if size == 1 else 's'}" for name, size in sizes.items()]
        return f"LoggedDecisions({', '.join(shown)})"

    def __getitem__(self, rows: int | list[int] | slice | Tensor) -> LoggedDecisions:
        index = selected_rows(rows, len(self))
        distribution = self.action_probabilities
        return LoggedDecisions(
            self.actions[index],
            self.probabilities[index],
            self.rewards[index],
            self.candidates[index] if self.has_candidates else None,
            self.tasks[index],
            self.available[index],
            None if distribution is None else distribution[index],
            num_actions=self.num_actions,
            num_tasks=self.num_tasks,
        )

    @property
    def chosen_inputs(self) -> Tensor:
        """The inputs of the chosen actions, [row, *input]."""
        return self.candidates[torch.arange(len(self)), self.actions]

    def of_chosen(self, values: Tensor) -> Tensor:
        """Values of the chosen actions: [row, action] -> [row]."""
        return values.gather(1, self.actions[:, None]).squeeze(1)

    def _validate_own_distribution(self, values: Any) -> Tensor:
        name = "action_probabilities"
        given = validate_distribution(values, self.available, name)
        chosen = self.of_chosen(given)
        differs = (chosen - self.probabilities).abs() > ROUNDING * self.num_actions
        if bool(differs.any()):
            row = int(differs.nonzero()[0])
            raise InvalidInputError(
                f"{name} and probabilities must agree, but in row {row} the chosen action "
                f"{int(self.actions[row])} has {float(chosen[row]):g} in {name} and "
                f"{float(self.probabilities[row]):g} in probabilities"
            )
        return given.scatter(1, self.actions[:, None], self.probabilities[:, None])

    def _require_available_actions(self) -> None:
        is_offered = self.of_chosen(self.available)
        if not bool(is_offered.all()):
            row = int((~is_offered).nonzero()[0])
            raise InvalidInputError(
                f"in row {row} action {int(self.actions[row])} was chosen, but it is not available"
            )


def _validate_actions(values: Any) -> Tensor:
    given = to_tensor(values, "actions").cpu()
    if given.ndim != 1:
        raise InvalidInputError(f"actions must have the shape [row], got {list(given.shape)}")
    if len(given) == 0:
        raise InvalidInputError("the log has no rows; an estimate needs at least one")
    if given.is_floating_point() or given.is_complex() or given.dtype == torch.bool:
        raise InvalidInputError(
            f"actions must be integers, numbers of actions from 0, got {given.dtype}"
        )
    given = given.to(torch.int64)
    if int(given.min()) < 0:
        row = int(given.argmin())
        raise InvalidInputError(f"actions are numbered from 0, got {int(given[row])} in row {row}")
    return given


def _validate_column(values: Any, rows: int, name: str) -> Tensor:
    given = to_tensor(values, name).cpu()
    if given.is_complex() or tuple(given.shape) != (rows,):
        raise InvalidInputError(
            f"{name} must be one number for each of the {rows} rows, got {given.dtype} of shape "
            f"{list(given.shape)}"
        )
    return given.to(torch.float64)


def _validate_probabilities(values: Any, rows: int) -> Tensor:
    given = _validate_column(values, rows, "probabilities")
    is_valid = (given >= SMALLEST_PROBABILITY) & (given <= 1 + ROUNDING)
    if bool(is_valid.all()):
        return given.clamp_max(1.0)
    row = int((~is_valid).nonzero()[0])
    found = float(given[row])
    reason = (
        "it is missing, and only rows with a known probability can be used"
        if np.isnan(found)
        else "log the probability with which the chosen action was drawn"
    )
    raise InvalidInputError(
        f"probabilities must be above 0 and at most 1, got {found:g} in row {row}: {reason}"
    )


def _validate_log_rewards(values: Any, rows: int) -> Tensor:
    given = _validate_column(values, rows, "rewards")
    is_valid = given.abs() <= LARGEST_REWARD
    if bool(is_valid.all()):
        return given
    row = int((~is_valid).nonzero()[0])
    raise InvalidInputError(
        f"rewards must be finite and at most {LARGEST_REWARD:g} in magnitude, got "
        f"{float(given[row]):g} in row {row}; a reward that never came has a default, often 0, "
        "because an estimate without such rows is biased"
    )


def _num_columns(values: Any, rows: int, name: str) -> int:
    shape = values.shape if isinstance(values, Tensor) else np.shape(values)
    if len(shape) < 2 or shape[0] != rows:
        raise InvalidInputError(
            f"{name} must have the shape [row, action{', *input' * (name == 'candidates')}] with "
            f"{rows} rows, got {list(shape)}"
        )
    return int(shape[1])


def _validate_num_actions(stated: Any, sizes: dict[str, int], actions: Tensor) -> int:
    if stated is not None:
        sizes = {"num_actions": validate_count(stated, "num_actions")} | sizes
    source, number = next(iter(sizes.items()), ("actions", int(actions.max()) + 1))
    for name, other in sizes.items():
        if other != number:
            raise InvalidInputError(f"{source} states {number} actions, but {name} has {other}")
    if int(actions.max()) >= number:
        row = int(actions.argmax())
        raise InvalidInputError(
            f"actions are numbered 0 to {number - 1}, got action {int(actions[row])} in row {row}"
        )
    return number


def _num_tasks(tasks: Any) -> int:
    given = to_tensor(tasks, "tasks")
    is_integer = not (given.is_floating_point() or given.is_complex())
    # Other types are refused with the number of rows, later.
    return max(int(given.max()) + 1, 1) if is_integer and given.numel() else 1
