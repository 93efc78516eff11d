"""Baselines for episodic MDPs, with the interface of `EpisodicGFUCB`."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from gfucb.core.action_sets import ActionSets
from gfucb.core.nested import below, nested_settings, with_prefix
from gfucb.core.protocols import EpisodicAgent, RepresentationClass
from gfucb.core.random import random_actions, random_stream
from gfucb.core.records import Decision, Row
from gfucb.core.setting_descriptions import describe_setting
from gfucb.core.validation.arrays import ArrayLike, to_tensor
from gfucb.core.validation.bandits import validate_action_sets
from gfucb.core.validation.settings import (
    validate_methods,
    validate_not_negative,
    validate_number,
    validate_seed,
)
from gfucb.core.validation.states import validate_state_names, validate_state_tensor
from gfucb.episodic.gfucb import EpisodicGFUCB
from gfucb.episodic.greedy_policy import Policy, greedy_policy
from gfucb.estimation import ConstantRadius
from gfucb.models import FiniteClass, IdentityRepresentation

AGENT_METHODS = ("plan", "decide", "observe", "state", "load_state", "settings", "diagnostics")


def lsvi_ucb(
    num_tasks: int,
    horizon: int,
    *,
    beta: float = 0.3,
    ridge: float = 0.1,
    seed: int = 0,
    **options: Any,
) -> EpisodicGFUCB:
    """LSVI-UCB for each task alone on given features, the inputs (Jin et al., 2020).

    Q = clip(<w, x> + beta |x|_{V^-1}), w the ridge fit to r + max_a Q'. This is `EpisodicGFUCB`
    with the identity as the only representation: only heads are learned, so tasks do not affect
    each other. Options are those of `EpisodicGFUCB`.
    """
    return EpisodicGFUCB(
        num_tasks,
        horizon,
        FiniteClass([IdentityRepresentation()]),
        squared_radius=ConstantRadius(validate_not_negative(beta, "beta") ** 2),
        ridge=ridge,
        seed=seed,
        **options,
    )


def randomised_lsvi(
    num_tasks: int, horizon: int, *, noise_scale: float = 0.3, **options: Any
) -> EpisodicGFUCB:
    """Randomised least-squares value iteration on given features (Osband et al., 2016).

    Before every episode it perturbs the targets with standard deviation `noise_scale`.
    """
    noise_scale = validate_not_negative(noise_scale, "noise_scale")
    chosen = {"backup": "randomised", "replan": "every"} | options
    return lsvi_ucb(num_tasks, horizon, beta=noise_scale, **chosen)


def fitted_q(
    num_tasks: int,
    horizon: int,
    representation: nn.Module | RepresentationClass | None = None,
    *,
    epsilon: float = 0.1,
    seed: int = 0,
    **options: Any,
) -> EpisodicEpsilonGreedy:
    """Fitted Q iteration on the shared representation with epsilon-greedy exploration."""
    chosen = {"squared_radius": ConstantRadius(0.0)} | options
    agent = EpisodicGFUCB(num_tasks, horizon, representation, seed=seed, **chosen)
    return EpisodicEpsilonGreedy(agent, epsilon=epsilon, seed=seed)


class EpisodicEpsilonGreedy:
    """With probability epsilon a random action, otherwise the action of `agent`.

    Draws derive from the seed and the number of observations, so `decide` changes nothing: the
    same arguments give the same decision until the next observation.

    Args:
        agent: chooses the other actions, and learns from all.
        epsilon: probability of a random action; 1 is uniform play.
        seed: of the draws.
    """

    is_markov = False

    def __init__(self, agent: EpisodicAgent, *, epsilon: float = 0.1, seed: int = 0) -> None:
        self.agent = validate_methods(agent, "agent", AGENT_METHODS)
        self.epsilon = validate_number(epsilon, "epsilon", at_least=0.0, at_most=1.0)
        self.seed = validate_seed(seed)
        self.num_tasks, self.horizon = agent.num_tasks, agent.horizon
        self.num_observations = 0

    def __repr__(self) -> str:
        return f"EpisodicEpsilonGreedy({self.agent!r}, epsilon={self.epsilon:g})"

    @property
    def plan_index(self) -> int:
        """The number of plans of the agent."""
        return self.agent.plan_index

    def plan(self, candidates: ArrayLike, tasks: ArrayLike | None = None) -> None:
        """Call the `plan` of the agent."""
        action_sets = self._validate(candidates, tasks)
        self.agent.plan(action_sets.candidates, action_sets.tasks)

    def decide(self, stage: int, candidates: ArrayLike, tasks: ArrayLike | None = None) -> Decision:
        """Replace the action of the agent by a random one, with probability epsilon in each row."""
        action_sets = self._validate(candidates, tasks)
        decision = self.agent.decide(stage, action_sets.candidates, action_sets.tasks)
        generator = random_stream(self.seed, "explore", self.num_observations)
        draws = torch.rand(len(action_sets.tasks), generator=generator, dtype=torch.float64)
        drawn = random_actions(action_sets.available, generator)
        actions = torch.where(draws < self.epsilon, drawn, decision.actions)
        return action_sets.decision(actions, decision.optimistic_values)

    def greedy_policy(self) -> Policy:
        """The greedy policy of the agent, without random actions."""
        return greedy_policy(self.agent)

    def observe(
        self,
        stage: int,
        decision: Decision,
        rewards: ArrayLike,
        next_candidates: ArrayLike | None = None,
        ended: ArrayLike | None = None,
    ) -> None:
        """Pass the result of a decision to the agent."""
        self.agent.observe(
            stage,
            decision,
            to_tensor(rewards, "rewards"),
            None if next_candidates is None else to_tensor(next_candidates, "next_candidates"),
            None if ended is None else to_tensor(ended, "ended"),
        )
        self.num_observations += 1

    def _validate(self, candidates: ArrayLike, tasks: ArrayLike | None) -> ActionSets:
        return validate_action_sets(candidates, tasks, None, num_tasks=self.num_tasks, device="cpu")

    def diagnostics(self) -> Row:
        """The diagnostics of the agent."""
        return self.agent.diagnostics()

    def state(self) -> dict[str, Tensor]:
        """The state of the agent, and the number of observations."""
        counter = {"num_observations": torch.tensor(self.num_observations)}
        return with_prefix("agent/", self.agent.state()) | counter

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Continue the same draws with the same agent."""
        validate_state_names(state, ["num_observations"], ["agent/"])
        count = validate_state_tensor(state, "num_observations", [], dtype=torch.int64, low=0)
        self.agent.load_state(below("agent/", state))
        self.num_observations = int(count)

    def settings(self) -> dict[str, str]:
        """Epsilon, the seed of the draws, and the settings of the agent."""
        own = {"epsilon": self.epsilon, "exploration_seed": self.seed}
        described = {name: describe_setting(value) for name, value in own.items()}
        return described | nested_settings({"agent/": self.agent})
