"""The numbers of the probe: accuracy by seed and samples, samples needed, verdicts, table."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from gfucb.paper.common import Verdict
from gfucb.paper.intervals import exceeds, mean_and_half_width
from gfucb.paper.probe.sweep import PIXELS, SINGLE_TASK, TEN_TASKS, UNTRAINED

REQUIRED_ACCURACY = 0.95


def accuracies(rows: pd.DataFrame, setting: str, network: str, labels: int) -> pd.DataFrame:
    """Accuracy by seed and number of bandit samples: [seed, samples]."""
    own = rows[(rows["setting"] == setting) & (rows["network"] == network)]
    own = own[own["labels"] == labels]
    return own.pivot_table(index="seed", columns="samples", values="accuracy")


def samples_needed(means: pd.Series, required: float = REQUIRED_ACCURACY) -> str:
    """The number of samples, as text, at which accuracies [samples] first reach `required`.

    Between two measurements the accuracy is interpolated linearly in the logarithm of the samples.
    """
    samples, values = means.index.to_numpy(float), means.to_numpy(float)
    above = np.flatnonzero(values >= required)
    if len(above) == 0:
        return f"more than {samples[-1]:.0f}"
    first = int(above[0])
    if first == 0:
        return f"at most {samples[0]:.0f}"
    low, high = values[first - 1 : first + 1]
    share = (required - low) / (high - low)
    logs = np.log(samples[first - 1 : first + 1])
    return f"about {math.exp(logs[0] + share * (logs[1] - logs[0])):.0f}"


def verdicts(rows: pd.DataFrame) -> list[Verdict]:
    """The paper's 95% for both networks, then ten tasks against a single task."""
    labels = int(rows["labels"].max())
    ten, single, paper = (
        accuracies(rows, setting, network, labels)
        for setting, network in (
            (TEN_TASKS, "default"),
            (SINGLE_TASK, "default"),
            (TEN_TASKS, "paper"),
        )
    )
    found = []
    for label, table in (("our default network", ten), ("the paper's network", paper)):
        if len(table):
            samples = int(table.columns.max())
            setting = f"{label}, M = 10, {samples} samples, {labels} labels"
            found.append(_reaches_required(setting, table[samples]))
    if len(ten) and len(single):
        found += [_samples_verdict(ten, single), *_ten_against_single(ten, single)]
    return found


def _reaches_required(setting: str, values: pd.Series) -> Verdict:
    return Verdict(
        f"{setting}: a linear layer has over 95% accuracy",
        mean_and_half_width(values, ".3f"),
        exceeds(values, REQUIRED_ACCURACY),
        f"{values.mean() - REQUIRED_ACCURACY:+.3f}, {len(values)} seeds",
    )


def _samples_verdict(ten: pd.DataFrame, single: pd.DataFrame) -> Verdict:
    samples = int(ten.columns.max())
    return Verdict(
        f"our default network reaches 95% within {samples} bandit samples, M = 10",
        f"{samples_needed(ten.mean())} samples with M = 10, "
        f"{samples_needed(single.mean())} with a single task",
        any(exceeds(ten[count].dropna(), REQUIRED_ACCURACY) for count in ten),
    )


def _ten_against_single(ten: pd.DataFrame, single: pd.DataFrame) -> list[Verdict]:
    """Compare at equal rounds and at equal samples: both [seed, samples]."""
    samples = int(ten.columns.max())
    rounds, last = samples // 10, ten[samples]
    found = []
    for count, label in ((rounds, f"after {rounds} rounds each"), (samples, "at equal samples")):
        if count in single:
            difference = (last - single[count]).dropna()
            found.append(
                Verdict(
                    f"accuracy is higher with M = 10 than with a single task, {label}",
                    f"{mean_and_half_width(last[difference.index], '.3f')} against "
                    f"{mean_and_half_width(single[count].dropna(), '.3f')}",
                    exceeds(difference),
                    f"difference {mean_and_half_width(difference, '.3f')}, {len(difference)} seeds",
                )
            )
    return found


def table(rows: pd.DataFrame) -> str:
    """Accuracy of every representation by number of labels, in Markdown."""
    counts = sorted(rows["labels"].unique().tolist())
    lines = [
        "| representation | bandit samples | "
        + " | ".join(f"{count} labels" for count in counts)
        + " |",
        "|---" * (2 + len(counts)) + "|",
    ]
    for key, own in rows.groupby(["setting", "network", "samples"], sort=False):
        setting, network, samples = key
        label = setting if setting in (PIXELS, UNTRAINED) else f"{setting}, {network} network"
        cells = [
            mean_and_half_width(own[own["labels"] == count]["accuracy"], ".3f") for count in counts
        ]
        lines.append(f"| {label} | {samples} | " + " | ".join(cells) + " |")
    return "\n".join(lines)
