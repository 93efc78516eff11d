"""The numbers of Figure 3: contrast and accuracy by seed, and the verdicts."""

from __future__ import annotations

import pandas as pd

from gfucb.paper.common import Verdict
from gfucb.paper.fig3.sweep import SINGLE_TASK, TEN_TASKS
from gfucb.paper.intervals import exceeds, mean_and_half_width

NETWORKS = {"default": "our default network", "paper": "the paper's network"}


def values_by_seed(rows: pd.DataFrame, quantity: str, setting: str, network: str) -> pd.Series:
    """A quantity by seed."""
    own = rows[(rows["quantity"] == quantity) & (rows["setting"] == setting)]
    return own[own["network"] == network].set_index("seed")["value"].astype(float)


def verdicts(rows: pd.DataFrame) -> list[Verdict]:
    """Three claims for each network."""
    found = []
    for network, label in NETWORKS.items():
        ten, single = (
            values_by_seed(rows, "contrast", setting, network)
            for setting in (TEN_TASKS, SINGLE_TASK)
        )
        if len(ten) and len(single):
            found += [
                _diagonal_is_largest(rows, network, label, ten),
                _diagonal_is_stronger(label, ten, single),
                _digits_are_separated(rows, network, label),
            ]
    return found


def _diagonal_is_largest(
    rows: pd.DataFrame, network: str, label: str, contrast: pd.Series
) -> Verdict:
    wins = values_by_seed(rows, "diagonal wins", TEN_TASKS, network)
    return Verdict(
        f"{label}, M = 10: the diagonal element is the largest of every row of the kernel",
        f"largest in {wins.mean():.0%} of the rows; contrast {_text(contrast)}",
        bool((wins == 1).all()),
    )


def _diagonal_is_stronger(label: str, ten: pd.Series, single: pd.Series) -> Verdict:
    return Verdict(
        f"{label}: the contrast of the diagonal is higher with M = 10 than with a single task",
        f"{_text(ten)} against {_text(single)}",
        exceeds(ten - single),
        f"difference {_text(ten - single)}, {len(ten)} seeds",
    )


def _digits_are_separated(rows: pd.DataFrame, network: str, label: str) -> Verdict:
    ten, single = (
        values_by_seed(rows, "accuracy", setting, network) for setting in (TEN_TASKS, SINGLE_TASK)
    )
    return Verdict(
        f"{label}: the nearest class mean is more accurate with M = 10 than with a single task",
        f"{_text(ten)} against {_text(single)}",
        exceeds(ten - single),
        f"difference {_text(ten - single)}, {len(ten)} seeds",
    )


def _text(values: pd.Series) -> str:
    return mean_and_half_width(values, ".2f")
