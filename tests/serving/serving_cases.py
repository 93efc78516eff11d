"""Small agents with names, and how their states are compared."""

import torch

from gfucb import Agent
from gfucb.core.random import random_stream

ARMS, COLUMNS = 4, 3


def candidates(rows: int, index: int = 0) -> torch.Tensor:
    draws = random_stream(index, "serving candidates")
    return torch.rand(rows, ARMS, COLUMNS, generator=draws, dtype=torch.float64)


def reward(inputs: torch.Tensor) -> list[float]:
    return (inputs.double().reshape(len(inputs), -1) * 3).sin().sum(1).tolist()


def play(agent: Agent, rounds: range, names: list) -> None:
    """Decide and observe in every round."""
    for index in rounds:
        decision = agent.decide(candidates(len(names), index), tasks=names)
        agent.observe(decision, reward(decision.inputs))


def state_of(agent: Agent) -> dict[str, torch.Tensor]:
    return {name: tensor.clone() for name, tensor in agent.state().items()}


def assert_same(agent: Agent, state: dict[str, torch.Tensor]) -> None:
    """The same names and the same numbers, bit for bit."""
    found = agent.state()
    assert found.keys() == state.keys()
    different = [name for name in state if not torch.equal(found[name], state[name])]
    assert not different
