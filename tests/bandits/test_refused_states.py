"""A damaged state of an agent with other data: refused, and nothing of it is kept.

The damage is in one tensor, and all others are valid. An agent that took over what it had checked
so far would have a mixture of two states.
"""

import math
from dataclasses import replace

import pytest
import torch

import gfucb
from gfucb import GFUCB, FiniteClass, VariableProjection
from gfucb.bandits import neural_ucb
from gfucb.core.errors import InvalidInputError
from gfucb.core.random import random_stream
from gfucb.models import IdentityRepresentation

QUICK = VariableProjection(steps=2)


def squares(x: torch.Tensor) -> torch.Tensor:
    return x.double() ** 2


AGENTS = {
    "network": lambda: GFUCB(2, fit=QUICK),
    "finite": lambda: GFUCB(2, FiniteClass([IdentityRepresentation(), squares])),
    "gradients": lambda: neural_ucb(2, fit=QUICK),
    "exploring": lambda: gfucb.EpsilonGreedy(gfucb.linucb(2), epsilon=0.5),
    "grouped": lambda: gfucb.bandits.Grouped(2, lambda tasks, seed: gfucb.linucb(tasks)),
}


def trained(name: str, num_rounds: int):
    agent = AGENTS[name]()
    for index in range(num_rounds):
        draws = random_stream(num_rounds, "refused states", index)
        decision = agent.decide(torch.rand(2, 3, 4, generator=draws))
        agent.observe(decision, torch.rand(2, generator=draws, dtype=torch.float64))
    return agent


def with_wrong_number(tensor: torch.Tensor) -> torch.Tensor:
    changed = tensor.clone()
    changed.view(-1)[-1] = math.nan if tensor.is_floating_point() else -1
    return changed


def with_another_axis(tensor: torch.Tensor) -> torch.Tensor:
    return torch.stack([tensor, tensor])


@pytest.mark.parametrize("damaged", [with_wrong_number, with_another_axis])
@pytest.mark.parametrize("name", AGENTS)
def test_nothing_of_a_damaged_state_is_kept(name, damaged):
    agent, state = trained(name, 2), trained(name, 5).state()
    before = {key: tensor.clone() for key, tensor in agent.state().items()}
    question = torch.rand(2, 3, 4, generator=random_stream(0, "question"))
    answer = agent.decide(question)
    assert any(not torch.equal(before[key], state[key]) for key in before)
    for damage in state:
        with pytest.raises(InvalidInputError):
            agent.load_state(state | {damage: damaged(state[damage])})
        after = agent.state()
        assert before.keys() == after.keys()
        kept = [key for key in before if not torch.equal(before[key], after[key])]
        assert not kept, f"a damaged {damage} changed {kept}"
    again = agent.decide(question)
    assert torch.equal(answer.actions, again.actions)
    assert torch.equal(answer.optimistic_values, again.optimistic_values)


@pytest.mark.parametrize("name", ["network", "finite"])
def test_a_refused_state_leaves_the_diagnostics_of_the_last_decision(name):
    agent, state = trained(name, 2), trained(name, 5).state()
    before = agent.diagnostics()
    last = next(reversed(state))
    with pytest.raises(InvalidInputError):
        agent.load_state({key: tensor for key, tensor in state.items() if key != last})
    assert agent.diagnostics() == before


def test_rewards_that_the_inner_agent_refuses_bring_no_new_draws():
    agent = trained("exploring", 2)
    decision = agent.decide(torch.rand(2, 3, 4))
    with pytest.raises(InvalidInputError, match=r"inputs of shape \[4\]"):
        agent.observe(replace(decision, inputs=torch.rand(2, 5), features=None), [0.1, 0.2])
    assert agent.num_updates == 2
