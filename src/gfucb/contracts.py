"""Every extension point, and the records that cross rooms, on one page.

Axis names: `entry` is a line of a menu (usually one a task), `action` one of its candidates,
`sample` a line of the data, `task` and `feature` what they say.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

from gfucb.functions import (
    ConfidenceSet,
    HeadPenalty,
    MultiheadFunction,
    MultitaskDataset,
    Representation,
    features_of,
)

Row = Mapping[str, float | int | str]


@dataclass(frozen=True, eq=False)
class Decision:
    """What an agent chose, with all it needs to learn from the reward later.

    `decision[entries]` is the decision on some of its entries: a number, a list, a slice or a
    mask. Rewards are learned as (task, input, reward), so entries may be rewarded in any
    order, late, or never.
    """

    tasks: Tensor  # [entry]
    actions: Tensor  # [entry]
    inputs: Tensor  # [entry, *input]
    optimistic_values: Tensor  # [entry]; what the agent hopes for; its estimate if it has no hope
    promise: Promise | None = None  # what the reward will be held against, if anything

    def __len__(self) -> int:
        return len(self.tasks)

    def __getitem__(self, entries: int | list[int] | slice | Tensor) -> Decision:
        index = torch.arange(len(self))[entries].reshape(-1)
        return Decision(
            self.tasks[index],
            self.actions[index],
            self.inputs[index],
            self.optimistic_values[index],
            self.promise and self.promise[index],
        )


@dataclass(frozen=True, eq=False)
class Promise:
    """What an agent expected of rewards when it decided: a later reward is a fair test of it.

    Attributes:
        estimates: values of the fit at the chosen actions, [entry].
        squared_widths: how far members of the confidence set of squared radius 1 lie from the
            fit there, squared, [entry].
    """

    estimates: Tensor
    squared_widths: Tensor

    def __getitem__(self, entries: Tensor) -> Promise:
        return Promise(self.estimates[entries], self.squared_widths[entries])


@dataclass(frozen=True, eq=False)
class Menu:
    """What a round offers: for each entry a task and the actions it may take.

    Where all entries choose among the same items, `candidates` is a view that repeats one
    catalogue [action, *input] without copying it (`Tensor.expand`). Each item is then held and
    represented once, whatever the number of entries.
    """

    candidates: Tensor  # [entry, action, *input]
    tasks: Tensor  # [entry]
    available: Tensor  # [entry, action], bool; at least one True in each entry

    @property
    def is_shared(self) -> bool:
        """Whether the candidates of all entries are the same memory."""
        return is_repeated(self.candidates)

    @property
    def items(self) -> Tensor:
        """The inputs there are to represent, a shared one once: [item, *input]."""
        return self.candidates[0] if self.is_shared else self.candidates.flatten(0, 1)

    def by_candidate(self, rows: Tensor) -> Tensor:
        """Rows of items as rows of candidates: [item, ...] -> [entry, action, ...]."""
        if self.is_shared:
            return rows.expand(len(self.tasks), *rows.shape)
        return rows.unflatten(0, self.available.shape)

    def features(self, representation: Representation) -> Tensor:
        """Phi of every candidate: [entry, action, feature]."""
        return self.by_candidate(features_of(representation, self.items))

    def features_of_chosen(self, representation: Representation, actions: Tensor) -> Tensor:
        """Phi of the chosen candidates: actions [entry] -> [entry, feature]."""
        if self.is_shared:
            return self.features(representation)[torch.arange(len(actions)), actions]
        return features_of(representation, self.inputs_of(actions))

    def values_of(self, function: MultiheadFunction) -> Tensor:
        """Values of every candidate, not clipped: [entry, action]."""
        features = self.features(function.representation)
        return function.values_of_features(features, self.tasks[:, None])

    def inputs_of(self, actions: Tensor) -> Tensor:
        """The chosen candidates: actions [entry] -> [entry, *input]."""
        return self.candidates[torch.arange(len(actions)), actions]

    def best_actions(self, values: Tensor) -> Tensor:
        """The best available action, the first of equals: [entry, action] -> [entry]."""
        return values.masked_fill(~self.available, -torch.inf).argmax(-1)

    def decision(self, actions: Tensor, values: Tensor, promise: Promise | None = None) -> Decision:
        """The decision to take `actions`, hoping for `values`; both [entry]."""
        return Decision(self.tasks, actions, self.inputs_of(actions), values, promise)

    def restricted_to(self, actions: Tensor) -> Menu:
        """The menu that leaves every entry only the action given: [entry]."""
        only = torch.zeros_like(self.available).scatter(1, actions[:, None], True)
        return Menu(self.candidates, self.tasks, only)


def is_repeated(rows: Tensor) -> bool:
    """Whether the first axis, of at least two, repeats one row that is held once."""
    return len(rows) > 1 and rows.stride(0) == 0


@dataclass(frozen=True, eq=False)
class OptimisticChoice:
    """The solution of line 4 of Algorithm 1: a hopeful function and the actions it likes best.

    Attributes:
        function: the optimistic f. Where each entry hopes alone no one function has all the
            values; the center stands here then.
        actions: [entry].
        values: f at the chosen actions, not clipped, [entry].
        squared_distance: how far f is from the center; above the squared radius it has left
            the set by `violation`.
        is_exact: whether no other member and actions can have a larger sum of values.
        promise: estimates and unit widths at the chosen actions, from solvers whose widths are
            not those of the heads of the fit.
        representation_widths: the part of the squared widths that is due to the representation
            and not to a task's head, [entry]; None for solvers that see heads only.
    """

    function: MultiheadFunction
    actions: Tensor
    values: Tensor
    squared_distance: float
    squared_radius: float
    is_exact: bool = False
    promise: Promise | None = None
    representation_widths: Tensor | None = None

    @property
    def violation(self) -> float:
        """By how much the constraint is broken, relative to the squared radius."""
        excess = max(0.0, self.squared_distance - self.squared_radius)
        return excess / self.squared_radius if self.squared_radius > 0 else excess


class LeastSquares(Protocol):
    """Fits the representation and the heads to all tasks' data."""

    def __call__(
        self,
        data: MultitaskDataset,
        start: MultiheadFunction,
        penalty: HeadPenalty,
        generator: torch.Generator,
    ) -> MultiheadFunction:
        """Return a member of the class with a small penalised squared error on `data`.

        Its heads are the minimisers for its representation, see `HeadStatistics.heads`.
        `start` is the previous fit: it sets offset and value range, and iterative methods
        begin there. `generator` is the only source of randomness.
        """


class SquaredRadius(Protocol):
    """beta_t, as a function of the round."""

    def __call__(self, round_index: int, /) -> float:
        """Return the squared radius for round t = `round_index`, counted from 1.

        The data of round t are the rewards of rounds 1 .. t - 1.
        """


class OptimismSolver(Protocol):
    """Finds the most hopeful member of a confidence set, jointly over all entries.

    A solver may say by attributes what it wants of the agent: `joint = False` a radius for each
    entry alone, `sketch` statistics of the weights, `perturbation` a fit to perturbed rewards.
    """

    def __call__(self, confidence_set: ConfidenceSet, menu: Menu, /) -> OptimisticChoice:
        """Return f in the set and actions that make sum_entry f_task(x_action) large."""


class BanditAgent(Protocol):
    """Decides, and learns from rewards."""

    @property
    def num_tasks(self) -> int:
        """M."""

    def decide(
        self, candidates: Tensor, tasks: Tensor | None = None, available: Tensor | None = None
    ) -> Decision:
        """Choose an action for every entry of candidates [entry, action, *input]."""

    def observe(self, decision: Decision, rewards: Tensor) -> None:
        """Learn from the rewards [entry] of a decision."""

    def diagnostics(self) -> Row:
        """Numbers about the last decision and the state; each becomes a column of the rows."""

    def state(self) -> dict[str, Tensor]:
        """All that the agent has learned, as named tensors."""

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Continue from a state taken from an agent built alike."""

    def settings(self) -> dict[str, str]:
        """What an agent must be built with to continue from this one's state."""


@dataclass(frozen=True, eq=False)
class BanditRound:
    """One round of a world. Agents see `candidates`; the rest is for the referee.

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
        # An agent may decide on another device than the one the world lives on.
        taken = actions.to(self.mean_rewards.device)
        return self.mean_rewards.gather(1, taken[:, None]).squeeze(1)


class BanditEnvironment(Protocol):
    """A world of M contextual bandits: a function from the round to what happens in it."""

    @property
    def num_tasks(self) -> int:
        """M."""

    def round(self, round_index: int) -> BanditRound:
        """Return round `round_index`, counted from 1; the same one whenever it is asked for."""

    def describe(self) -> Mapping[str, Any]:
        """Facts about the world for reports."""


@dataclass(frozen=True, eq=False)
class Outcome:
    """What followed the actions of one stage: rewards, and what each entry may do next."""

    rewards: Tensor  # [entry]
    next_candidates: Tensor  # [entry, action, *input]
    ended: Tensor  # [entry], bool: no value follows, `next_candidates` says nothing there


class Episode(Protocol):
    """One episode of all tasks, played stage by stage; all its randomness is already drawn."""

    def offered(self) -> tuple[Tensor, Tensor]:
        """Tasks still playing, [entry], and their candidates, [entry, action, *input]."""

    def play(self, actions: Tensor) -> Outcome:
        """Take actions [entry] and move to the next stage."""


class EpisodicEnvironment(Protocol):
    """A world of M episodic MDPs: a function from the episode to what happens in it."""

    @property
    def num_tasks(self) -> int:
        """M."""

    @property
    def num_actions(self) -> int:
        """A, the same in all tasks."""

    @property
    def horizon(self) -> int:
        """H: no episode is longer."""

    def episode(self, episode_index: int) -> Episode:
        """Return episode `episode_index`, from 1; begun anew whenever it is asked for."""

    def describe(self) -> Mapping[str, Any]:
        """Facts about the world for reports."""


class EpisodicAgent(Protocol):
    """Plans before an episode, decides in every stage, and learns from transitions."""

    @property
    def num_tasks(self) -> int:
        """M."""

    @property
    def horizon(self) -> int:
        """H; stages are numbered 0 .. H - 1."""

    @property
    def plan_index(self) -> int:
        """How many plans were made; decisions change only when it does."""

    @property
    def is_markov(self) -> bool:
        """Whether, between plans, an action depends on its own entry and stage alone."""

    def plan(self, candidates: Tensor, tasks: Tensor | None = None) -> None:
        """Get ready for an episode that begins with candidates [entry, action, *input]."""

    def decide(self, stage: int, candidates: Tensor, tasks: Tensor | None = None) -> Decision:
        """Choose an action for every entry of candidates [entry, action, *input]."""

    def observe(
        self,
        stage: int,
        decision: Decision,
        rewards: Tensor,
        next_candidates: Tensor | None = None,
        ended: Tensor | None = None,
    ) -> None:
        """Learn from the rewards [entry] and what followed a decision."""

    def diagnostics(self) -> Row:
        """Numbers about the state; each becomes a column of the rows."""

    def state(self) -> dict[str, Tensor]:
        """All that the agent has learned, as named tensors."""

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Continue from a state taken from an agent built alike."""

    def settings(self) -> dict[str, str]:
        """What an agent must be built with to continue from this one's state."""
