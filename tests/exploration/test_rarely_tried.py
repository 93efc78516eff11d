"""Rows of one round share the tries of rarely tried actions."""

import torch

import gfucb
from gfucb.core.discrete_actions import with_actions
from gfucb.core.random import random_stream
from gfucb.core.shards import ONE_SHARD
from gfucb.exploration.rarely_tried import required_tries

ROWS, ACTIONS = 6, 3
TASKS = torch.arange(ROWS)
ONE_HOT = torch.eye(ACTIONS, dtype=torch.bool).expand(ROWS, -1, -1)


def required(values: torch.Tensor, missing: list[float], lacking: list[int]) -> torch.Tensor:
    bonuses = torch.ones_like(values)
    return required_tries(
        ONE_HOT[..., lacking], torch.tensor(missing), values, bonuses, TASKS, ONE_SHARD
    )


def test_the_rows_that_lose_least_try_an_action():
    values = torch.zeros(ROWS, ACTIONS).double()
    values[:, 0] = torch.tensor([5.0, 1.0, 4.0, 2.0, 6.0, 3.0])
    found = required(values, [2.0], [1])
    assert found.nonzero().tolist() == [[1, 1], [3, 1]]


def test_a_row_tries_one_action_and_what_is_not_available_is_not_tried():
    values = torch.zeros(ROWS, ACTIONS).double()
    values[1:, 2] = -torch.inf
    found = required(values, [9.0, 9.0], [1, 2])
    assert found.sum(1).tolist() == [1] * ROWS
    assert found[0, 1] and not found[1:, 2].any()


def test_equal_gaps_are_resolved_by_the_number_of_the_task():
    values = torch.zeros(ROWS, ACTIONS).double()
    backwards = required_tries(
        ONE_HOT[..., [1]], torch.tensor([2.0]), values, values, TASKS.flip(0), ONE_SHARD
    )
    assert torch.equal(backwards.flip(0), required(values, [2.0], [1]))


def test_tasks_do_not_all_try_the_same_action_at_once():
    agent = gfucb.GFUCB(20, seed=0)
    contexts = torch.randn(2, 20, 3, generator=random_stream(0, "contexts"), dtype=torch.float64)
    first = agent.decide(with_actions(contexts[0], 4))
    agent.observe(first, torch.ones(20))
    tried = agent.decide(with_actions(contexts[1], 4)).actions
    assert set(tried.tolist()) >= {1, 2, 3}
