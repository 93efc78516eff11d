"""The numbers of Figure 2(b): mean bonus by number of samples, verdicts, table."""

from __future__ import annotations

import numpy as np
import pandas as pd

from gfucb.paper.common import Verdict
from gfucb.paper.fig2b.sweep import FINE_TUNING, FIXED, OUR_SELECTORS, PRINTED
from gfucb.runs.summary import half_width

NORMAL_QUANTILE = 1.96

LABELS = {
    FINE_TUNING: "the paper's fine-tuning",
    "last layer": "last layer (our default)",
    "linearised": "linearised",
}


def bonus_curve(rows: pd.DataFrame, method: str, radius: str) -> pd.DataFrame:
    """Bonus, its standard deviation over images, and error by number of samples.

    These are means over seeds.
    """
    return curves_by_seed(rows, method, radius).groupby("samples").mean()


def curves_by_seed(rows: pd.DataFrame, method: str, radius: str) -> pd.DataFrame:
    """The same by number of samples and seed.

    Blocks of images from several jobs are pooled into one set.
    """
    own = rows[(rows["method"] == method) & (rows["radius"] == radius)]
    images = own["images"]
    sums = own.assign(
        bonus=images * own["bonus"],
        error=images * own["error"],
        squares=images * (own["deviation"] ** 2 + own["bonus"] ** 2),
    )
    sums = sums.groupby(["samples", "seed"])[["bonus", "error", "squares", "images"]].sum()
    means = sums.div(sums["images"], axis=0)
    variance = (means["squares"] - means["bonus"] ** 2).clip(lower=0)
    return means[["bonus", "error"]].assign(deviation=variance**0.5, images=sums["images"])


def drop_of_bonus(rows: pd.DataFrame, method: str, radius: str) -> tuple[float, float]:
    """Mean bonus at the smallest size minus at the largest, and the half width of its interval.

    The interval is over seeds; with a single seed over images, which the method treats one by one.
    """
    curves = curves_by_seed(rows, method, radius).reset_index()
    first, last = (
        curves[curves["samples"] == size].set_index("seed")
        for size in (curves["samples"].min(), curves["samples"].max())
    )
    drop = (first["bonus"] - last["bonus"]).dropna().to_numpy(float)
    if len(drop) == 1:
        squares = [(own["deviation"] ** 2 / own["images"]).sum() for own in (first, last)]
        return float(drop[0]), float(NORMAL_QUANTILE * np.sqrt(sum(squares)))
    return float(drop.mean()), half_width(drop)


def verdicts(rows: pd.DataFrame) -> list[Verdict]:
    """Whether the mean bonus at the largest size is below that at the smallest."""
    found = []
    for method, label in LABELS.items():
        for radius in (PRINTED, FIXED):
            curve = bonus_curve(rows, method, radius)
            if len(curve) < 2:
                continue
            bonus = curve["bonus"].to_numpy(float)
            drops = int((np.diff(bonus) < 0).sum())
            drop, half = drop_of_bonus(rows, method, radius)
            found.append(
                Verdict(
                    f"{label}, {radius}: the mean bonus drops as the number of samples grows",
                    f"{bonus[0]:.2g} with {curve.index[0]} samples, {bonus[-1]:.2g} with "
                    f"{curve.index[-1]}; it drops in {drops} of {len(bonus) - 1} steps",
                    drop - half > 0,
                    f"difference {drop:.2g} ± {half:.1g}, last / first = "
                    f"{bonus[-1] / bonus[0]:.2f}",
                )
            )
    return found


def table(rows: pd.DataFrame) -> str:
    """Mean bonus (standard deviation over images) by number of samples, in Markdown."""
    sizes = sorted(rows["samples"].unique().tolist())
    lines = [
        "| mean bonus (deviation) | " + " | ".join(f"n = {size}" for size in sizes) + " |",
        "|---" * (1 + len(sizes)) + "|",
    ]
    for method, label in LABELS.items():
        for radius in (PRINTED, FIXED):
            curve = bonus_curve(rows, method, radius)
            cells = [
                f"{curve.loc[n, 'bonus']:.2g} ({curve.loc[n, 'deviation']:.1g})"
                if n in curve.index
                else ""
                for n in sizes
            ]
            lines.append(f"| {label}, {radius} | " + " | ".join(cells) + " |")
    fits = {FINE_TUNING: "the paper's fit", OUR_SELECTORS[0]: "our fit"}
    for method, label in fits.items():
        curve = bonus_curve(rows, method, PRINTED)
        cells = [f"{curve.loc[n, 'error']:.2g}" if n in curve.index else "" for n in sizes]
        lines.append(f"| mean error of {label} | " + " | ".join(cells) + " |")
    return "\n".join(lines)
