"""The check of episodic agents."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from gfucb.checks.assertions import (
    cloned,
    is_equal,
    learned_state,
    require,
    require_function,
    require_methods,
    require_numbers,
    require_refusal,
    require_settings,
    uniform,
)
from gfucb.core.protocols import EpisodicAgent
from gfucb.core.records import Decision

NUM_STATES, NUM_ACTIONS = 3, 2
AGENT_METHODS = (
    *("num_tasks", "horizon", "is_markov", "plan_index", "plan", "decide", "observe"),
    *("diagnostics", "state", "load_state", "settings"),
)


def check_episodic_agent(
    make_agent: Callable[[], EpisodicAgent], inputs: Tensor | None = None
) -> None:
    """Play a few episodes with new agents and check the properties of `EpisodicAgent`.

    Deciding changes nothing. Agents that were built alike decide alike. Decisions change only
    with `plan_index`, for agents with `is_markov`. A restored agent continues like the saved one.
    Episodes may end early, in some tasks only. Invalid arguments are refused with an
    `InvalidInputError` and change nothing.

    Args:
        make_agent: builds the same agent at every call.
        inputs: of states and actions, [state, action, *input]; by default one-hot vectors.
    """
    if inputs is None:
        inputs = torch.eye(NUM_STATES * NUM_ACTIONS).view(NUM_STATES, NUM_ACTIONS, -1)
    require_function(make_agent, "that returns a new agent")
    agent, twin = make_agent(), make_agent()
    require_methods(agent, AGENT_METHODS)
    require_settings(agent, twin)
    for index in range(4):
        episode = _Episode(inputs, agent.num_tasks, agent.horizon, index)
        _play_together(agent, twin, episode, "agents that were built alike decided differently")
        require_numbers(agent.diagnostics())
    restored = make_agent()
    restored.load_state(cloned(agent.state()))
    require(
        restored.plan_index == agent.plan_index,
        f"the restored agent has plan_index {restored.plan_index} instead of {agent.plan_index}",
    )
    for index in range(4, 7):
        episode = _Episode(inputs, agent.num_tasks, agent.horizon, index)
        why = "a restored agent decides differently from the agent that was saved"
        _play_together(agent, restored, episode, why)


@dataclass
class _Episode:
    """Transitions and rewards that depend on the actions, all reproducible.

    The first task of every second episode ends after its first stage.
    """

    inputs: Tensor
    num_tasks: int
    horizon: int
    index: int

    def __post_init__(self) -> None:
        self.states = self._draw("first", 0) % len(self.inputs)
        self.tasks = torch.arange(self.num_tasks)

    def candidates(self) -> Tensor:
        return self.inputs[self.states]

    def step(self, stage: int, actions: Tensor) -> tuple[Tensor, Tensor]:
        """Take actions [row]; return rewards and ends [row], and move all rows."""
        draws = self._draw("next", stage)[self.tasks]
        rewards = ((self.states + 2 * actions + draws) % 4).double() / 4
        self.states = (self.states + actions + draws) % len(self.inputs)
        ended = torch.full((len(actions),), stage == self.horizon - 1)
        if self.index % 2 and stage == 0:
            ended[0] = True
        return rewards, ended

    def drop(self, ended: Tensor) -> None:
        """Continue with the rows that have not ended."""
        self.states, self.tasks = self.states[~ended], self.tasks[~ended]

    def _draw(self, name: str, stage: int) -> Tensor:
        return (97 * uniform(f"{name} {self.index}", stage, self.num_tasks)).long()


def _play_together(
    agent: EpisodicAgent, other: EpisodicAgent, episode: _Episode, otherwise: str
) -> None:
    """Play one episode with two agents that must decide alike."""
    for player in (agent, other):
        player.plan(episode.candidates(), episode.tasks)
    plan_index = agent.plan_index
    for stage in range(episode.horizon):
        if not len(episode.tasks):
            break
        candidates, tasks = episode.candidates(), episode.tasks
        decision = _checked_decision(agent, stage, candidates, tasks)
        same = other.decide(stage, candidates, tasks)
        require(torch.equal(decision.actions, same.actions), otherwise)
        rewards, ended = episode.step(stage, decision.actions)
        following = episode.candidates()
        _check_refusals(agent, stage, decision, rewards, following, ended)
        agent.observe(stage, decision, rewards, following, ended)
        other.observe(stage, same, rewards, following, ended)
        require(agent.plan_index == plan_index, "plan_index changed without a call of plan")
        if agent.is_markov:
            repeated = agent.decide(stage, candidates, tasks)
            require(
                torch.equal(repeated.actions, decision.actions),
                "an agent with is_markov decided differently without a new plan",
            )
        episode.drop(ended)


def _checked_decision(
    agent: EpisodicAgent, stage: int, candidates: Tensor, tasks: Tensor
) -> Decision:
    before, given = learned_state(agent), candidates.clone()
    decision = agent.decide(stage, candidates, tasks)
    require(is_equal(before, learned_state(agent)), "decide changed what the agent has learned")
    require(torch.equal(given, candidates), "decide changed the candidates")
    rows = torch.arange(len(candidates))
    chosen = candidates[rows, decision.actions].flatten(1)
    require(
        torch.equal(decision.tasks, tasks)
        and torch.equal(decision.inputs.flatten(1).to(chosen.dtype), chosen),
        "the tasks and inputs of a decision are not those of the chosen actions",
    )
    return decision


def _check_refusals(
    agent: EpisodicAgent,
    stage: int,
    decision: Decision,
    rewards: Tensor,
    following: Tensor,
    ended: Tensor,
) -> None:
    for wrong, what in [
        (torch.cat([rewards, rewards]), "rewards of the wrong length"),
        (rewards * torch.nan, "NaN rewards"),
    ]:
        call = partial(agent.observe, stage, decision, wrong, following, ended)
        require_refusal(agent, call, what)
    for no_stage in (-1, agent.horizon):
        call = partial(agent.observe, no_stage, decision, rewards, following, ended)
        require_refusal(agent, call, f"transitions of stage {no_stage}")
        decide = partial(agent.decide, no_stage, following, decision.tasks)
        require_refusal(agent, decide, f"candidates of stage {no_stage}")
    if not bool(ended.all()):
        call = partial(agent.observe, stage, decision, rewards, None, ended)
        require_refusal(agent, call, "transitions without next candidates")
