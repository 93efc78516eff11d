"""Drawing functions: heights of labels that must not overlap."""

import numpy as np
import pytest

from gfucb.paper.drawing import spread_heights


def test_heights_that_are_far_apart_stay():
    assert spread_heights([0.1, 0.3, 0.9], gap=0.1) == pytest.approx([0.1, 0.3, 0.9])
    assert spread_heights([], gap=0.1) == []


def test_heights_that_are_too_close_move_apart_around_their_mean():
    assert spread_heights([0.5, 0.5], gap=0.1) == pytest.approx([0.45, 0.55])
    moved = spread_heights([0.2, 0.5, 0.51, 0.52, 0.9], gap=0.1)
    assert np.diff(moved).min() >= 0.1 - 1e-12
    assert moved == pytest.approx([0.2, 0.41, 0.51, 0.61, 0.9])
