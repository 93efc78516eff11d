"""Which setting a refusal names, where saved and own settings differ."""

import pytest
import torch

import gfucb
from gfucb import GFUCB, ConstantRadius
from gfucb.core import checkpoint
from gfucb.core.errors import SavedStateError

RADIUS = ConstantRadius(0.1)


def test_another_value_range_is_refused_although_radius_and_offset_are_equal(tmp_path):
    options = {"squared_radius": RADIUS, "offset": 0.5}
    gfucb.save(GFUCB(2, value_range=(0.0, 2.0), **options), tmp_path / "agent")
    with pytest.raises(SavedStateError, match=r"its value_range is \(0\.0, 2\.0\), this agent's"):
        gfucb.restore(GFUCB(2, value_range=(0.0, 1.0), **options), tmp_path / "agent")


def test_the_first_of_the_agents_own_settings_is_named_in_any_order_of_the_file(
    tmp_path, monkeypatch
):
    """The texts of a file have no order; the type of the agent explains most."""
    gfucb.save(gfucb.Uniform(2), tmp_path / "agent")
    read = checkpoint.read_state
    for is_reversed in (False, True):

        def read_in_order(path, is_reversed=is_reversed):
            state, facts = read(path)
            return state, dict(sorted(facts.items(), reverse=is_reversed))

        monkeypatch.setattr(checkpoint, "read_state", read_in_order)
        with pytest.raises(SavedStateError, match="its agent is Uniform, this agent's is GFUCB"):
            gfucb.restore(GFUCB(3), tmp_path / "agent")


class Careless:
    """An agent of a user that changes before it checks."""

    num_tasks = 2

    def __init__(self) -> None:
        self.total = torch.zeros(1)

    def state(self):
        return {"total": self.total}

    def settings(self):
        return {}

    def load_state(self, state):
        self.total = state["total"]
        if float(self.total) < 0:
            raise ValueError("the total must not be negative")


def test_an_agent_that_changes_before_it_refuses_gets_its_state_back(tmp_path):
    saved, agent = Careless(), Careless()
    saved.total = torch.tensor([-1.0])
    gfucb.save(saved, tmp_path / "agent")
    agent.total = torch.tensor([3.0])
    with pytest.raises(SavedStateError, match="does not fit this agent: the total must not be"):
        gfucb.restore(agent, tmp_path / "agent")
    assert float(agent.total) == 3.0
