"""Baselines for episodic MDPs, with the interface of `EpisodicGFUCB`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from gfucb.core.errors import InvalidInputError
from gfucb.core.nested import below, mean_diagnostics, numbered_states
from gfucb.core.protocols import EpisodicAgent
from gfucb.core.random import random_actions, random_stream
from gfucb.core.records import Decision, Row
from gfucb.core.validation.bandits import validate_action_sets
from gfucb.core.validation.settings import validate_count
from gfucb.episodic.gfucb import EpisodicGFUCB
from gfucb.episodic.replay import ReplayBuffer
from gfucb.estimation import ConstantRadius
from gfucb.models import FiniteClass, IdentityRepresentation


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

    Q = clip(<w, x> + beta |x|_{V^-1}), w the ridge fit to r + max_a Q'. It is `EpisodicGFUCB` with
    the identity as only representation: heads are then all there is to learn, and tasks do not
    meet. Options are those of `EpisodicGFUCB`.
    """
    if beta < 0:
        raise InvalidInputError(f"beta must not be negative, got {beta}")
    return EpisodicGFUCB(
        num_tasks,
        horizon,
        FiniteClass([IdentityRepresentation()]),
        squared_radius=ConstantRadius(beta**2),
        ridge=ridge,
        seed=seed,
        **options,
    )


def randomised_lsvi(
    num_tasks: int, horizon: int, *, noise_scale: float = 0.3, **options: Any
) -> EpisodicGFUCB:
    """Randomised least-squares value iteration on given features (Osband et al., 2016).

    Perturbs the targets anew before every episode, with standard deviation `noise_scale`.
    """
    chosen = {"backup": "randomised", "replan": "every"} | options
    return lsvi_ucb(num_tasks, horizon, beta=noise_scale, **chosen)


def fitted_q(
    num_tasks: int,
    horizon: int,
    representation: Any = None,
    *,
    epsilon: float = 0.1,
    seed: int = 0,
    **options: Any,
) -> EpisodicEpsilonGreedy:
    """Fitted Q iteration on the shared representation, explored at random: no optimism."""
    chosen = {"squared_radius": ConstantRadius(0.0)} | options
    agent = EpisodicGFUCB(num_tasks, horizon, representation, seed=seed, **chosen)
    return EpisodicEpsilonGreedy(agent, epsilon=epsilon, seed=seed)


class EpisodicEpsilonGreedy:
    """With probability epsilon an action at random, otherwise the one `agent` wants.

    `epsilon = 1` is uniform play.
    """

    is_markov = False

    def __init__(self, agent: EpisodicAgent, *, epsilon: float = 0.1, seed: int = 0) -> None:
        if not 0 <= epsilon <= 1:
            raise InvalidInputError(f"epsilon must lie between 0 and 1, got {epsilon}")
        self.agent, self.epsilon, self.seed = agent, epsilon, seed
        self.num_tasks, self.horizon = agent.num_tasks, agent.horizon
        self.num_decisions = 0

    @property
    def plan_index(self) -> int:
        """That of the agent."""
        return self.agent.plan_index

    def plan(self, candidates: Any, tasks: Any = None) -> None:
        """Let the agent plan."""
        self.agent.plan(candidates, tasks)

    def decide(self, stage: int, candidates: Any, tasks: Any = None) -> Decision:
        """Draw draws where they say so; the agent's choice elsewhere."""
        decision = self.agent.decide(stage, candidates, tasks)
        action_sets = validate_action_sets(
            candidates, tasks, None, num_tasks=self.num_tasks, device="cpu"
        )
        generator = random_stream(self.seed, "explore", self.num_decisions)
        draws = torch.rand(len(action_sets.tasks), generator=generator, dtype=torch.float64)
        drawn = random_actions(action_sets.available, generator)
        self.num_decisions += 1
        actions = torch.where(draws < self.epsilon, drawn, decision.actions)
        return action_sets.decision(actions, decision.optimistic_values)

    def observe(
        self,
        stage: int,
        decision: Decision,
        rewards: Any,
        next_candidates: Any = None,
        ended: Any = None,
    ) -> None:
        """Pass it on."""
        self.agent.observe(stage, decision, rewards, next_candidates, ended)

    def diagnostics(self) -> Row:
        """Those of the agent."""
        return self.agent.diagnostics()

    def state(self) -> dict[str, Tensor]:
        """The agent's, and how often this was asked."""
        inner = {f"agent/{name}": tensor for name, tensor in self.agent.state().items()}
        return inner | {"num_decisions": torch.tensor(self.num_decisions)}

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Continue the same draws with the same agent."""
        num_decisions = int(state["num_decisions"])
        self.agent.load_state(below("agent/", state))
        self.num_decisions = num_decisions

    def settings(self) -> dict[str, str]:
        """Its own and those of the agent."""
        own = {"epsilon": str(self.epsilon), "exploration_seed": str(self.seed)}
        return self.agent.settings() | own


class IndependentEpisodicAgents:
    """Every task with an agent of its own that shares nothing.

    Args:
        make_agent: seed -> an agent for one task.
    """

    def __init__(
        self, num_tasks: int, make_agent: Callable[[int], EpisodicAgent], *, seed: int = 0
    ) -> None:
        self.num_tasks = validate_count(num_tasks, "num_tasks")
        self.agents = [
            make_agent(random_stream(seed, "copy", task).initial_seed())
            for task in range(num_tasks)
        ]
        self.horizon = self.agents[0].horizon

    @property
    def is_markov(self) -> bool:
        """Whether the copies are."""
        return all(agent.is_markov for agent in self.agents)

    @property
    def plan_index(self) -> int:
        """Plans of all copies together."""
        return sum(agent.plan_index for agent in self.agents)

    def plan(self, candidates: Any, tasks: Any = None) -> None:
        """Let each copy plan from its own first observations."""
        action_sets = validate_action_sets(
            candidates, tasks, None, num_tasks=self.num_tasks, device="cpu"
        )
        for task, entries in _entries(action_sets.tasks):
            own = action_sets.candidates[entries]
            self.agents[task].plan(own, torch.zeros(len(own), dtype=torch.int64))

    def decide(self, stage: int, candidates: Any, tasks: Any = None) -> Decision:
        """Ask each copy about its own entries."""
        action_sets = validate_action_sets(
            candidates, tasks, None, num_tasks=self.num_tasks, device="cpu"
        )
        actions = torch.empty_like(action_sets.tasks)
        values = torch.empty(len(actions), dtype=torch.float64)
        for task, entries in _entries(action_sets.tasks):
            own = action_sets.candidates[entries]
            decision = self.agents[task].decide(
                stage, own, torch.zeros(len(own), dtype=torch.int64)
            )
            actions[entries] = decision.actions
            values[entries] = decision.optimistic_values
        return action_sets.decision(actions, values)

    def observe(
        self,
        stage: int,
        decision: Decision,
        rewards: Any,
        next_candidates: Any = None,
        ended: Any = None,
    ) -> None:
        """Tell each copy its own; nothing is told to anyone if something is wrong."""
        nothing_yet = ReplayBuffer(self.num_tasks, self.horizon)
        stage, news = nothing_yet.read(stage, decision, rewards, next_candidates, ended)
        for task, entries in _entries(decision.tasks):
            own = decision[entries]
            local = Decision(
                torch.zeros_like(own.tasks), own.actions, own.inputs, own.optimistic_values
            )
            rows = entries.numpy()
            following = news.next_candidates
            self.agents[task].observe(
                stage,
                local,
                torch.from_numpy(news.rewards[rows]),
                None if following is None else torch.from_numpy(following[rows]),
                torch.from_numpy(news.ended[rows]),
            )

    def diagnostics(self) -> Row:
        """Means over the copies of what they tell."""
        return mean_diagnostics(self.agents)

    def state(self) -> dict[str, Tensor]:
        """The states of all copies, by task."""
        return numbered_states(self.agents)

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Give each copy its own."""
        for task, agent in enumerate(self.agents):
            agent.load_state(below(f"{task}/", state))

    def settings(self) -> dict[str, str]:
        """Those of the first copy, whose seed derives from that of all."""
        return self.agents[0].settings() | {"copies": str(self.num_tasks)}


def _entries(tasks: Tensor) -> list[tuple[int, Tensor]]:
    """Entries of each task that is there."""
    return [(int(task), (tasks == task).nonzero().squeeze(1)) for task in tasks.unique()]
