"""A separate agent for every task: the baseline without sharing."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from gfucb.core.errors import InvalidInputError
from gfucb.core.nested import (
    load_numbered_states,
    mean_diagnostics,
    nested_settings,
    numbered,
    numbered_states,
)
from gfucb.core.protocols import EpisodicAgent
from gfucb.core.random import random_stream
from gfucb.core.records import Decision, Row, Transitions
from gfucb.core.validation.arrays import ArrayLike
from gfucb.core.validation.bandits import validate_action_sets
from gfucb.core.validation.settings import (
    validate_agents,
    validate_component,
    validate_count,
    validate_methods,
    validate_seed,
)
from gfucb.episodic.baselines import AGENT_METHODS
from gfucb.episodic.greedy_policy import Policy, greedy_policy
from gfucb.episodic.replay import ReplayBuffer


class IndependentEpisodicAgents:
    """A separate agent for every task; the agents share nothing.

    Args:
        num_tasks: M.
        make_agent: seed -> an agent for one task.
        seed: the seeds of the agents derive from it.
    """

    def __init__(
        self, num_tasks: int, make_agent: Callable[[int], EpisodicAgent], *, seed: int = 0
    ) -> None:
        self.num_tasks = validate_count(num_tasks, "num_tasks")
        validate_component(make_agent, "make_agent", "a function from a seed to an agent")
        seed = validate_seed(seed)
        validate_agents(self.num_tasks, "fewer tasks, or one EpisodicGFUCB")
        seeds = [random_stream(seed, "copy", task).initial_seed() for task in range(self.num_tasks)]
        self.agents = [_one_task_agent(make_agent(agent_seed)) for agent_seed in seeds]
        self.horizon = self.agents[0].horizon
        self._reset_shapes()

    def _reset_shapes(self) -> None:
        # One transition per stage, to refuse other shapes before any agent learns.
        self._shapes = ReplayBuffer(self.num_tasks, self.horizon)

    def __repr__(self) -> str:
        return f"IndependentEpisodicAgents({self.num_tasks} x {self.agents[0]!r})"

    @property
    def is_markov(self) -> bool:
        """Whether all agents are."""
        return all(agent.is_markov for agent in self.agents)

    @property
    def plan_index(self) -> int:
        """The number of plans of all agents together."""
        return sum(agent.plan_index for agent in self.agents)

    def plan(self, candidates: ArrayLike, tasks: ArrayLike | None = None) -> None:
        """Pass to each agent the first observations of its task."""
        action_sets = validate_action_sets(
            candidates, tasks, None, num_tasks=self.num_tasks, device="cpu"
        )
        for task, rows in _rows_by_task(action_sets.tasks):
            self.agents[task].plan(action_sets.candidates[rows], torch.zeros_like(rows))

    def decide(self, stage: int, candidates: ArrayLike, tasks: ArrayLike | None = None) -> Decision:
        """The decisions of the agents on the rows of their tasks."""
        action_sets = validate_action_sets(
            candidates, tasks, None, num_tasks=self.num_tasks, device="cpu"
        )
        actions = torch.empty_like(action_sets.tasks)
        values = torch.empty(len(actions), dtype=torch.float64)
        for task, rows in _rows_by_task(action_sets.tasks):
            candidates_of_task = action_sets.candidates[rows]
            decision = self.agents[task].decide(stage, candidates_of_task, torch.zeros_like(rows))
            actions[rows] = decision.actions
            values[rows] = decision.optimistic_values
        return action_sets.decision(actions, values)

    def greedy_policy(self) -> Policy:
        """The greedy policies of the agents, each on the rows of its task."""
        policies = [greedy_policy(agent) for agent in self.agents]

        def policy(stage: int, candidates: Tensor, tasks: Tensor) -> Tensor:
            actions = torch.empty_like(tasks)
            for task, rows in _rows_by_task(tasks):
                actions[rows] = policies[task](stage, candidates[rows], torch.zeros_like(rows))
            return actions

        return policy

    def observe(
        self,
        stage: int,
        decision: Decision,
        rewards: ArrayLike,
        next_candidates: ArrayLike | None = None,
        ended: ArrayLike | None = None,
    ) -> None:
        """Pass to each agent the results of its rows; if one is refused, no agent changes."""
        stage, transitions = self._shapes.validate(stage, decision, rewards, next_candidates, ended)
        if len(self._shapes.stages[stage]):  # shapes are known, so no agent will refuse them
            self._pass_on(stage, decision, transitions)
            return
        before = [agent.state() for agent in self.agents]
        try:
            self._pass_on(stage, decision, transitions)
        except BaseException:
            for agent, state in zip(self.agents, before, strict=True):
                agent.load_state(state)
            raise
        if transitions.next_candidates is not None or stage + 1 == self.horizon:
            self._shapes.append(stage, transitions)

    def _pass_on(self, stage: int, decision: Decision, transitions: Transitions) -> None:
        following = transitions.next_candidates
        for task, rows in _rows_by_task(decision.tasks):
            own, index = decision[rows], rows.numpy()
            self.agents[task].observe(
                stage,
                Decision(torch.zeros_like(rows), own.actions, own.inputs, own.optimistic_values),
                torch.from_numpy(transitions.rewards[index]),
                None if following is None else torch.from_numpy(following[index]),
                torch.from_numpy(transitions.ended[index]),
            )

    def diagnostics(self) -> Row:
        """Means of the diagnostics of the agents."""
        return mean_diagnostics(self.agents)

    def state(self) -> dict[str, Tensor]:
        """The states of all agents, by task."""
        return numbered_states(self.agents)

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Load the state of each agent; if one is refused, no agent changes."""
        load_numbered_states(self.agents, state)
        self._reset_shapes()

    def settings(self) -> dict[str, str]:
        """The settings of the agents."""
        return nested_settings(numbered(self.agents))


def _one_task_agent(agent: EpisodicAgent) -> EpisodicAgent:
    validate_methods(agent, "the result of make_agent", AGENT_METHODS)
    if agent.num_tasks != 1:
        raise InvalidInputError(
            f"make_agent must return an agent for one task, got {agent!r} with {agent.num_tasks}"
        )
    return agent


def _rows_by_task(tasks: Tensor) -> list[tuple[int, Tensor]]:
    """The rows [n] of each task that has any."""
    return [(int(task), (tasks == task).nonzero().squeeze(1)) for task in tasks.unique()]
