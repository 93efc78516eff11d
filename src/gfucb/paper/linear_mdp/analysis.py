"""The numbers of the linear MDPs: ratios of final regret over paired seeds, and the verdicts."""

from __future__ import annotations

import pandas as pd

from gfucb.paper.common import Verdict
from gfucb.paper.intervals import paired_ratio
from gfucb.paper.linear_mdp.sweep import INDEPENDENT, ORACLE, SHARED

# Largest ratio of regrets, and label, for each baseline.
BASELINES = {
    ORACLE: (1.5, "LSVI-UCB with the true representation"),
    INDEPENDENT: (0.7, "independent agents"),
}


def final_regrets(rows: pd.DataFrame, part: str) -> pd.DataFrame:
    """Regret after the last episode, [seed, agent]; all parts have the same oracle."""
    own = rows[(rows["part"] == part) | (rows["agent"] == ORACLE)]
    last = own[own["episode"] == own["episode"].max()].drop_duplicates(["seed", "agent"])
    return last.pivot(index="seed", columns="agent", values="cumulative_regret")


def verdicts(rows: pd.DataFrame) -> list[Verdict]:
    """Regret relative to each baseline, for each class of representations."""
    found = []
    for part in rows["part"].unique():
        final = final_regrets(rows, part)
        for baseline, (largest, label) in BASELINES.items():
            if baseline not in final or SHARED not in final:
                continue
            paired = final[[SHARED, baseline]].dropna()
            ratio = paired_ratio(paired[SHARED], paired[baseline])
            found.append(
                Verdict(
                    f"{part}: regret is at most {largest:g} times the regret of {label}",
                    f"{paired[SHARED].mean():.1f} / {paired[baseline].mean():.1f} = {ratio}",
                    ratio.high < largest,
                    f"{len(paired)} paired seeds",
                )
            )
    return found
