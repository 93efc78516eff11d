"""The checks of bandit agents and environments."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from gfucb.checks.assertions import (
    CheckError,
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
from gfucb.core.errors import InvalidInputError
from gfucb.core.protocols import BanditAgent, BanditEnvironment
from gfucb.core.records import BanditRound, Decision
from gfucb.core.validation.rounds import validate_round

NUM_ACTIONS = 3
AGENT_METHODS = ("num_tasks", "decide", "observe", "diagnostics", "state", "load_state", "settings")


def check_bandit_agent(
    make_agent: Callable[[], BanditAgent], input_shape: tuple[int, ...] = (4,)
) -> None:
    """Play a few rounds with new agents and check the properties of `BanditAgent`.

    Deciding learns nothing. Agents that were built alike decide alike. A restored agent continues
    like the saved one. Rows of some tasks, partial availability and late rewards are accepted.
    Invalid arguments are refused with an `InvalidInputError` and change nothing.

    Args:
        make_agent: builds the same agent at every call.
        input_shape: of one candidate.
    """
    require_function(make_agent, "that returns a new agent")
    agent, twin = make_agent(), make_agent()
    require_methods(agent, AGENT_METHODS)
    require_settings(agent, twin)
    for index in range(4):
        _play_round(agent, twin, index, input_shape)
    _check_partial_rounds(agent, input_shape)
    restored = make_agent()
    restored.load_state(cloned(agent.state()))
    for index in range(7, 10):
        candidates = _candidates(index, agent.num_tasks, input_shape)
        decision, other = agent.decide(candidates), restored.decide(candidates)
        require(
            torch.equal(decision.actions, other.actions)
            and torch.equal(decision.optimistic_values, other.optimistic_values),
            "a restored agent decides differently from the agent that was saved",
        )
        agent.observe(decision, decision.actions.double())
        restored.observe(other, other.actions.double())


def _play_round(
    agent: BanditAgent, twin: BanditAgent, index: int, input_shape: tuple[int, ...]
) -> None:
    candidates = _candidates(index, agent.num_tasks, input_shape)
    before, given = learned_state(agent), candidates.clone()
    decision, other = agent.decide(candidates), twin.decide(candidates)
    require(is_equal(before, learned_state(agent)), "decide changed what the agent has learned")
    require(torch.equal(given, candidates), "decide changed the candidates")
    require(
        torch.equal(decision.actions, other.actions),
        "agents that were built alike decided differently",
    )
    rewards = torch.linspace(0, 1, agent.num_tasks, dtype=torch.float64)
    _check_decision(decision, candidates)
    _check_refusals(agent, decision, rewards, candidates)
    require_numbers(agent.diagnostics())
    agent.observe(decision, rewards)
    twin.observe(other, rewards)


def _check_decision(decision: Decision, candidates: Tensor) -> None:
    rows = torch.arange(len(candidates))
    require(
        len(decision) == len(candidates)
        and torch.equal(decision.inputs.to(candidates.dtype), candidates[rows, decision.actions]),
        "the inputs of a decision are not those of the chosen actions",
    )
    require(bool(decision.optimistic_values.isfinite().all()), "a decision has non-finite values")


def _check_refusals(
    agent: BanditAgent, decision: Decision, rewards: Tensor, candidates: Tensor
) -> None:
    for wrong, what in [
        (torch.cat([rewards, rewards]), "rewards of the wrong length"),
        (rewards * torch.nan, "NaN rewards"),
        (rewards + torch.inf, "infinite rewards"),
    ]:
        require_refusal(agent, partial(agent.observe, decision, wrong), what)
    for wrong, what in [
        (candidates * torch.nan, "NaN candidates"),
        (candidates[0, 0], "candidates without rows"),
    ]:
        require_refusal(agent, partial(agent.decide, wrong), what)


def _check_partial_rounds(agent: BanditAgent, input_shape: tuple[int, ...]) -> None:
    """A row of one task, a mask that leaves one action, and rewards in another order."""
    first_task = torch.tensor([0])
    late = agent.decide(_candidates(5, 1, input_shape), tasks=first_task)
    only_second = torch.tensor([[False, True, False]])
    forced = agent.decide(_candidates(6, 1, input_shape), first_task, only_second)
    require(forced.actions.tolist() == [1], "an action that is not available was chosen")
    require_numbers(agent.diagnostics())
    agent.observe(forced, torch.tensor([0.5]))
    agent.observe(late[[0]], torch.tensor([0.5]))


def check_bandit_environment(make_environment: Callable[[int], BanditEnvironment]) -> None:
    """Check the properties of `BanditEnvironment` on environments built from a seed.

    A round is the same at every call, and depends on the seed and the index. Regrets are not
    negative, and the best action has none. A reward is the mean plus the noise, which is drawn
    before the action is known.

    Args:
        make_environment: builds an environment from a seed.
    """
    require_function(make_environment, "from the seed to an environment")
    environment, twin, other = make_environment(0), make_environment(0), make_environment(1)
    first = _validated(environment.round(1), environment.num_tasks)
    environment.round(2)
    for same, why in [
        (environment.round(1), "round 1 is different after round 2"),
        (twin.round(1), "two environments of one seed have different rounds"),
    ]:
        require(is_equal(_tensors(first), _tensors(same)), why)
    require(not is_equal(_tensors(first), _tensors(other.round(1))), "the seed has no effect")
    require(not is_equal(_tensors(first), _tensors(environment.round(2))), "all rounds are equal")
    _check_round(first, environment.num_tasks)
    require(isinstance(dict(environment.describe()), dict), "describe must return a mapping")


def _validated(found: Any, num_tasks: int) -> BanditRound:
    try:
        return validate_round(found, num_tasks)
    except InvalidInputError as error:
        raise CheckError(str(error)) from None


def _check_round(round_: BanditRound, num_tasks: int) -> None:
    num_actions = round_.mean_rewards.shape[1]
    for name, tensor in _tensors(round_).items():
        require(bool(tensor.isfinite().all()), f"{name} must be finite")
    best = round_.mean_rewards.argmax(1)
    require(bool((round_.regrets(best) == 0).all()), "the best action has regret")
    for action in range(num_actions):
        actions = torch.full((num_tasks,), action)
        require(bool((round_.regrets(actions) >= 0).all()), "a regret is negative")
        noise = round_.rewards(actions) - round_.mean_rewards[:, action]
        expected = round_.noise if round_.noise.ndim == 1 else round_.noise[:, action]
        require(
            torch.allclose(noise.double(), expected.double(), rtol=1e-6, atol=1e-9),
            "a reward is not the mean plus the noise of its task",
        )


def _tensors(round_: BanditRound) -> dict[str, Tensor]:
    return {
        "candidates": round_.candidates,
        "mean_rewards": round_.mean_rewards,
        "noise": round_.noise,
    }


def _candidates(index: int, rows: int, input_shape: tuple[int, ...]) -> Tensor:
    return uniform("candidates", index, rows, NUM_ACTIONS, *input_shape).float()
