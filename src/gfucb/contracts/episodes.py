"""Agents and worlds of episodic MDPs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from torch import Tensor

from gfucb.contracts.records import Decision, Row


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
