"""Decision logs of `gfucb.Agent` as logs for off-policy estimates."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from gfucb.core.action_probabilities import certain_distribution
from gfucb.core.errors import GFUCBWarning, InvalidInputError
from gfucb.core.log_protocol import DecisionStore
from gfucb.core.log_records import LoggedDecision, LoggedRow, RowStatus
from gfucb.core.validation.settings import validate_offset
from gfucb.evaluation.logged_decisions import LoggedDecisions
from gfucb.evaluation.table_logs import NamedLog
from gfucb.serving import Agent
from gfucb.serving.names import decode_name, encode_name
from gfucb.serving.roster import KINDS, Roster
from gfucb.tables import Schema
from gfucb.tables.action_kinds import NamedActions


def log_of_decisions(
    store: DecisionStore, *, missing_reward: float | None = None, schema: Schema | None = None
) -> NamedLog:
    """Read the decisions of a `gfucb.DecisionLog` that have rewards, in their order.

    Tasks have the numbers of `Agent.model`, so this model can be evaluated as a policy. Actions
    that were decided without names, `agent.decide(offers.candidates)`, have those of the schema.

    Decisions that were never shown are left out. Rows that are still open are left out, too, and
    those whose time limit has passed without a reward, unless they get `missing_reward`; a
    warning says how many. Estimates without them are biased if their rewards would differ.

    Args:
        store: a decision log.
        missing_reward: the reward of rows whose time limit has passed; often 0.
        schema: that of the candidates; by default the one in the log, if tables were used.
    """
    if not isinstance(store, DecisionStore):
        cure = "; pass the log of the agent, agent.log" if isinstance(store, Agent) else ""
        raise InvalidInputError(f"store must be a DecisionLog, got {type(store).__name__}{cure}")
    if missing_reward is not None:
        missing_reward = validate_offset(missing_reward, "missing_reward")
    parts, counts = [], dict.fromkeys(RowStatus, 0)
    for number in range(1, store.last_decision() + 1):
        decision = store.decision(number)
        states = store.row_states(number)
        for status, _ in states:
            counts[status] += 1
        rewards = {
            row: missing_reward if status == RowStatus.EXPIRED else reward
            for row, (status, reward) in enumerate(states)
        }
        known = {row: reward for row, reward in rewards.items() if reward is not None}
        if decision is not None and known:
            parts.append(_Part(decision, list(known), list(known.values())))
    if not parts:
        raise InvalidInputError(f"{store.name} has no decision with a reward")
    num_open = counts[RowStatus.OPEN]
    num_expired = counts[RowStatus.EXPIRED] if missing_reward is None else 0
    if num_open or num_expired:
        warnings.warn(
            f"{num_open} rows without a reward yet and {num_expired} rows whose reward never came "
            "are left out; the estimate is biased if their rewards would differ from the others. "
            "missing_reward gives a reward to those that never came",
            GFUCBWarning,
            stacklevel=2,
        )
    roster = Roster()
    for event in store.events(0, KINDS):
        roster.apply(event)
    if schema is None and roster.schema is not None:
        schema = Schema.from_json(roster.schema)
    return _combined(parts, roster, _action_labels(schema))


@dataclass(frozen=True, eq=False)
class _Part:
    """The rows of one decision that have rewards."""

    decision: LoggedDecision
    rows: list[int]
    rewards: list[float]

    @property
    def chosen(self) -> list[LoggedRow]:
        """What was chosen in these rows."""
        return [self.decision.rows[row] for row in self.rows]

    @property
    def distribution(self) -> Tensor | None:
        """Probabilities of all actions, [row, action]; None if they are unknown."""
        if self.decision.action_probabilities is not None:
            return self.decision.action_probabilities[self.rows]
        if any(row.probability < 1 for row in self.chosen):
            return None
        actions = torch.tensor([row.action for row in self.chosen])
        return certain_distribution(actions, self.decision.mask.shape[1])


def _action_labels(schema: Schema | None) -> tuple[str, ...]:
    """The encoded names of the one-hot actions of a schema; empty if it has other ones."""
    if schema is None or not isinstance(schema.actions, NamedActions):
        return ()
    return tuple(encode_name(label, "action") for label in schema.actions.labels.names)


def _combined(parts: Sequence[_Part], roster: Roster, labels: tuple[str, ...]) -> NamedLog:
    """The rows of all decisions, with the actions of one name in one column."""
    _require_same_inputs(parts)
    all_tasks = [row.task for part in parts for row in part.chosen]
    roster.numbers.add(all_tasks)  # rows whose reward never came may be of tasks without data
    texts = roster.task_texts()
    task_names = [decode_name(texts[task]) for task in roster.numbers.tasks()]
    names, columns = _columns(parts, labels)
    width = 1 + max(max(own) for own in columns)
    candidates, available, distributions = [], [], []
    for part, own in zip(parts, columns, strict=True):
        candidates.append(_spread(part.decision.candidates[part.rows], own, width))
        available.append(_spread(part.decision.mask[part.rows], own, width))
        if (probabilities := part.distribution) is not None:
            distributions.append(_spread(probabilities, own, width))
    log = LoggedDecisions(
        [own[row.action] for part, own in zip(parts, columns, strict=True) for row in part.chosen],
        [row.probability for part in parts for row in part.chosen],
        [reward for part in parts for reward in part.rewards],
        torch.cat(candidates),
        roster.numbers.of(all_tasks),
        torch.cat(available),
        torch.cat(distributions) if len(distributions) == len(parts) else None,
        num_tasks=len(task_names),
    )
    return NamedLog(log, names, tuple(task_names))


def _require_same_inputs(parts: Sequence[_Part]) -> None:
    first = parts[0].decision.candidates
    for part in parts:
        other = part.decision.candidates
        if other.shape[2:] != first.shape[2:] or other.dtype != first.dtype:
            raise InvalidInputError(
                f"the decisions have inputs of different kinds: {list(first.shape[2:])} of "
                f"{first.dtype} in the first, {list(other.shape[2:])} of {other.dtype} in decision "
                f"{part.decision.number}"
            )


def _spread(values: Tensor, columns: list[int], width: int) -> Tensor:
    """Move actions to their columns, with zeros elsewhere: [row, action, ...], axis 1 by name."""
    spread = values.new_zeros(len(values), width, *values.shape[2:])
    spread[:, columns] = values
    return spread


def _columns(
    parts: Sequence[_Part], labels: tuple[str, ...]
) -> tuple[tuple[Any, ...], list[list[int]]]:
    """Names of actions, and for each decision the column of each of its actions.

    One-hot actions without names have the `labels`. If some decision has no names after that, an
    action has the column of its position.
    """
    given = [_names(part, labels) for part in parts]
    if any(names is None for names in given):
        return (), [list(range(part.decision.mask.shape[1])) for part in parts]
    numbers: dict[str, int] = {}
    for names in given:
        for name in names or ():
            numbers.setdefault(name, len(numbers))
    columns = [[numbers[name] for name in names or ()] for names in given]
    return tuple(decode_name(text) for text in numbers), columns


def _names(part: _Part, labels: tuple[str, ...]) -> tuple[str, ...] | None:
    """The names of the actions of a decision; `labels` if its inputs end in the one-hot action."""
    candidates, count = part.decision.candidates, len(labels)
    if part.decision.action_names is not None or not labels:
        return part.decision.action_names
    if candidates.ndim != 3 or candidates.shape[1] != count or candidates.shape[2] < count:
        return None
    one_hot = torch.eye(count, dtype=candidates.dtype)
    return labels if (candidates[:, :, -count:] == one_hot).all() else None
