"""The test for changes: few false alarms, and changes are found and dated."""

import pytest
import torch

from gfucb.bandits.drift import DriftMonitor
from gfucb.core.random import random_stream

TASKS, THRESHOLD, CHANGE = 10, 1e4, 80


def alarms(rounds: int, factors, seed: int = 0) -> list[tuple[int, list[int]]]:
    """Rounds with an alarm, and the first sample of each task that is kept then."""
    draws, found = random_stream(seed, "drift"), []
    monitor, seen = DriftMonitor.empty(TASKS), torch.zeros(TASKS, dtype=torch.int64)
    for index in range(rounds):
        errors = torch.randn(TASKS, generator=draws, dtype=torch.float64)
        errors = errors * (1 + 3 / (1 + index / 10)) * factors(index)  # the agent learns
        monitor, seen = monitor.after(torch.arange(TASKS), errors, seen), seen + 1
        first = monitor.alarms(THRESHOLD)
        if first is not None:
            found.append((index, first.tolist()))
            monitor = monitor.after_alarms(first)
    return found


@pytest.mark.parametrize("seed", range(3))
def test_there_is_no_alarm_without_a_change(seed):
    assert alarms(250, lambda _: 1.0, seed) == []


@pytest.mark.parametrize("seed", range(3))
def test_a_change_of_all_tasks_is_found_soon(seed):
    found = alarms(CHANGE + 20, lambda index: 4.0 if index >= CHANGE else 1.0, seed)
    assert found and found[0][0] <= CHANGE + 8
    assert all(CHANGE - 3 <= s <= CHANGE + 20 for _, first in found for s in first if s > 0)
    assert len({task for _, first in found for task in range(TASKS) if first[task]}) == TASKS


def test_a_change_of_one_task_is_found_there():
    own = torch.ones(TASKS, dtype=torch.float64)
    own[3] = 5.0
    found = alarms(CHANGE + 40, lambda index: own if index >= CHANGE else 1.0)
    assert found
    assert {task for _, first in found for task in range(TASKS) if first[task]} == {3}
