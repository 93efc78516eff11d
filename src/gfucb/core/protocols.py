"""Every seam of the library, on one page.

A part is replaced by writing a class with the methods below; `gfucb.checks` tests it. Axis names
in shapes: `row` is one decision to make (usually one a task), `action` one of its candidates,
`sample` a row of the data, `task` and `feature` what they say.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

import torch
from torch import Tensor

from gfucb.core.records import ActionSets, BanditRound, Decision, Outcome, Row, Selection

if TYPE_CHECKING:
    from gfucb.models import ConfidenceSet, HeadPenalty, MultiheadFunction, MultitaskDataset


class LeastSquares(Protocol):
    """Fits the representation and the heads to the data of all tasks."""

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
        start there. `generator` is the only source of randomness.
        """


class SquaredRadius(Protocol):
    """beta_t, as a function of the round."""

    def __call__(self, round_index: int, /) -> float:
        """Return the squared radius for round t = `round_index`, counted from 1.

        The data of round t are the rewards of rounds 1 .. t - 1.
        """


class ActionSelector(Protocol):
    """Chooses actions from a confidence set, jointly over all rows.

    A selector may say by attributes what it wants of the agent: `joint = False` a radius for each
    row alone, `sketch` statistics of the weights, `perturbation` a fit to perturbed rewards.
    """

    def __call__(self, confidence_set: ConfidenceSet, action_sets: ActionSets, /) -> Selection:
        """Return f in the set and actions that make sum_row f_task(x_action) large."""


class BanditAgent(Protocol):
    """Decides, and learns from rewards."""

    @property
    def num_tasks(self) -> int:
        """M."""

    def decide(
        self, candidates: Tensor, tasks: Tensor | None = None, available: Tensor | None = None
    ) -> Decision:
        """Choose an action for every row of candidates [row, action, *input]."""

    def observe(self, decision: Decision, rewards: Tensor) -> None:
        """Learn from the rewards [row] of a decision."""

    def diagnostics(self) -> Row:
        """Numbers about the last decision and the state; each becomes a column of the rows."""

    def state(self) -> dict[str, Tensor]:
        """All that the agent has learned, as named tensors."""

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Continue from the state of an agent built with the same arguments."""

    def settings(self) -> dict[str, str]:
        """What an agent must be built with to continue from this one's state."""


class BanditEnvironment(Protocol):
    """M contextual bandits: a function from the round to what happens in it."""

    @property
    def num_tasks(self) -> int:
        """M."""

    def round(self, round_index: int) -> BanditRound:
        """Return round `round_index`, counted from 1; always the same one."""

    def describe(self) -> Mapping[str, Any]:
        """Facts about the environment for reports."""


class Episode(Protocol):
    """One episode of all tasks, stage by stage; all its randomness is already drawn."""

    def offered(self) -> tuple[Tensor, Tensor]:
        """Tasks whose episode goes on, [row], and their candidates, [row, action, *input]."""

    def play(self, actions: Tensor) -> Outcome:
        """Take actions [row] and move to the next stage."""


class EpisodicEnvironment(Protocol):
    """M episodic MDPs: a function from the episode to what happens in it."""

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
        """Return episode `episode_index`, from 1, at its first stage."""

    def describe(self) -> Mapping[str, Any]:
        """Facts about the environment for reports."""


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
        """Whether, between plans, an action depends on its own row and stage alone."""

    def plan(self, candidates: Tensor, tasks: Tensor | None = None) -> None:
        """Prepare an episode that starts with candidates [row, action, *input]."""

    def decide(self, stage: int, candidates: Tensor, tasks: Tensor | None = None) -> Decision:
        """Choose an action for every row of candidates [row, action, *input]."""

    def observe(
        self,
        stage: int,
        decision: Decision,
        rewards: Tensor,
        next_candidates: Tensor | None = None,
        ended: Tensor | None = None,
    ) -> None:
        """Learn from the rewards [row] and what followed a decision."""

    def diagnostics(self) -> Row:
        """Numbers about the state; each becomes a column of the rows."""

    def state(self) -> dict[str, Tensor]:
        """All that the agent has learned, as named tensors."""

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Continue from the state of an agent built with the same arguments."""

    def settings(self) -> dict[str, str]:
        """What an agent must be built with to continue from this one's state."""
