"""Checks to run on one's own agents, environments and solvers: they raise a CheckError that says why.

gfucb.checks.check_agent(lambda: MyAgent(num_tasks=3))
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch
from torch import Tensor

from gfucb.core.errors import GFUCBError, InvalidInputError
from gfucb.core.protocols import ActionSelector, BanditAgent, BanditEnvironment
from gfucb.core.random import random_stream
from gfucb.core.records import ActionSets, Decision
from gfucb.models import ConfidenceSet


class CheckError(GFUCBError, AssertionError):
    """An implementation does not keep its contract."""


def check_agent(make_agent: Callable[[], BanditAgent], input_shape: tuple[int, ...] = (4,)) -> None:
    """Play a few rounds with fresh agents and hold them to `BanditAgent`.

    Deciding learns nothing; equal agents decide equally; a restored agent goes on as the saved
    one; partial rounds, ragged action sets and late rewards are taken; bad rewards change nothing.
    """
    agent, twin = make_agent(), make_agent()
    for index in range(4):
        candidates = _candidates(index, agent.num_tasks, input_shape)
        before = agent.state()
        decision, other = agent.decide(candidates), twin.decide(candidates)
        _require(_equal_but_counters(before, agent.state()), "decide changed what was learned")
        _require(torch.equal(decision.actions, other.actions), "equal agents decided differently")
        rewards = torch.linspace(0, 1, agent.num_tasks, dtype=torch.float64)
        _check_refusal(agent, decision, rewards)
        agent.diagnostics()
        agent.observe(decision, rewards)
        twin.observe(other, rewards)

    late = agent.decide(_candidates(5, 1, input_shape), tasks=torch.tensor([0]))
    ragged = torch.tensor([[False, True, False]])
    forced = agent.decide(_candidates(6, 1, input_shape), torch.tensor([0]), ragged)
    _require(forced.actions.tolist() == [1], "an action that was not available was taken")
    agent.diagnostics()
    agent.observe(forced, torch.tensor([0.5]))
    agent.observe(late[[0]], torch.tensor([0.5]))

    restored = make_agent()
    restored.load_state({name: tensor.clone() for name, tensor in agent.state().items()})
    for index in range(7, 10):
        candidates = _candidates(index, agent.num_tasks, input_shape)
        decision, other = agent.decide(candidates), restored.decide(candidates)
        same = torch.equal(decision.optimistic_values, other.optimistic_values)
        _require(same, "a restored agent bonuses for other values than the one that was saved")
        _require(torch.equal(decision.actions, other.actions), "a restored agent differs")
        agent.observe(decision, decision.actions.double())
        restored.observe(other, other.actions.double())


def check_bandit_environment(make_environment: Callable[[int], BanditEnvironment]) -> None:
    """Hold a environment, made from a seed, to `BanditEnvironment`.

    A round is the same whenever it is asked for; rounds and seeds differ; regrets are not
    negative and the best action has none; the noise does not depend on the action.
    """
    environment, twin, other = make_environment(0), make_environment(0), make_environment(1)
    first, again = environment.round(1), twin.round(1)
    environment.round(2)
    _require(torch.equal(first.candidates, environment.round(1).candidates), "round 1 changed")
    _require(torch.equal(first.candidates, again.candidates), "one seed gave two environments")
    _require(not torch.equal(first.candidates, other.round(1).candidates), "seeds are ignored")
    _require(not torch.equal(first.candidates, environment.round(2).candidates), "rounds are equal")
    _require(len(first.candidates) == environment.num_tasks, "a round has an entry for each task")
    best = first.mean_rewards.argmax(1)
    _require(bool((first.regrets(best) == 0).all()), "the best action has regret")
    for action in range(first.mean_rewards.shape[1]):
        actions = torch.full((environment.num_tasks,), action)
        _require(bool((first.regrets(actions) >= 0).all()), "a regret is negative")
        noise = first.rewards(actions) - first.mean_rewards[:, action]
        torch.testing.assert_close(noise, first.noise)


def check_action_selector(
    solver: ActionSelector,
    cases: Iterable[tuple[ConfidenceSet, ActionSets]],
    *,
    tolerance: float = 1e-6,
) -> None:
    """Hold a solver to `ActionSelector` on confidence sets and action sets of one's own.

    The function returned is a member, its values are those it reports, its actions are
    available, and it bonuses for at least as much as the center.
    """
    for confidence_set, action_sets in cases:
        choice = solver(confidence_set, action_sets)
        center = confidence_set.center
        inputs = action_sets.inputs_of(choice.actions)
        taken = action_sets.available.gather(1, choice.actions[:, None])
        _require(bool(taken.all()), "an action that was not available was taken")
        assert choice.function is not None
        member = confidence_set.contains(choice.function, tolerance=tolerance)
        _require(member, f"the function has left the set: violation {choice.violation:.3g}")
        values = choice.function.values(inputs, action_sets.tasks)
        torch.testing.assert_close(choice.values, values, rtol=tolerance, atol=tolerance)
        believed = (
            action_sets.values_of(center)
            .masked_fill(~action_sets.available, -torch.inf)
            .amax(1)
            .sum()
        )
        _require(
            float(choice.values.sum()) >= float(believed) - tolerance,
            "the optimistic function bonuses for less than the center",
        )


def _check_refusal(agent: BanditAgent, decision: Decision, rewards: Tensor) -> None:
    before = agent.state()
    for bad in (rewards[:-1], rewards * float("nan"), rewards + float("inf")):
        try:
            agent.observe(decision, bad)
        except InvalidInputError:
            _require(_equal_but_counters(before, agent.state()), "refused rewards left a trace")
        else:
            raise CheckError(f"rewards {bad.tolist()} were accepted")


def _equal_but_counters(one: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    """Whether two states are equal; how often an agent threw dice is not something learned."""
    names = {name for name in one.keys() | other.keys() if not name.endswith("num_decisions")}
    return all(
        name in one and name in other and torch.equal(one[name], other[name]) for name in names
    )


def _candidates(index: int, entries: int, input_shape: tuple[int, ...]) -> Tensor:
    generator = random_stream(0, "checks", index)
    return torch.rand(entries, 3, *input_shape, generator=generator)


def _require(claim: bool, otherwise: str) -> None:
    if not claim:
        raise CheckError(otherwise)
