"""Figure 2: radii, sizes at which the agent refits, pooling of images."""

import itertools

import numpy as np
import pandas as pd
import pytest

from gfucb.estimation import LogRadius
from gfucb.paper.fig2a import sweep as fig2a
from gfucb.paper.fig2b import sweep as fig2b
from gfucb.paper.fig2b.analysis import bonus_curve


def test_the_radii_are_those_of_the_paper():
    assert fig2a.squared_radius(fig2a.PRINTED, 200, None) == pytest.approx(1.85, abs=0.005)
    assert fig2b.squared_radii(20000) == {
        fig2b.PRINTED: LogRadius()(2000),
        fig2b.FIXED: LogRadius()(200),
    }


def test_refit_sizes_contain_the_grid_and_grow_by_at_most_the_given_factor():
    times = fig2b.refit_sizes((10, 90, 800), 1.3)
    assert {10, 90, 800} <= set(times) and times == sorted(times)
    assert max(b / a for a, b in itertools.pairwise(times)) < 1.3 * 1.04


def test_blocks_of_images_are_pooled_into_one_curve():
    bonus, error = np.random.default_rng(0).random((2, 50))

    def row(seed: int, some: slice) -> dict:
        key = {"method": "m", "radius": "r", "seed": seed, "samples": 30}
        values = {"bonus": bonus[some].mean(), "deviation": bonus[some].std()}
        return {**key, **values, "error": error[some].mean(), "images": len(bonus[some])}

    whole = pd.DataFrame([row(0, slice(None)), row(1, slice(None))])
    parts = [slice(0, 7), slice(7, 20), slice(20, 50)]
    split = pd.DataFrame([row(seed, part) for seed in (0, 1) for part in parts])
    pd.testing.assert_frame_equal(bonus_curve(split, "m", "r"), bonus_curve(whole, "m", "r"))
    assert bonus_curve(whole, "m", "r").loc[30, "deviation"] == pytest.approx(bonus.std())
