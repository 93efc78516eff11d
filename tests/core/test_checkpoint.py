import pytest
import torch
from safetensors.torch import save_file

import gfucb
from gfucb import GFUCB, VariableProjection
from gfucb.core.errors import SavedStateError

QUICK = VariableProjection(steps=3)


def taught(num_tasks: int = 3, **options) -> GFUCB:
    agent = GFUCB(num_tasks, fit=QUICK, **options)
    for index in range(3):
        agent.observe(agent.decide(action_sets(index, num_tasks)), torch.linspace(0, 1, num_tasks))
    return agent


def action_sets(seed: int, num_tasks: int = 3) -> torch.Tensor:
    return torch.rand(num_tasks, 4, 5, generator=torch.Generator().manual_seed(seed))


def test_a_restored_agent_goes_on_as_the_saved_one(tmp_path):
    agent = taught()
    gfucb.save(agent, tmp_path / "agent.safetensors")
    restored = GFUCB(3, fit=QUICK)
    gfucb.restore(restored, tmp_path / "agent.safetensors")
    for index in range(10, 16):
        one, other = agent.decide(action_sets(index)), restored.decide(action_sets(index))
        assert torch.equal(one.actions, other.actions)
        assert torch.equal(one.optimistic_values, other.optimistic_values)
        agent.observe(one, one.actions / 4)
        restored.observe(other, other.actions / 4)


def test_an_agent_that_has_learned_nothing_can_be_saved(tmp_path):
    gfucb.save(GFUCB(3), tmp_path / "new")
    agent = taught()
    gfucb.restore(agent, tmp_path / "new")
    assert agent.state() == {}


def refused(agent, path, message: str) -> None:
    before = {name: tensor.clone() for name, tensor in agent.state().items()}
    with pytest.raises(SavedStateError, match=message):
        gfucb.restore(agent, path)
    after = agent.state()
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_a_missing_file(tmp_path):
    refused(taught(), tmp_path / "nowhere", "no saved state at")


@pytest.mark.parametrize("kept", [0, 5, 100, -1])
def test_a_torn_file(tmp_path, kept):
    path = tmp_path / "agent"
    gfucb.save(taught(), path)
    path.write_bytes(path.read_bytes()[:kept])
    refused(taught(), path, "torn")


def test_a_file_of_another_kind(tmp_path):
    path = tmp_path / "foreign"
    save_file({"weights": torch.zeros(2)}, path)
    refused(taught(), path, "not one this library wrote")


def test_a_file_of_another_agent(tmp_path):
    path = tmp_path / "agent"
    gfucb.save(taught(num_tasks=4), path)
    refused(taught(), path, "num_tasks is 4")
    gfucb.save(gfucb.Uniform(3), path)
    refused(taught(), path, "agent is Uniform")


def test_a_file_of_an_agent_built_otherwise(tmp_path):
    path = tmp_path / "agent"
    gfucb.save(GFUCB(3), path)
    other = taught(representation=torch.nn.Linear(5, 7))
    gfucb.save(other, path)
    refused(taught(), path, "does not fit this agent")


def test_saving_replaces_a_file_in_one_move(tmp_path):
    path = tmp_path / "agent"
    gfucb.save(taught(), path)
    gfucb.save(taught(), path)
    assert [p.name for p in tmp_path.iterdir()] == ["agent"]


class Tied(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Linear(5, 5)
        self.second = torch.nn.Linear(5, 5)
        self.second.weight = self.first.weight

    def forward(self, x):
        return self.second(self.first(x))


def test_tied_weights_can_be_saved(tmp_path):
    agent, other = taught(representation=Tied()), taught(representation=Tied())
    gfucb.save(agent, tmp_path / "agent")
    gfucb.restore(other, tmp_path / "agent")
    assert torch.equal(
        agent.decide(action_sets(5)).optimistic_values,
        other.decide(action_sets(5)).optimistic_values,
    )


def test_agents_within_agents_are_saved(tmp_path):
    agent = gfucb.EpsilonGreedy(gfucb.Uniform(3), epsilon=0.5)
    agent.decide(action_sets(0))
    gfucb.save(agent, tmp_path / "agent")
    other = gfucb.EpsilonGreedy(gfucb.Uniform(3), epsilon=0.5)
    gfucb.restore(other, tmp_path / "agent")
    assert (other.num_decisions, other.agent.num_decisions) == (1, 1)


def test_a_file_of_an_agent_with_other_settings(tmp_path):
    gfucb.save(taught(ridge=2.0), tmp_path / "agent")
    refused(taught(), tmp_path / "agent", "its ridge is 2.0, this agent's is 1.0")


def test_saving_into_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(SavedStateError, match="cannot write"):
        gfucb.save(taught(), tmp_path / "nowhere" / "agent")
