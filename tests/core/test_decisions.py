"""Decisions on some of their rows."""

import numpy as np
import pandas as pd
import pytest
import torch

from gfucb import GFUCB, InvalidInputError
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
        (np.int64(1), [1]),
        (range(2), [0, 1]),
        (pd.Series([True, False, False, True], index=[3, 2, 1, 0]), [0, 3]),
        (pd.Series([True, True, False, False], index=[3, 2, 1, 0]), [0, 1]),
        (pd.Series([True, False, False, True], index=[7, 8, 9, 9]), [0, 3]),
        (pd.Series([3, 1], index=[1, 0]), [3, 1]),
        (pd.array([True, False, False, False], dtype="boolean"), [0]),
        (pd.Series([], dtype=float), []),
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


@pytest.mark.parametrize(
    "rows", ["a", None, 1.0, True, [True], [0.0], [[0], [1]], {0}, [True, None], [[0], [0, 1]]]
)
def test_rows_that_cannot_be_selected_are_refused(rows):
    decision = GFUCB(2).decide(torch.rand(2, 3, 4))
    with pytest.raises(InvalidInputError, match="a mask of 2 booleans, got"):
        decision[rows]


def test_a_loop_over_a_decision_ends_with_its_rows():
    decision = GFUCB(2).decide(torch.rand(2, 3, 4))
    assert [row.tasks.tolist() for row in decision] == [[0], [1]]
    for rows in (2, -3, [2], torch.tensor([-3])):
        with pytest.raises(IndexError, match="rows are numbered 0 to 1, got"):
            decision[rows]
    with pytest.raises(IndexError, match="there are no rows, got 0"):
        decision[[]][0]
