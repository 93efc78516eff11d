"""Figure 2(b): does the bonus of fixed test images fall as the training set grows?"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from gfucb.paper.drawing import label_ends, plain_numbers
from gfucb.paper.driver import Options, Reproduction, Verdict
from gfucb.paper.fig2b.sweep import (
    FIXED,
    HEAD,
    OURS,
    PRINTED,
    SEEDS,
    TUNED,
    Sizes,
    curve,
    jobs,
    sizes_of,
)
from gfucb.runs.plots import STYLE

LINES = {
    TUNED: ("the paper's fine-tuning", "#cc79a7"),
    "last layer": ("last layer (our default)", "#d55e00"),
    "linearised": ("linearised", "#0072b2"),
}


def _verdicts(rows: pd.DataFrame) -> list[Verdict]:
    found = []
    for method, (words, _) in LINES.items():
        for radius in (PRINTED, FIXED):
            line = curve(rows, method, radius)
            if len(line) < 2:
                continue
            bonus = line["bonus"].to_numpy(float)
            falls = int((np.diff(bonus) < 0).sum())
            found.append(
                Verdict(
                    f"the average bonus drops as samples increase; {words}, {radius}",
                    f"from {bonus[0]:.2g} with {line.index[0]} samples to {bonus[-1]:.2g} with "
                    f"{line.index[-1]}; it falls in {falls} of {len(bonus) - 1} steps",
                    bool(bonus[-1] < bonus[0]),
                    f"{bonus[-1] / bonus[0]:.2f} of the first",
                )
            )
    return found


def _table(rows: pd.DataFrame) -> str:
    sizes = sorted(rows["samples"].unique().tolist())
    lines = [
        "| | " + " | ".join(f"n = {size}" for size in sizes) + " |",
        "|---" * (1 + len(sizes)) + "|",
    ]
    for method, (words, _) in LINES.items():
        for radius in (PRINTED, FIXED):
            line = curve(rows, method, radius)
            cells = [
                f"{line.loc[n, 'bonus']:.2g} ({line.loc[n, 'deviation']:.1g})"
                if n in line.index
                else ""
                for n in sizes
            ]
            lines.append(f"| {words}, {radius} | " + " | ".join(cells) + " |")
    for method, words in ((TUNED, "error of the paper's fit"), (OURS[0], "error of our fit")):
        line = curve(rows, method, PRINTED)
        cells = [f"{line.loc[n, 'error']:.2g}" if n in line.index else "" for n in sizes]
        lines.append(f"| {words} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _figure(rows: pd.DataFrame) -> Figure:
    with rc_context(STYLE):
        figure = Figure(figsize=(10.4, 4.2), layout=ConstrainedLayoutEngine(wspace=0.06))
        panels = figure.subplots(1, 2, sharey=True)
        for axes, radius in zip(panels, (PRINTED, FIXED), strict=True):
            for method in LINES:
                _draw_line(axes, curve(rows, method, radius), method)
            error = curve(rows, OURS[0], radius)["error"]
            axes.plot(error.index, error, color="#777777", lw=1.4, ls=":")
            axes.set(xscale="log", yscale="log", xlabel="training samples n", title=radius)
            axes.margins(x=0.02)
            plain_numbers(axes, x=True, y=True)
        panels[0].set_ylabel("bonus of a test image\n(mean, ± one standard deviation)")
        _label_lines(panels[1], rows)
        return figure


def _draw_line(axes: Axes, line: pd.DataFrame, method: str) -> None:
    colour = LINES[method][1]
    mean, deviation = line["bonus"], line["deviation"]
    axes.plot(line.index, mean, "o-", ms=4, color=colour, lw=2)
    # On a logarithmic axis a band that reaches zero has no lower end.
    low = (mean - deviation).clip(lower=0.05 * mean)
    axes.fill_between(line.index, low, mean + deviation, color=colour, alpha=0.16, lw=0)


def _label_lines(axes: Axes, rows: pd.DataFrame) -> None:
    ends = {}
    for method, (words, colour) in LINES.items():
        line = curve(rows, method, FIXED)
        if len(line):
            ends[words] = (float(line["bonus"].iloc[-1]), colour)
        if len(line) and method == OURS[0]:
            ends["error of our fit"] = (float(line["error"].iloc[-1]), "#777777")
    label_ends(axes, ends)


def _config(options: Options) -> dict[str, Any]:
    return {"sizes": asdict(sizes_of(options))}


CHOICES = f"""\
- 10 to 20000 samples are more than T * M: they are drawn offline, uniformly, in turn for ten tasks.
  t in B_t is then n / 10; a fixed B, that of t = 200, shows what is due to the data alone.
- The paper's network is fitted from scratch at every size, {Sizes().epochs} epochs or
  {Sizes().gradient_steps} gradient steps, whichever ends first. Our agent learns the same log as it
  grows, fitting anew at a growth of 30%, as it does when it plays.
- Bonuses are those of task {HEAD} at {Sizes().images} fixed test images, each image alone.
  Fine-tuning is slow: one seed, where ours has {len(SEEDS)}, and for the fixed B a fifth of the
  images.
- Bonuses are not clipped, though rewards lie in [0, 1]: above 1 the bonus says nothing.
"""

FIG2B = Reproduction(
    "Figure 2(b): the average bonus of fixed test images drops as the training set grows from 10 "
    "to 20000 samples.",
    jobs,
    _figure,
    _verdicts,
    _config,
    choices=CHOICES,
    table=_table,
)
