"""Agents and worlds of contextual bandits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from torch import Tensor

from gfucb.contracts.records import Decision, Row


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
