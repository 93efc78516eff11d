"""Every argument of an agent is a setting of its saved state, and a refusal names it."""

import inspect

import pytest
import torch

import gfucb
from gfucb import (
    GFUCB,
    ConstantRadius,
    EpisodicGFUCB,
    LastLayer,
    LinearClass,
    VariableProjection,
)
from gfucb.core import checkpoint
from gfucb.core.errors import SavedStateError
from gfucb.estimation import Contrastive

# Radius and offset are given, because their defaults follow from the value range.
SHARED = {"num_tasks": 2, "squared_radius": ConstantRadius(0.1), "offset": 0.5}
ARGUMENTS = {GFUCB: SHARED, EpisodicGFUCB: SHARED | {"horizon": 2, "backup": "literal"}}
CHANGES = {
    "num_tasks": 3,
    "horizon": 3,
    "representation": LinearClass(4, 2),
    "backup": "pointwise",
    "seed": 1,
    "fit": VariableProjection(steps=3),
    "squared_radius": ConstantRadius(50.0),
    "action_selector": LastLayer(joint=False),
    "ridge": 2.0,
    "head_norm_bound": 9.0,
    "value_range": (0.0, 2.0),
    "reward_range": (0.0, 0.25),
    "offset": 0.25,
    "replan": "every",
    "replan_growth": 3.0,
    "refit_growth": 2.0,
    "self_supervision": Contrastive(),
    "forgetting": "auto",
    "max_samples_per_task": 9,
    "share_stages": True,
    "next_targets": 1,
    "reward_weight": 0.5,
    "warm_start": False,
}
# Where the setting has another name than the argument.
NAMES = {"reward_range": "value_ranges", "replan_growth": "replan", "action_selector": "backup|act"}
NO_SETTINGS = {"device"}


def arguments_of_agents() -> list[tuple[type, str]]:
    return [
        (agent, name)
        for agent in ARGUMENTS
        for name in inspect.signature(agent).parameters
        if name not in NO_SETTINGS
    ]


@pytest.mark.parametrize(("agent", "name"), arguments_of_agents())
def test_an_agent_with_one_other_argument_is_refused_by_its_name(agent, name, tmp_path):
    own = ARGUMENTS[agent]
    gfucb.save(agent(**own | {name: CHANGES[name]}), tmp_path / "agent")
    with pytest.raises(SavedStateError, match=f"its ({NAMES.get(name, name)})"):
        gfucb.restore(agent(**own), tmp_path / "agent")


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
