"""Rows of one task that are decided together explore what one row after another would."""

import torch

import gfucb
from gfucb.core.random import random_stream
from gfucb.exploration import last_layer
from gfucb.models.copy_on_write import CopyOnWriteRows
from gfucb.models.inverse_grams import inverse_grams, parts_of_rows, with_groups

ARMS = 5


def offer(num_rows: int) -> torch.Tensor:
    draws = random_stream(0, "rows of one task")
    context = torch.rand(num_rows, 1, 2, generator=draws, dtype=torch.float64)
    arms = torch.eye(ARMS, dtype=torch.float64).expand(num_rows, -1, -1)
    return torch.cat([context.expand(-1, ARMS, -1), arms], dim=2)


def test_the_first_batch_tries_all_actions():
    agent = gfucb.GFUCB(1, seed=0)
    actions = agent.decide(offer(20), torch.zeros(20, dtype=torch.int64)).actions
    assert int(torch.bincount(actions, minlength=ARMS).min()) >= 3


def test_rows_of_different_tasks_do_not_wait_for_each_other():
    rows, tasks = offer(3), torch.arange(3)
    together = gfucb.GFUCB(3, seed=0).decide(rows, tasks)
    alone = [gfucb.GFUCB(3, seed=0).decide(rows[[row]], tasks[[row]]) for row in range(3)]
    assert together.actions.tolist() == [int(decision.actions[0]) for decision in alone]


def test_decisions_do_not_change_the_agent():
    agent = gfucb.GFUCB(1, seed=0)
    rows, tasks = offer(6), torch.zeros(6, dtype=torch.int64)
    agent.observe(agent.decide(rows, tasks), [0.1, 0.5, 0.2, 0.4, 0.3, 0.0])
    before = {name: tensor.clone() for name, tensor in agent.state().items()}
    first, again = agent.decide(rows, tasks), agent.decide(rows, tasks)
    assert torch.equal(first.actions, again.actions)
    assert all(torch.equal(tensor, before[name]) for name, tensor in agent.state().items())


def test_many_rows_are_decided_in_few_parts():
    tasks = torch.tensor([0] * 100 + [1] * 3)
    parts = parts_of_rows(tasks, last_layer.MOST_PARTS)
    assert len(parts) == last_layer.MOST_PARTS
    assert torch.equal(torch.cat(parts).sort().values, torch.arange(103))
    assert [part.tolist() for part in parts_of_rows(tasks[98:], 8)] == [[0, 2], [1, 3], [4]]


def test_samples_of_a_task_are_added_at_once():
    features = torch.randn(9, 4, generator=random_stream(0, "groups"), dtype=torch.float64)
    tasks = torch.tensor([0, 2, 0, 0, 2, 0, 1, 0, 0])
    start = CopyOnWriteRows(torch.eye(4, dtype=torch.float64).repeat(3, 1, 1))
    expected = inverse_grams(features, tasks, 3)
    torch.testing.assert_close(with_groups(start, tasks, features).whole, expected)
    one = torch.tensor([6, 8, 1])
    found = with_groups(start, tasks[one], features[one]).whole
    torch.testing.assert_close(found, inverse_grams(features[one], tasks[one], 3))
