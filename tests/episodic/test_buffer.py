"""Buffers: distinct rows, counts and targets."""

import numpy as np
import pytest
import torch
from episodic_cases import ONE_HOT, trained

from gfucb.core.errors import InvalidInputError
from gfucb.core.records import Decision, Transitions
from gfucb.environments import tabular_lock
from gfucb.episodic.buffer import StageBuffer
from gfucb.episodic.distinct_rows import DistinctRows
from gfucb.episodic.replay import ReplayBuffer
from gfucb.models import HeadStatistics


def test_recurring_inputs_are_stored_once():
    agent, environment = trained(
        episodes=200, environment=tabular_lock(horizon=3), representation=ONE_HOT
    )
    for buffer in agent.buffers:
        assert len(buffer) == 200 and len(buffer.inputs) <= 6 and len(buffer.next_observations) <= 3
    assert environment.num_states == 3


def transitions(tasks, inputs, rewards, next_candidates=None, ended=None):
    count = len(tasks)
    ended = np.full(count, next_candidates is None) if ended is None else np.array(ended)
    following = None if next_candidates is None else np.array(next_candidates, dtype=float)
    rows = np.array(inputs, dtype=float)
    return Transitions(tasks, rows, np.array(rewards, dtype=float), ended, following)


def test_indices_counts_and_targets():
    buffer = StageBuffer(2)
    first = transitions([0, 1], [[1.0], [1.0]], [0.1, 0.2], [[[5.0]], [[5.0]]])
    second = transitions([0, 0], [[1.0], [2.0]], [0.3, 0.4], [[[6.0]], [[7.0]]], [False, True])
    assert buffer.append(first) == [0, 1]  # equal inputs of different tasks are distinct
    assert buffer.append(second) == [0, 2]
    assert buffer.input_indices.tolist() == [0, 1, 0, 2]
    assert buffer.next_indices.tolist() == [0, 1, 2, -1]
    assert buffer.counts(4).tolist() == [2, 1, 1]
    assert buffer.counts(3).tolist() == [2, 1, 0]
    targets = buffer.targets(np.array([10.0, 20.0, 30.0]))
    np.testing.assert_allclose(targets, [10.1, 20.2, 30.3, 0.4])
    np.testing.assert_allclose(buffer.target_sums(targets), [40.4, 20.2, 0.4])
    assert buffer.num_inputs(2) == 2 and buffer.num_inputs(4) == 3
    assert buffer.first_inputs(4) is buffer.inputs.rows


def test_distinct_dataset_has_mean_targets():
    buffer = StageBuffer(1)
    buffer.append(transitions([0, 0, 0], [[1.0], [2.0], [1.0]], [1.0, 5.0, 3.0]))
    data = buffer.distinct_dataset(buffer.targets(np.zeros(0)))
    assert data.inputs.flatten().tolist() == [1.0, 2.0]
    assert data.targets.tolist() == [2.0, 5.0]


def test_statistics_of_counts_equal_those_of_all_samples():
    buffer = StageBuffer(2)
    rows = [[1.0, 0.0], [0.0, 2.0], [1.0, 0.0], [1.0, 0.0]]
    buffer.append(transitions([0, 1, 0, 1], rows, [1.0, 2.0, 3.0, 4.0]))
    targets = buffer.targets(np.zeros(0))
    counted = buffer.statistics(buffer.inputs.rows, targets, offset=0.5)
    data = buffer.dataset(targets)
    expected = HeadStatistics.of(data.inputs, data.tasks, data.targets - 0.5, 2)
    torch.testing.assert_close(counted.grams, expected.grams)
    torch.testing.assert_close(counted.moments, expected.moments)


def test_added_rows_renew_the_stacked_tensors():
    rows = DistinctRows()
    rows.add([0], np.array([[1.0]]))
    first = rows.rows
    assert rows.rows is first
    assert rows.add([0], np.array([[1.0]])) == [0] and rows.rows is first
    assert rows.add([0], np.array([[2.0]])) == [1] and len(rows.rows) == 2
    assert rows.find([0, 0, 1], np.array([[2.0], [3.0], [2.0]])).tolist() == [1, -1, -1]


def test_validation_stores_nothing():
    replay = ReplayBuffer(1, 2)
    inputs = torch.ones(1, 3, dtype=torch.float64)
    decision = Decision(torch.tensor([0]), torch.tensor([0]), inputs, torch.zeros(1))
    stage, checked = replay.validate(0, decision, [1.0], inputs[None], None)
    assert len(replay) == 0 and replay.input_shape == ()
    replay.append(stage, checked)
    assert len(replay) == 1 and replay.input_shape == (3,)
    with pytest.raises(InvalidInputError, match="pad action sets"):
        replay.validate(0, decision, [1.0], torch.ones(1, 2, 3, dtype=torch.float64), None)
