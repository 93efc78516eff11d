"""Agents whose decisions are drawn at random, with the exact probabilities of the draw."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, cast

import torch
from torch import Tensor

from gfucb.bandits.baselines import AGENT_METHODS
from gfucb.bandits.randomisation import ActionDistribution, HoldbackPolicy, Randomisation
from gfucb.core.action_sets import ActionSets
from gfucb.core.nested import below, nested_settings, with_prefix
from gfucb.core.protocols import BanditAgent
from gfucb.core.records import Decision, Row
from gfucb.core.setting_descriptions import describe_setting
from gfucb.core.validation.arrays import ArrayLike
from gfucb.core.validation.bandits import validate_action_sets, validate_catalogue
from gfucb.core.validation.settings import validate_methods
from gfucb.core.validation.states import validate_state_names, validate_state_tensor


class Randomised:
    """An agent whose actions are drawn at random, with known probabilities for a log.

    The decision has the `probabilities` of the chosen actions and the `action_probabilities` of all
    actions, from which `gfucb.evaluation` estimates the value of other policies.

    Every call of `decide` makes new draws. They depend on the seed, on the number of decisions so
    far and on the position of the row, so a log of many decisions between two rewards has
    independent draws. A decision changes nothing that was learned, only this number, which is part
    of the state. `action_probabilities` answers without a draw, and changes nothing.

    >>> import torch, gfucb
    >>> agent = gfucb.Randomised(gfucb.GFUCB(num_tasks=2, seed=0), epsilon=0.3, seed=0)
    >>> decision = agent.decide(torch.linspace(0, 1, 24).reshape(2, 3, 4))
    >>> sorted(round(p, 3) for p in decision.action_probabilities[0].tolist())
    [0.1, 0.1, 0.8]

    Args:
        agent: any agent. If `distribution` is given, one with a confidence set, such as `GFUCB`.
        distribution: for this and the other arguments see `Randomisation`.
        epsilon: share of actions that are drawn uniformly.
        holdback: share of rows in which a fixed policy decides.
        holdback_policy: that policy.
        seed: of the draws.
    """

    def __init__(
        self,
        agent: BanditAgent,
        *,
        distribution: ActionDistribution | None = None,
        epsilon: float = 0.0,
        holdback: float = 0.0,
        holdback_policy: HoldbackPolicy = "uniform",
        seed: int = 0,
    ) -> None:
        self.agent = validate_methods(agent, "agent", AGENT_METHODS)
        self.randomisation = Randomisation(distribution, epsilon, holdback, holdback_policy, seed)
        self.randomisation.require_agent(agent)
        self.num_decisions = 0

    def __repr__(self) -> str:
        own = self.randomisation
        return f"Randomised({self.agent!r}, epsilon={own.epsilon:g}, holdback={own.holdback:g})"

    @property
    def num_tasks(self) -> int:
        """M."""
        return self.agent.num_tasks

    def decide(
        self,
        candidates: ArrayLike,
        tasks: ArrayLike | None = None,
        available: ArrayLike | None = None,
    ) -> Decision:
        """Draw an action in every row; see `GFUCB.decide` for the arguments."""
        action_sets = self._validated(candidates, tasks, available)
        decision = self.randomisation.decide(self.agent, action_sets, self.num_decisions)
        self.num_decisions += 1
        return decision

    def decide_from(
        self,
        catalogue: ArrayLike,
        tasks: ArrayLike | None = None,
        available: ArrayLike | None = None,
    ) -> Decision:
        """Draw for every row from one catalogue [action, *input] that all rows share."""
        candidates = validate_catalogue(catalogue, tasks, num_tasks=self.num_tasks)
        return self.decide(candidates, tasks, available)

    def action_probabilities(
        self,
        candidates: ArrayLike,
        tasks: ArrayLike | None = None,
        available: ArrayLike | None = None,
    ) -> Tensor:
        """With which probabilities `decide` would draw, [row, action]. Nothing changes."""
        action_sets = self._validated(candidates, tasks, available)
        return self.randomisation.action_probabilities(self.agent, action_sets)

    def _validated(self, candidates: Any, tasks: Any, available: Any) -> ActionSets:
        return validate_action_sets(
            candidates, tasks, available, num_tasks=self.num_tasks, device="cpu"
        )

    def observe(self, decision: Decision, rewards: ArrayLike) -> None:
        """Pass the rewards to the agent."""
        self.agent.observe(decision, cast(Tensor, rewards))

    def diagnostics(self) -> Row:
        """Those of the agent."""
        return self.agent.diagnostics()

    def state(self) -> dict[str, Tensor]:
        """The state of the agent, and the number of decisions, which selects the draws."""
        own = {"num_decisions": torch.tensor(self.num_decisions)}
        return with_prefix("agent/", self.agent.state()) | own

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Continue from the state of an agent built with the same arguments."""
        validate_state_names(state, ["num_decisions"], optional_prefixes=["agent/"])
        number = validate_state_tensor(state, "num_decisions", (), dtype=torch.int64, low=0)
        self.agent.load_state(below("agent/", state))
        self.num_decisions = int(number)

    def settings(self) -> dict[str, str]:
        """How actions are drawn, and the settings of the agent."""
        values = self.randomisation
        own = {
            field.name: describe_setting(getattr(values, field.name)) for field in fields(values)
        }
        return own | nested_settings({"agent/": self.agent})
