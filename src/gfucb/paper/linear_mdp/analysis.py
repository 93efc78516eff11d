"""The numbers of the linear MDPs: ratios of final regret over paired seeds, and the verdicts."""

from __future__ import annotations

import pandas as pd

from gfucb.paper.common import Verdict
from gfucb.paper.intervals import paired_ratio
from gfucb.paper.linear_mdp.sweep import INDEPENDENT, ORACLE, PARTS, SHARED

# Largest ratio of regrets, and label, for each baseline.
BASELINES = {
    ORACLE: (3.0, "LSVI-UCB with the true representation"),
    INDEPENDENT: (0.7, "independent agents"),
}


def final_regrets(rows: pd.DataFrame, part: str) -> pd.DataFrame:
    """Regret after the last episode, [seed, agent]."""
    own = rows[rows["part"] == part]
    last = own[own["episode"] == own["episode"].max()]
    return last.pivot(index="seed", columns="agent", values="cumulative_regret").dropna()


def verdicts(rows: pd.DataFrame) -> list[Verdict]:
    """Regret relative to each baseline, for each class of representations."""
    found = []
    for part in PARTS:
        final = final_regrets(rows, part)
        for baseline, (largest, label) in BASELINES.items():
            ratio = paired_ratio(final[SHARED], final[baseline])
            found.append(
                Verdict(
                    f"{part}: regret is at most {largest:g} times the regret of {label}",
                    f"{final[SHARED].mean():.1f} / {final[baseline].mean():.1f} = {ratio}",
                    ratio.value <= largest,
                    f"{len(final)} paired seeds",
                )
            )
    return found
