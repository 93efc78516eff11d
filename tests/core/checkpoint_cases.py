"""Small agents that are saved and restored, shared by the tests of saved agents."""

import pytest
import torch

import gfucb
from gfucb import GFUCB, VariableProjection
from gfucb.core.errors import SavedStateError

QUICK = VariableProjection(steps=3)


def candidates(seed: int, num_tasks: int = 3) -> torch.Tensor:
    return torch.rand(num_tasks, 4, 5, generator=torch.Generator().manual_seed(seed))


def trained(agent):
    """`agent` after three rounds."""
    for index in range(3):
        decision = agent.decide(candidates(index, agent.num_tasks))
        agent.observe(decision, torch.linspace(0, 1, agent.num_tasks))
    return agent


def small_agent(num_tasks: int = 3, **options) -> GFUCB:
    return trained(GFUCB(num_tasks, fit=options.pop("fit", QUICK), **options))


def assert_refused(agent, path, message: str) -> None:
    """Restoring fails with this message, and the agent's state stays as it was."""
    before = {name: tensor.clone() for name, tensor in agent.state().items()}
    with pytest.raises(SavedStateError, match=message):
        gfucb.restore(agent, path)
    after = agent.state()
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)
