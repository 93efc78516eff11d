"""Honest baselines, with the interface of GFUCB: same networks, same fit, other exploration."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from gfucb.bandits.gfucb import GFUCB
from gfucb.core.errors import InvalidInputError
from gfucb.core.nested import below, mean_diagnostics, numbered_states
from gfucb.core.protocols import BanditAgent
from gfucb.core.random import random_actions, random_stream
from gfucb.core.records import Decision, Prediction, Row
from gfucb.core.validation.bandits import validate_action_sets, validate_feedback
from gfucb.core.validation.settings import validate_count
from gfucb.estimation import ConstantRadius
from gfucb.exploration import Greedy, LastLayer
from gfucb.models import FiniteClass, IdentityRepresentation


def multitask_greedy(num_tasks: int, representation: Any = None, **options: Any) -> GFUCB:
    """The fit of GFUCB, believed: what is left when optimism is taken away.

    Options are those of `GFUCB`.
    """
    return GFUCB(
        num_tasks,
        representation,
        squared_radius=ConstantRadius(0.0),
        action_selector=Greedy(),
        **options,
    )


def linucb(num_tasks: int, *, alpha: float = 0.3, ridge: float = 1.0, seed: int = 0) -> GFUCB:
    """LinUCB for each task alone, on the flattened inputs:  <w, x> + alpha |x|_{V^-1}.

    It is GFUCB with the identity as only representation and a radius alpha^2 for each entry.
    `alpha = 0` is the greedy linear learner.
    """
    if alpha < 0:
        raise InvalidInputError(f"alpha must not be negative, got {alpha}")
    return GFUCB(
        num_tasks,
        FiniteClass([IdentityRepresentation()]),
        squared_radius=ConstantRadius(alpha**2),
        action_selector=LastLayer(joint=False),
        ridge=ridge,
        value_range=None,
        offset=0.0,
        seed=seed,
    )


class Uniform:
    """Chooses among the available actions at random and learns nothing."""

    def __init__(self, num_tasks: int, *, seed: int = 0) -> None:
        self.num_tasks = validate_count(num_tasks, "num_tasks")
        self.seed = seed
        self.num_decisions = 0

    def decide(self, candidates: Any, tasks: Any = None, available: Any = None) -> Decision:
        """Choose at random; see `GFUCB.decide` for the arguments."""
        action_sets = validate_action_sets(
            candidates, tasks, available, num_tasks=self.num_tasks, device="cpu"
        )
        generator = random_stream(self.seed, "uniform", self.num_decisions)
        actions = random_actions(action_sets.available, generator)
        self.num_decisions += 1
        return action_sets.decision(actions, torch.zeros(len(actions), dtype=torch.float64))

    def observe(self, decision: Decision, rewards: Any) -> None:
        """Check the rewards as any agent does, and forget them."""
        validate_feedback(decision, rewards, num_tasks=self.num_tasks)

    def diagnostics(self) -> Row:
        """Nothing to tell."""
        return {}

    def state(self) -> dict[str, Tensor]:
        """How often it was asked."""
        return {"num_decisions": torch.tensor(self.num_decisions)}

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Continue the same draws."""
        self.num_decisions = int(state["num_decisions"])

    def settings(self) -> dict[str, str]:
        """The seed of the draws."""
        return {"seed": str(self.seed)}


class EpsilonGreedy:
    """With probability epsilon an action at random, otherwise the one `agent` wants."""

    def __init__(self, agent: BanditAgent, *, epsilon: float = 0.1, seed: int = 0) -> None:
        if not 0 <= epsilon <= 1:
            raise InvalidInputError(f"epsilon must lie between 0 and 1, got {epsilon}")
        self.agent = agent
        self.num_tasks = agent.num_tasks
        self.epsilon = epsilon
        self.seed = seed
        self.num_decisions = 0

    def decide(self, candidates: Any, tasks: Any = None, available: Any = None) -> Decision:
        """Draw draws, then leave the agent no choice where they say so."""
        action_sets = validate_action_sets(
            candidates, tasks, available, num_tasks=self.num_tasks, device="cpu"
        )
        decision = self.agent.decide(
            action_sets.candidates, action_sets.tasks, self.offered(action_sets.available)
        )
        self.num_decisions += 1
        return decision

    def offered(self, available: Tensor) -> Tensor:
        """What is left to choose from [row, action] of what is available [row, action]."""
        generator = random_stream(self.seed, "explore", self.num_decisions)
        draws = torch.rand(len(available), generator=generator, dtype=torch.float64)
        drawn = random_actions(available, generator)
        forced = torch.zeros_like(available).scatter_(1, drawn[:, None], True)
        return torch.where((draws < self.epsilon)[:, None], forced, available)

    def observe(self, decision: Decision, rewards: Any) -> None:
        """Pass the rewards on."""
        self.agent.observe(decision, rewards)

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


class Grouped:
    """Tasks in groups of `group_size`, each with an agent of its own that shares nothing.

    `group_size = 1` is learning every task alone, as the paper's baseline does.

    Args:
        make_agent: (num_tasks, seed) -> an agent for one group.
    """

    def __init__(
        self,
        num_tasks: int,
        make_agent: Callable[[int, int], BanditAgent],
        *,
        group_size: int = 1,
        seed: int = 0,
    ) -> None:
        self.num_tasks = validate_count(num_tasks, "num_tasks")
        self.group_size = validate_count(group_size, "group_size")
        if num_tasks % group_size:
            raise InvalidInputError(
                f"{num_tasks} tasks cannot be split into groups of {group_size}; "
                "group_size must divide num_tasks"
            )
        self.agents = [
            make_agent(group_size, random_stream(seed, "group", group).initial_seed())
            for group in range(num_tasks // group_size)
        ]

    def decide(self, candidates: Any, tasks: Any = None, available: Any = None) -> Decision:
        """Ask each group about its own entries."""
        action_sets = validate_action_sets(
            candidates, tasks, available, num_tasks=self.num_tasks, device="cpu"
        )
        actions = torch.empty_like(action_sets.tasks)
        values, estimates, widths = torch.empty(3, len(actions), dtype=torch.float64)
        for group, entries in self._groups(action_sets.tasks):
            decision = self.agents[group].decide(
                action_sets.candidates[entries],
                action_sets.tasks[entries] % self.group_size,
                action_sets.available[entries],
            )
            actions[entries] = decision.actions.cpu()
            values[entries] = decision.optimistic_values.cpu()
            if decision.prediction is not None:
                estimates[entries] = decision.prediction.mean.cpu()
                widths[entries] = decision.prediction.variance.cpu()
        predicted = decision.prediction is not None
        return action_sets.decision(
            actions, values, Prediction(estimates, widths) if predicted else None
        )

    def observe(self, decision: Decision, rewards: Any) -> None:
        """Tell each group its own rewards."""
        tasks, _, read = validate_feedback(decision, rewards, num_tasks=self.num_tasks)
        told: list[tuple[BanditAgent, dict[str, Tensor]]] = []
        try:
            for group, entries in self._groups(tasks):
                own, agent = decision[entries], self.agents[group]
                told.append((agent, agent.state()))
                agent.observe(replace(own, tasks=own.tasks % self.group_size), read[entries])
        except BaseException:
            # One group's refusal must not leave the others taught.
            for agent, before in told:
                agent.load_state(before)
            raise

    def diagnostics(self) -> Row:
        """Means over the groups of what their agents tell."""
        return mean_diagnostics(self.agents)

    def state(self) -> dict[str, Tensor]:
        """The states of all groups, by group."""
        return numbered_states(self.agents)

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Give each group its own."""
        for group, agent in enumerate(self.agents):
            agent.load_state(below(f"{group}/", state))

    def settings(self) -> dict[str, str]:
        """The size of the groups and the settings of the first."""
        return self.agents[0].settings() | {"group_size": str(self.group_size)}

    def _groups(self, tasks: Tensor) -> list[tuple[int, Tensor]]:
        groups = tasks.cpu() // self.group_size
        return [(int(g), (groups == g).nonzero().squeeze(1)) for g in groups.unique()]
