"""Small problems with tables and items, and what can be damaged in a saved state."""

import math
from collections.abc import Callable

import pytest
import torch

from gfucb import GFUCB
from gfucb.core.errors import InvalidInputError
from gfucb.core.random import random_stream

COLUMNS, ARMS = 4, 5


def draw(name: str, *shape: int, index: int = 0) -> torch.Tensor:
    """Uniform in [0, 1]."""
    draws = random_stream(index, "table cases", name)
    return torch.rand(*shape, generator=draws, dtype=torch.float64)


def numbers_of_actions(num_tasks: int, index: int) -> torch.Tensor:
    """Candidates whose columns all belong to the action."""
    return draw("candidates", num_tasks, ARMS, COLUMNS, index=index)


def context_and_arm(num_tasks: int, index: int) -> torch.Tensor:
    """Candidates that are one context for each task, then a one-hot arm."""
    context = draw("candidates", num_tasks, 1, COLUMNS, index=index).expand(-1, ARMS, -1)
    arms = torch.eye(ARMS, dtype=torch.float64).expand(num_tasks, -1, -1)
    return torch.cat([context, arms], dim=2)


def prices(num_tasks: int, index: int) -> torch.Tensor:
    """Candidates that are one context for each task, then a price."""
    context = draw("candidates", num_tasks, 1, COLUMNS, index=index).expand(-1, ARMS, -1)
    values = torch.linspace(0, 1, ARMS, dtype=torch.float64).expand(num_tasks, -1)
    return torch.cat([context, values[..., None]], dim=2)


def items(num_tasks: int, index: int) -> torch.Tensor:
    """Candidates that are ids of twelve items, [row, action]."""
    keys = draw("candidates", num_tasks, 12, index=index)
    return keys.argsort(1)[:, :ARMS]


def reward_of(inputs: torch.Tensor, index: int) -> torch.Tensor:
    """A noisy function of the inputs [row, *input] that all tasks share."""
    values = inputs.double().reshape(len(inputs), -1)
    means = (values * torch.linspace(1, 2, values.shape[1], dtype=torch.float64)).sum(1).sin()
    return means + 0.1 * draw("noise", len(inputs), index=index)


def play(
    agent: GFUCB,
    offer: Callable[[int, int], torch.Tensor],
    rounds: range,
    reward: Callable[[torch.Tensor, int], torch.Tensor] = reward_of,
) -> torch.Tensor:
    """Actions [round, row]."""
    actions = []
    for index in rounds:
        decision = agent.decide(offer(agent.num_tasks, index))
        agent.observe(decision, reward(decision.inputs, index))
        actions.append(decision.actions)
    return torch.stack(actions)


def snapshot(agent: GFUCB) -> dict[str, torch.Tensor]:
    return {name: tensor.clone() for name, tensor in agent.state().items()}


def assert_same_state(agent: GFUCB, expected: dict[str, torch.Tensor]) -> None:
    found = agent.state()
    assert found.keys() == expected.keys()
    different = [name for name in found if not torch.equal(found[name], expected[name])]
    assert not different


def damaged_states(state: dict[str, torch.Tensor]):
    """States with one tensor missing, of another shape, or with a number that is none."""
    for name, tensor in state.items():
        yield f"without {name}", {key: state[key] for key in state if key != name}
        yield f"two of {name}", state | {name: torch.stack([tensor, tensor])}
        is_id = name == "data.inputs" and not tensor.is_floating_point()  # any number is one
        if is_id or tensor.numel() == 0:
            continue
        wrong = tensor.clone(memory_format=torch.contiguous_format)
        wrong.view(-1)[-1] = math.nan if tensor.is_floating_point() else -1
        yield f"a wrong number in {name}", state | {name: wrong}
    kind = "table" if "table.layout" in state else "catalogue"
    for name in ("junk", "posterior.junk", f"{kind}.junk"):
        yield f"with {name}", state | {name: torch.ones(1)}
    asymmetric = state["posterior.covariances"].clone()
    asymmetric[0, 0, 1] += 0.1
    yield "asymmetric covariances", state | {"posterior.covariances": asymmetric}
    for name, position, value in [
        ("counters", 0, 0),
        ("counters", 1, 0),
        ("counters", 1, 10**6),
        ("reward_scale", 0, 1e3),
        ("reward_scale", 2, -1e3),
    ]:
        yield f"{value} in {name}", state | {name: changed(state[name], position, value)}


def changed(tensor: torch.Tensor, position: int, value: float) -> torch.Tensor:
    copy = tensor.clone()
    copy[position] = value
    return copy


def assert_refused(agent: GFUCB, states, question: torch.Tensor) -> None:
    """All `states` are refused, and the agent stays as it is."""
    before, answer = snapshot(agent), agent.decide(question)
    for what, state in states:
        try:
            agent.load_state(state)
        except InvalidInputError:
            assert_same_state(agent, before)
        else:
            pytest.fail(f"a state was accepted: {what}")
    again = agent.decide(question)
    assert torch.equal(again.actions, answer.actions)
    assert torch.equal(again.optimistic_values, answer.optimistic_values)
