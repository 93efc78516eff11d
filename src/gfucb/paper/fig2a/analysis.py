"""The numbers of Figure 2(a): shares of points above y = x, rank correlations, verdicts, table."""

from __future__ import annotations

import numpy as np
import pandas as pd

from gfucb.paper.bonuses import bonus_statistics
from gfucb.paper.common import Verdict
from gfucb.paper.fig2a.sweep import PAPER_VARIANTS, PRINTED, STABLE, SUM, WIDE
from gfucb.paper.intervals import mean_and_half_width, share_interval

ALMOST_ALL = 0.95
# Rounding of the stored distances.
DISTANCE_TOLERANCE = 1e-6


def statistics_by_method(rows: pd.DataFrame) -> dict[tuple[str, str], dict[str, float]]:
    """Statistics of the points of each (method, radius): one task, the first seed."""
    found = {}
    for key, own in rows[rows["part"] == "point"].groupby(["method", "radius"], sort=False):
        method, radius = key
        found[str(method), str(radius)] = bonus_statistics(own["error"], own["bonus"]) | {
            "images": len(own),
            "outside": float((own["distance"] > 1 + DISTANCE_TOLERANCE).mean()),
        }
    return found


def verdicts(rows: pd.DataFrame) -> list[Verdict]:
    """Coverage and correlation of the paper's procedure, then coverage of our selectors."""
    by_method = statistics_by_method(rows)
    found = []
    if (STABLE, PRINTED) in by_method:
        own = by_method[STABLE, PRINTED]
        covered = f"the optimistic value exceeds the true mean at {own['covered']:.0%}"
        found += [_lies_above("the paper's procedure (stable)", own, covered), _correlates(own)]
    if (SUM, PRINTED) in by_method:
        found.append(_stays_inside(by_method[SUM, PRINTED]))
    for (method, radius), own in by_method.items():
        if method not in PAPER_VARIANTS and radius != WIDE:
            numbers = (
                f"rank correlation {own['correlation']:.2f}, mean bonus {own['bonus']:.2g}, mean "
                f"error {own['error']:.2g}"
            )
            found.append(_lies_above(f"{method}, {radius}", own, numbers))
    return found


def _lies_above(label: str, own: dict[str, float], numbers: str) -> Verdict:
    """Whether the interval of the share of points above y = x is above 95%."""
    count, total = round(own["above"] * own["images"]), int(own["images"])
    low, high = share_interval(count, total)
    return Verdict(
        f"{label}: more than 95% of the points lie above y = x",
        f"{count} of {total} images; {numbers}",
        low > ALMOST_ALL,
        f"{own['above']:.0%} (95% CI {100 * low:.0f} to {100 * high:.0f}%)",
    )


def _correlates(tuned: dict[str, float]) -> Verdict:
    """A rank correlation and its 95% interval (Fisher's transformation)."""
    value, half = tuned["correlation"], 1.96 * np.sqrt(1.06 / max(1.0, tuned["images"] - 3))
    low, high = np.tanh(np.arctanh(np.clip(value, -0.999, 0.999)) + np.array([-half, half]))
    return Verdict(
        "the paper's procedure (stable): bonus and error are correlated",
        f"rank correlation {value:.2f} (95% CI {low:.2f} to {high:.2f})",
        bool(low > 0),
        f"lower limit {low:+.2f}",
    )


def _stays_inside(literal: dict[str, float]) -> Verdict:
    return Verdict(
        "the paper's procedure (literal, sum): the iterates stay in the confidence set "
        "(section 6.3)",
        f"{literal['outside']:.0%} of {literal['images']} images end outside the set, with mean "
        f"bonus {literal['bonus']:.2g}",
        literal["outside"] == 0,
    )


def table(rows: pd.DataFrame) -> str:
    """Statistics of every method and radius, in Markdown."""
    lines = [
        "| method | radius | images | above y = x | optimistic | rank correlation | mean bonus | "
        "outside the set | above, all tasks | correlation, all tasks |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for (method, radius), own in statistics_by_method(rows).items():
        lines.append(
            f"| {method} | {radius} | {own['images']} | {own['above']:.2f} | "
            f"{own['covered']:.2f} | {own['correlation']:.2f} | {own['bonus']:.2g} | "
            f"{own['outside']:.2f} | {_all_tasks(rows, method, radius, 'above')} | "
            f"{_all_tasks(rows, method, radius, 'correlation')} |"
        )
    return "\n".join(lines)


def _all_tasks(rows: pd.DataFrame, method: str, radius: str, column: str) -> str:
    """Mean over tasks with its interval over seeds; empty if only one task was evaluated."""
    own = rows[(rows["part"] == "summary") & (rows["method"] == method)]
    means = own[own["radius"] == radius].groupby("seed")[column].mean()
    return mean_and_half_width(means, ".2f") if len(means) else ""
