"""Captions state the numbers of seeds, and panels have letters and labels that lead to curves."""

from pathlib import Path

import pandas as pd
import pytest
from matplotlib.figure import Figure

from gfucb.paper.drawing import label_curve_ends, letter_panels, seed_counts
from gfucb.paper.reproductions import REPRODUCTIONS

RESULTS = Path(__file__).parents[2] / "results"
PAPER = [n for n in REPRODUCTIONS if REPRODUCTIONS.module_of(n).startswith("gfucb.paper.")]


@pytest.mark.parametrize(
    ("counts", "text"),
    [([20, 20], "20 seeds"), ([1], "1 seed"), ([3, 1, 20], "1 to 20 seeds"), ([], "no seeds")],
)
def test_seed_counts(counts, text):
    assert seed_counts(counts) == text


@pytest.mark.parametrize("name", PAPER)
def test_captions_come_from_the_rows(name):
    rows = pd.read_csv(RESULTS / name / "rows.csv")
    caption = REPRODUCTIONS[name].caption(rows)
    assert "seed" in caption and caption.endswith(".")
    fewer = rows[rows["seed"] == rows["seed"].min()]
    if rows["seed"].nunique() > 1:
        assert REPRODUCTIONS[name].caption(fewer) != caption


def test_panels_have_letters_and_labels_lead_to_their_curves():
    panels = Figure().subplots(1, 2)
    letter_panels(panels)
    assert [axes.texts[0].get_text() for axes in panels] == ["(a)", "(b)"]
    axes = panels[1]
    axes.set_ylim(0, 10)
    label_curve_ends(axes, {"low": (2.0, "red"), "lower": (1.9, "blue")})
    labels = {text.get_text(): text for text in axes.texts[1:]}
    assert labels["low"].xy == pytest.approx((1.0, 0.2))
    assert labels["low"].xyann[1] - labels["lower"].xyann[1] == pytest.approx(0.06)
    assert all(label.arrow_patch is not None for label in labels.values())
