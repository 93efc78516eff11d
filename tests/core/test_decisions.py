"""Decisions on some of their rows."""

import pytest
import torch

from gfucb import GFUCB
from gfucb.core.random import random_stream


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (2, [2]),
        (-1, [3]),
        ([3, 0], [3, 0]),
        (slice(1, 3), [1, 2]),
        (torch.tensor([True, False, False, True]), [0, 3]),
        (torch.tensor([2, 2]), [2, 2]),
        ([], []),
    ],
)
def test_some_rows_of_a_decision_are_a_decision(rows, expected):
    draws = random_stream(0, "candidates")
    agent = GFUCB(4, value_range=None)
    decision = agent.decide(torch.rand(4, 5, 3, generator=draws), tasks=[3, 1, 0, 2])
    some = decision[rows]
    assert len(some) == len(expected)
    for name in ("tasks", "actions", "inputs", "optimistic_values"):
        assert torch.equal(getattr(some, name), getattr(decision, name)[expected]), name
    assert torch.equal(some.prediction.mean, decision.prediction.mean[expected])
    assert torch.equal(some.prediction.variance, decision.prediction.variance[expected])
    assert torch.equal(some.features.values, decision.features.values[expected])
