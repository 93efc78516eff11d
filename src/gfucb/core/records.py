"""The records that cross rooms: decisions, action sets, bounds, choices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from gfucb.core.errors import InvalidInputError
from gfucb.core.features import Representation, features_of
from gfucb.core.linalg import first_best

if TYPE_CHECKING:
    from gfucb.models import MultiheadFunction

Row = Mapping[str, float | int | str]


@dataclass(frozen=True, eq=False)
class Decision:
    """What an agent chose, with all it needs to learn from the reward later.

    `decision[entries]` is the decision on some of its entries: a number, a list, a slice or a
    mask. Rewards are learned as (task, input, reward), so entries may be rewarded in any
    order, late, or never.
    """

    tasks: Tensor  # [row]
    actions: Tensor  # [row]
    inputs: Tensor  # [row, *input]
    optimistic_values: (
        Tensor  # [row]; what the agent bonuses for; its estimate if it has no bonus_scale
    )
    prediction: Prediction | None = None  # what the reward will be held against, if anything

    def __len__(self) -> int:
        return len(self.tasks)

    def __getitem__(self, entries: int | list[int] | slice | Tensor) -> Decision:
        index = torch.arange(len(self))[entries].reshape(-1)
        return Decision(
            self.tasks[index],
            self.actions[index],
            self.inputs[index],
            self.optimistic_values[index],
            self.prediction and self.prediction[index],
        )


@dataclass(frozen=True, eq=False)
class Prediction:
    """What an agent expected of rewards when it decided: a later reward is a fair test of it.

    Attributes:
        mean: values of the fit at the chosen actions, [row].
        variance: how far members of the confidence set of squared radius 1 lie from the
            fit there, squared, [row].
    """

    mean: Tensor
    variance: Tensor

    def __getitem__(self, rows: Tensor) -> Prediction:
        return Prediction(self.mean[rows], self.variance[rows])


@dataclass(frozen=True, eq=False)
class ActionSets:
    """What a round offers: for each entry a task and the actions it may take.

    Where all entries choose among the same items, `candidates` is a view that repeats one
    catalogue [action, *input] without copying it (`Tensor.expand`). Each item is then held and
    represented once, whatever the number of entries.
    """

    candidates: Tensor  # [row, action, *input]
    tasks: Tensor  # [row]
    available: Tensor  # [row, action], bool; at least one True in each entry

    @property
    def is_shared(self) -> bool:
        """Whether the candidates of all entries are the same memory."""
        return is_repeated(self.candidates)

    @property
    def items(self) -> Tensor:
        """The inputs there are to represent, a shared one once: [item, *input]."""
        return self.candidates[0] if self.is_shared else self.candidates.flatten(0, 1)

    def by_candidate(self, rows: Tensor) -> Tensor:
        """Rows of items as rows of candidates: [item, ...] -> [row, action, ...]."""
        if self.is_shared:
            return rows.expand(len(self.tasks), *rows.shape)
        return rows.unflatten(0, self.available.shape)

    def features(self, representation: Representation) -> Tensor:
        """Phi of every candidate: [row, action, feature]."""
        return self.by_candidate(features_of(representation, self.items))

    def features_of_chosen(self, representation: Representation, actions: Tensor) -> Tensor:
        """Phi of the chosen candidates: actions [row] -> [row, feature]."""
        if self.is_shared:
            return self.features(representation)[torch.arange(len(actions)), actions]
        return features_of(representation, self.inputs_of(actions))

    def values_of(self, function: MultiheadFunction) -> Tensor:
        """Values of every candidate, not clipped: [row, action]."""
        features = self.features(function.representation)
        return function.values_of_features(features, self.tasks[:, None])

    def inputs_of(self, actions: Tensor) -> Tensor:
        """The chosen candidates: actions [row] -> [row, *input]."""
        return self.candidates[torch.arange(len(actions)), actions]

    def best_actions(self, values: Tensor) -> Tensor:
        """The best available action, the first of equals: [row, action] -> [row]."""
        return first_best(values.masked_fill(~self.available, -torch.inf))

    def decision(
        self, actions: Tensor, values: Tensor, prediction: Prediction | None = None
    ) -> Decision:
        """The decision to take `actions`, hoping for `values`; both [row]."""
        return Decision(self.tasks, actions, self.inputs_of(actions), values, prediction)

    def restricted_to(self, actions: Tensor) -> ActionSets:
        """The action_sets that leaves every entry only the action given: [row]."""
        only = torch.zeros_like(self.available).scatter(1, actions[:, None], True)
        return ActionSets(self.candidates, self.tasks, only)


def is_repeated(rows: Tensor) -> bool:
    """Whether the first axis, of at least two, repeats one row that is held once."""
    return len(rows) > 1 and rows.stride(0) == 0


@dataclass(frozen=True, eq=False)
class Selection:
    """The solution of line 4 of Algorithm 1: a optimistic function and the actions it likes best.

    Attributes:
        function: the optimistic f. Where each entry bonuses alone no one function has all the
            values; the center stands here then.
        actions: [row].
        values: f at the chosen actions, not clipped, [row].
        squared_distance: how far f is from the center; above the squared radius it has left
            the set by `violation`.
        is_exact: whether no other member and actions can have a larger sum of values.
        prediction: estimates and unit widths at the chosen actions, from solvers whose widths are
            not those of the heads of the fit.
        representation_widths: the part of the squared widths that is due to the representation
            and not to a task's head, [row]; None for solvers that see heads only.
    """

    function: MultiheadFunction
    actions: Tensor
    values: Tensor
    squared_distance: float
    squared_radius: float
    is_exact: bool = False
    prediction: Prediction | None = None
    representation_widths: Tensor | None = None

    def __post_init__(self) -> None:
        require_finite_values(self.values)

    @property
    def violation(self) -> float:
        """By how much the constraint is broken, relative to the squared radius."""
        excess = max(0.0, self.squared_distance - self.squared_radius)
        return excess / self.squared_radius if self.squared_radius > 0 else excess


def require_finite_values(values: Tensor) -> None:
    """Refuse predicted or optimistic values that are NaN or infinite."""
    if not bool(values.isfinite().all()):
        raise InvalidInputError(
            "the values of the chosen actions are not finite; "
            "rewards or inputs are too large, or the fit has diverged"
        )


@dataclass(frozen=True, eq=False)
class BanditRound:
    """One round of an environment. Agents see `candidates`; the rest is for the evaluation.

    The noise is drawn before any action is known, so agents on one seed are paired.
    """

    candidates: Tensor  # [task, action, *input]
    mean_rewards: Tensor  # [task, action]
    noise: Tensor  # [task]
    true_features: Tensor  # [task, action, true feature]; for oracles only

    def rewards(self, actions: Tensor) -> Tensor:
        """Rewards of actions [task] -> [task]."""
        return self._means_of(actions) + self.noise

    def regrets(self, actions: Tensor) -> Tensor:
        """Expected loss against the best action, exact: [task] -> [task]."""
        return self.mean_rewards.max(dim=1).values - self._means_of(actions)

    def _means_of(self, actions: Tensor) -> Tensor:
        # Agent and environment may be on different devices.
        taken = actions.to(self.mean_rewards.device)
        return self.mean_rewards.gather(1, taken[:, None]).squeeze(1)


@dataclass(frozen=True, eq=False)
class Outcome:
    """What followed the actions of one stage: rewards, and what each row may do next."""

    rewards: Tensor  # [row]
    next_candidates: Tensor  # [row, action, *input]
    ended: Tensor  # [row], bool: no value follows, `next_candidates` says nothing there
