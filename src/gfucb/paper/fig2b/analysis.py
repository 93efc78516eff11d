"""The numbers of Figure 2(b): mean bonus by number of samples, verdicts, table."""

from __future__ import annotations

import numpy as np
import pandas as pd

from gfucb.paper.common import Verdict
from gfucb.paper.fig2b.sweep import FINE_TUNING, FIXED, OUR_SELECTORS, PRINTED

LABELS = {
    FINE_TUNING: "the paper's fine-tuning",
    "last layer": "last layer (our default)",
    "linearised": "linearised",
}


def bonus_curve(rows: pd.DataFrame, method: str, radius: str) -> pd.DataFrame:
    """Bonus, its standard deviation over images, and error by number of samples: means over seeds.

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
    table = means[["bonus", "error"]].assign(deviation=variance**0.5, images=sums["images"])
    return table.groupby("samples").mean()


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
            found.append(
                Verdict(
                    f"{label}, {radius}: the mean bonus drops as the number of samples grows",
                    f"{bonus[0]:.2g} with {curve.index[0]} samples, {bonus[-1]:.2g} with "
                    f"{curve.index[-1]}; it drops in {drops} of {len(bonus) - 1} steps",
                    bool(bonus[-1] < bonus[0]),
                    f"last / first = {bonus[-1] / bonus[0]:.2f}",
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
