"""Baselines with the interface of GFUCB: the same models and fits, other exploration."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from gfucb.bandits.gfucb import GFUCB
from gfucb.bandits.randomisation import representation_of, with_representation
from gfucb.core.action_probabilities import uniform_distribution
from gfucb.core.action_sets import ActionSets
from gfucb.core.errors import InvalidInputError
from gfucb.core.nested import (
    below,
    load_numbered_states,
    mean_diagnostics,
    nested_settings,
    numbered,
    numbered_states,
    with_prefix,
)
from gfucb.core.protocols import BanditAgent, RepresentationClass
from gfucb.core.random import random_actions, random_stream
from gfucb.core.records import Decision, GroupFeatures, Prediction, Row
from gfucb.core.validation.arrays import ArrayLike
from gfucb.core.validation.bandits import validate_action_sets, validate_feedback
from gfucb.core.validation.settings import (
    validate_agents,
    validate_component,
    validate_count,
    validate_methods,
    validate_not_negative,
    validate_number,
    validate_seed,
)
from gfucb.core.validation.states import validate_state_names, validate_state_tensor
from gfucb.estimation import ConstantRadius
from gfucb.exploration import Greedy, LastLayer
from gfucb.models import FiniteClass, IdentityRepresentation

AGENT_METHODS = ("decide", "observe", "diagnostics", "state", "load_state", "settings")


def multitask_greedy(
    num_tasks: int,
    representation: nn.Module | RepresentationClass | None = None,
    **options: Any,
) -> GFUCB:
    """The model of GFUCB without an exploration bonus. Options are those of `GFUCB`."""
    return GFUCB(
        num_tasks,
        representation,
        squared_radius=ConstantRadius(0.0),
        action_selector=Greedy(),
        **options,
    )


def linucb(num_tasks: int, *, alpha: float = 0.3, ridge: float = 1.0, seed: int = 0) -> GFUCB:
    """LinUCB for each task separately, on the flattened inputs:  <w, x> + alpha |x|_{V^-1}.

    It is GFUCB with the identity as its only representation and the squared radius alpha^2 for
    each row. With `alpha = 0` it is the greedy linear learner.
    """
    return GFUCB(
        num_tasks,
        FiniteClass([IdentityRepresentation()]),
        squared_radius=ConstantRadius(validate_not_negative(alpha, "alpha") ** 2),
        action_selector=LastLayer(joint=False),
        ridge=ridge,
        value_range=None,
        offset=0.0,
        seed=seed,
    )


class Uniform:
    """Chooses among the available actions uniformly at random, and learns nothing.

    The draws depend on the seed and on how often rewards were observed. As for any agent, the same
    call of `decide` returns the same decision until the next call of `observe`.
    """

    def __init__(self, num_tasks: int, *, seed: int = 0) -> None:
        self.num_tasks = validate_count(num_tasks, "num_tasks")
        self.seed = validate_seed(seed)
        self.num_updates = 0

    def __repr__(self) -> str:
        return f"Uniform(num_tasks={self.num_tasks}, updates={self.num_updates})"

    def decide(
        self,
        candidates: ArrayLike,
        tasks: ArrayLike | None = None,
        available: ArrayLike | None = None,
    ) -> Decision:
        """Choose at random; see `GFUCB.decide` for the arguments."""
        action_sets = validate_action_sets(
            candidates, tasks, available, num_tasks=self.num_tasks, device="cpu"
        )
        generator = random_stream(self.seed, "uniform", self.num_updates)
        actions = random_actions(action_sets.available, generator)
        decision = action_sets.decision(actions, torch.zeros(len(actions), dtype=torch.float64))
        return decision.drawn_from(uniform_distribution(action_sets.available))

    def observe(self, decision: Decision, rewards: ArrayLike) -> None:
        """Check the rewards like any agent; the next decision has new draws."""
        tasks, _, _ = validate_feedback(decision, rewards, num_tasks=self.num_tasks)
        self.num_updates += len(tasks) > 0

    def diagnostics(self) -> Row:
        """None."""
        return {}

    def state(self) -> dict[str, Tensor]:
        """How often rewards were observed, which selects the draws."""
        return {"num_updates": torch.tensor(self.num_updates)}

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Continue with the draws of the agent whose state this is."""
        validate_state_names(state, ["num_updates"])
        self.num_updates = _num_updates(state)

    def settings(self) -> dict[str, str]:
        """The seed of the draws."""
        return {"seed": str(self.seed)}


class EpsilonGreedy:
    """With probability epsilon a random action, otherwise the action of `agent`.

    The draws depend on the seed, on the position of the row and on how often rewards were observed.
    Between two calls of `observe` the same rows explore, so a decision changes nothing.
    """

    def __init__(self, agent: BanditAgent, *, epsilon: float = 0.1, seed: int = 0) -> None:
        self.agent = validate_methods(agent, "agent", AGENT_METHODS)
        self.num_tasks = agent.num_tasks
        self.epsilon = validate_number(epsilon, "epsilon", at_least=0.0, at_most=1.0)
        self.seed = validate_seed(seed)
        self.num_updates = 0

    def __repr__(self) -> str:
        return f"EpsilonGreedy({self.agent!r}, epsilon={self.epsilon:g})"

    def decide(
        self,
        candidates: ArrayLike,
        tasks: ArrayLike | None = None,
        available: ArrayLike | None = None,
    ) -> Decision:
        """Restrict some rows to one random action, and let the agent decide."""
        action_sets = validate_action_sets(
            candidates, tasks, available, num_tasks=self.num_tasks, device="cpu"
        )
        offered = (action_sets.candidates, action_sets.tasks)
        # Rows that explore do not show the layout of a table, so the first decision is made twice.
        representation = None
        if self.num_updates == 0:
            representation = representation_of(self.agent.decide(*offered, action_sets.available))
        decision = self.agent.decide(*offered, self.restrict(action_sets.available))
        return with_representation(decision, representation)

    def restrict(self, available: Tensor) -> Tensor:
        """With probability epsilon, restrict the mask of a row to one random action.

        Shapes: [row, action] -> [row, action].
        """
        generator = random_stream(self.seed, "explore", self.num_updates)
        draws = torch.rand(len(available), generator=generator, dtype=torch.float64)
        drawn = random_actions(available, generator)
        forced = torch.zeros_like(available).scatter_(1, drawn[:, None], True)
        return torch.where((draws < self.epsilon)[:, None], forced, available)

    def observe(self, decision: Decision, rewards: ArrayLike) -> None:
        """Pass the rewards to the agent; the next decision has new draws."""
        tasks, _, values = validate_feedback(decision, rewards, num_tasks=self.num_tasks)
        self.agent.observe(decision, values)
        self.num_updates += len(tasks) > 0

    def diagnostics(self) -> Row:
        """Those of the agent."""
        return self.agent.diagnostics()

    def state(self) -> dict[str, Tensor]:
        """The state of the agent, and how often rewards were observed."""
        own = {"num_updates": torch.tensor(self.num_updates)}
        return with_prefix("agent/", self.agent.state()) | own

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Continue from the state of an agent built with the same arguments."""
        validate_state_names(state, ["num_updates"], optional_prefixes=["agent/"])
        num_updates = _num_updates(state)
        self.agent.load_state(below("agent/", state))
        self.num_updates = num_updates

    def settings(self) -> dict[str, str]:
        """Epsilon, the seed of the draws, and the settings of the agent."""
        own = {"epsilon": str(self.epsilon), "seed": str(self.seed)}
        return own | nested_settings({"agent/": self.agent})


class Grouped:
    """Tasks in groups of `group_size`. Each group has an agent of its own, and they share nothing.

    With `group_size = 1` every task learns alone, which is the baseline of the paper.

    Args:
        num_tasks: M; a multiple of `group_size`.
        make_agent: (num_tasks, seed) -> an agent for one group.
        group_size: tasks in a group.
        seed: the seeds of the groups derive from it.
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
        self.seed = validate_seed(seed)
        expected = "a function (num_tasks, seed) -> agent"
        validate_component(make_agent, "make_agent", expected)
        if self.num_tasks % self.group_size:
            raise InvalidInputError(
                f"{num_tasks} tasks cannot be split into groups of {group_size}; "
                "group_size must divide num_tasks"
            )
        validate_agents(self.num_tasks // self.group_size, "a larger group_size, or one GFUCB")
        self.agents = [self._make(make_agent, group) for group in range(num_tasks // group_size)]

    def __repr__(self) -> str:
        return f"Grouped({len(self.agents)} groups of {self.group_size}, first={self.agents[0]!r})"

    def _make(self, make_agent: Callable[[int, int], BanditAgent], group: int) -> BanditAgent:
        seed = random_stream(self.seed, "group", group).initial_seed()
        agent = make_agent(self.group_size, seed)
        validate_methods(agent, "what make_agent returns", AGENT_METHODS)
        if agent.num_tasks != self.group_size:
            raise InvalidInputError(
                f"make_agent must return an agent of {self.group_size} tasks, the size of a "
                f"group, got one of {agent.num_tasks}"
            )
        return agent

    def decide(
        self,
        candidates: ArrayLike,
        tasks: ArrayLike | None = None,
        available: ArrayLike | None = None,
    ) -> Decision:
        """Let the agent of each group decide on the rows of its tasks."""
        action_sets = validate_action_sets(
            candidates, tasks, available, num_tasks=self.num_tasks, device="cpu"
        )
        groups = self._groups(action_sets.tasks)
        decisions = [self._decide_group(group, rows, action_sets) for group, rows in groups]
        order = torch.cat([rows for _, rows in groups]).argsort()
        actions = torch.cat([decision.actions.cpu() for decision in decisions])[order]
        values = torch.cat([decision.optimistic_values.cpu() for decision in decisions])[order]
        predictions = [d.prediction for d in decisions if d.prediction is not None]
        prediction = None
        if len(predictions) == len(decisions):
            prediction = Prediction(
                torch.cat([p.mean.cpu() for p in predictions])[order],
                torch.cat([p.variance.cpu() for p in predictions])[order],
            )
        with_offered = any(decision.offered is not None for decision in decisions)
        decision = action_sets.decision(actions, values, prediction, with_offered=with_offered)
        features = GroupFeatures.of(decisions, [rows for _, rows in groups], decision.inputs)
        decision = replace(decision, features=features)
        drawn = [d.action_probabilities for d in decisions if d.action_probabilities is not None]
        if len(drawn) < len(decisions):
            return decision
        samples = [d.monte_carlo_samples for d in decisions if d.monte_carlo_samples is not None]
        return decision.drawn_from(torch.cat(drawn).cpu()[order], min(samples, default=None))

    def _decide_group(self, group: int, rows: Tensor, action_sets: ActionSets) -> Decision:
        return self.agents[group].decide(
            action_sets.candidates[rows],
            action_sets.tasks[rows] % self.group_size,
            action_sets.available[rows],
        )

    def observe(self, decision: Decision, rewards: ArrayLike) -> None:
        """Pass to each group the rewards of its own rows; if one refuses, none learns."""
        tasks, _, values = validate_feedback(decision, rewards, num_tasks=self.num_tasks)
        before: list[tuple[BanditAgent, dict[str, Tensor]]] = []
        try:
            for group, rows in self._groups(tasks):
                own, agent = decision[rows], self.agents[group]
                before.append((agent, agent.state()))
                agent.observe(replace(own, tasks=own.tasks % self.group_size), values[rows])
        except BaseException:
            for agent, state in before:
                agent.load_state(state)
            raise

    def diagnostics(self) -> Row:
        """Means over the groups."""
        return mean_diagnostics(self.agents)

    def state(self) -> dict[str, Tensor]:
        """The states of all groups, each name after the number of its group."""
        return numbered_states(self.agents)

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Load the state of every group; if one is refused, none changes."""
        load_numbered_states(self.agents, state)

    def settings(self) -> dict[str, str]:
        """The size of the groups, the seed, and the settings of all groups."""
        own = {"group_size": str(self.group_size), "seed": str(self.seed)}
        return own | nested_settings(numbered(self.agents))

    def _groups(self, tasks: Tensor) -> list[tuple[int, Tensor]]:
        groups = tasks.cpu() // self.group_size
        return [(int(g), (groups == g).nonzero().squeeze(1)) for g in groups.unique()]


def _num_updates(state: dict[str, Tensor]) -> int:
    return int(validate_state_tensor(state, "num_updates", (), dtype=torch.int64, low=0))
