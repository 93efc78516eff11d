"""Registered linear agents: settings reach the agent, environments state what they need."""

from types import SimpleNamespace

import pytest
import torch

from gfucb.bandits import LinearUCB
from gfucb.bandits.linear_features import FourierInputs, OneHotItems
from gfucb.bandits.matrix_factorisation import MatrixFactorisation
from gfucb.checks import check_bandit_agent
from gfucb.core.errors import InvalidInputError
from gfucb.core.records import BanditRound
from gfucb.environments import WheelBandit
from gfucb.runs import AGENTS, make_agent, play
from gfucb.runs.agents.linear_agents import FactorisationConfig, LinearAgentConfig

DISJOINT = [name for name in AGENTS if "-arms-" in name]


class Catalogue:
    num_tasks, num_items, value_range = 3, 6, (0.0, 2.0)

    def round(self, index):
        means = torch.linspace(0, 1, 18, dtype=torch.float64).view(3, 6)
        items = torch.arange(6).expand(3, 6)
        return BanditRound(items, means, torch.zeros(3, dtype=torch.float64), means[:, :, None])

    def describe(self):
        return {}


@pytest.mark.parametrize("name", DISJOINT)
def test_disjoint_arms_play_where_arms_are_stated(name):
    environment = WheelBandit([0.5, 0.8])
    config = LinearAgentConfig(name, alpha=0.1, length=0.2, num_features=9)
    agent = make_agent(config, environment, 3)
    assert isinstance(agent, LinearUCB) and agent.num_arms == 5
    assert agent.alpha == pytest.approx(5.0)  # in units of the range 0 .. 50
    if name.startswith("fourier"):
        assert agent.features == FourierInputs(9, 0.2, 3)
    assert list(play(agent, environment, num_rounds=3))[-1]["cumulative_regret"] >= 0
    check_bandit_agent(lambda: make_agent(config, environment, 3), input_shape=(7,))
    with pytest.raises(InvalidInputError, match="discrete_actions"):
        make_agent(config, SimpleNamespace(num_tasks=2), 0)


def test_item_numbers_are_one_hot_and_factorised():
    environment = Catalogue()
    linear = make_agent(LinearAgentConfig("linear-shared"), environment, 0)
    assert linear.features == OneHotItems(6)
    factors = make_agent(FactorisationConfig(alpha=0.1, rank=2), environment, 0)
    assert isinstance(factors, MatrixFactorisation) and factors.alpha == pytest.approx(0.2)
    for agent in (linear, factors):
        rows = list(play(agent, environment, num_rounds=12))
        assert rows[-1]["regret"] < 0.1 < rows[0]["regret"]  # from 0.29, that of the first item
    with pytest.raises(InvalidInputError, match="num_items"):
        make_agent(FactorisationConfig(), WheelBandit([0.5]), 0)
