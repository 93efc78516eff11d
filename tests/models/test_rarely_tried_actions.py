"""Actions that were tried too rarely are tried again."""

import math

import pytest
import torch

import gfucb
from gfucb.estimation.table_fit import UNKNOWN_RANGE_RATE
from gfucb.models.head_posterior import LARGEST_UNTRIED_SHARE, UNTRIED_RATE

pytestmark = pytest.mark.slow


def play(rewards_of, num_rounds: int, value_range=(-35.0, 5.0)) -> list[int]:
    agent = gfucb.GFUCB(1, seed=0, value_range=value_range)
    context = torch.tensor([[0.3, -0.2]], dtype=torch.float64)
    candidates = torch.cat([context.expand(2, 2), torch.eye(2, dtype=torch.float64)], dim=1)[None]
    actions = []
    for index in range(num_rounds):
        decision = agent.decide(candidates)
        actions.append(int(decision.actions[0]))
        agent.observe(decision, [rewards_of(actions[-1], index)])
    return actions


def test_one_bad_first_reward_does_not_exclude_an_action():
    """Action 0 pays 5, except the first time; action 1 always pays 0."""
    actions = play(lambda action, index: -35.0 if index == 0 else 5.0 * (action == 0), 60)
    assert actions[0] == 0
    assert sum(action == 0 for action in actions) > UNTRIED_RATE * math.log1p(59)


def test_a_bad_action_is_tried_about_as_often_as_the_logarithm_of_the_time():
    actions = play(lambda action, index: -35.0 * (action == 0), 120)
    tries = sum(action == 0 for action in actions)
    fewest = UNTRIED_RATE * math.log1p(120)
    assert fewest <= tries + 1 and tries <= 2 + 3 * fewest


def test_without_a_known_range_actions_are_tried_more_often_but_at_a_bounded_share():
    """Nearly equal rewards say nothing about a rare large one."""
    actions = play(lambda action, index: 1.0 + 0.01 * action, 300, value_range="auto")
    for num_rounds in (100, 300):
        tries = sum(action == 0 for action in actions[:num_rounds])
        fewest = min(
            UNKNOWN_RANGE_RATE * math.log1p(num_rounds),
            0.5 + LARGEST_UNTRIED_SHARE * num_rounds / 2,
        )
        assert fewest - 1 <= tries <= fewest + 5
