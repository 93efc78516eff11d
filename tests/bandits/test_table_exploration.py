"""The default agent on tables: which actions it tries."""

import pytest
import torch
from table_cases import COLUMNS, context_and_arm, draw, play, prices

from gfucb import GFUCB


class TestContinuousActions:
    """Prices from 0 to 1 without context; the best one is in the middle."""

    PRICES = torch.linspace(0, 1, 11).double()

    @pytest.mark.parametrize("value_range", [None, (0.0, 1.0)])
    @pytest.mark.parametrize("num_tasks", [1, 5])
    def test_are_tried_between_the_ends(self, num_tasks, value_range):
        """A line through both ends explains their rewards, and has no uncertainty between them."""
        agent = GFUCB(num_tasks, value_range=value_range)
        candidates = self.PRICES[None, :, None].expand(num_tasks, -1, -1)
        for index in range(20):
            decision = agent.decide(candidates)
            chosen = self.PRICES[decision.actions]
            noise = 0.02 * draw("noise", num_tasks, index=index)
            agent.observe(decision, 3.5 * chosen * (1 - chosen) + noise)
        assert torch.equal((chosen - 0.5).abs() < 0.25, torch.ones(num_tasks).bool())

    def test_are_those_of_the_first_decision(self):
        agent = GFUCB(2)
        play(agent, prices, range(8))
        columns = agent.confidence_set(prices(2, 9)[0]).center.representation.columns
        assert columns.continuous.columns.tolist() == [COLUMNS]
        linear = columns.linear_features(prices(2, 9)[0])
        assert linear.shape[1] == len(columns.action_columns())
        assert linear.shape[1] == 1 + COLUMNS + 1 + columns.continuous.num_features

    def test_need_no_one_hot_actions(self):
        agent = GFUCB(2)
        play(agent, context_and_arm, range(3))
        found = agent.confidence_set(context_and_arm(2, 9)[0]).center.representation
        assert found.columns.continuous is None
