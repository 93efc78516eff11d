"""The two panels of the linear MDPs: regret curves with a finite class and by default."""

from __future__ import annotations

import pandas as pd
from matplotlib import rc_context
from matplotlib.figure import Figure

from gfucb.paper.drawing import (
    COLUMN,
    COLUMN_STYLE,
    draw_mean_and_band,
    letter_panels,
    seed_counts,
)
from gfucb.paper.linear_mdp.sweep import INDEPENDENT, ORACLE, SHARED

TITLES = {
    "finite class": "finite class of representations",
    "default": "default: learned classes",
}
CURVES = {
    ORACLE: ("LSVI-UCB, true representation", "#222222"),
    SHARED: ("GFUCB, shared representation", "#d55e00"),
    INDEPENDENT: ("independent agents", "#009e73"),
}


def figure(rows: pd.DataFrame) -> Figure:
    """Draw one panel for each class of representations."""
    with rc_context(COLUMN_STYLE):
        drawn = Figure(figsize=(COLUMN, 3.2), layout="constrained")
        titles = {part: TITLES[part] for part in rows["part"].unique()}
        panels = drawn.subplots(1, len(titles), sharey=True, squeeze=False)[0]
        for axes, (part, title) in zip(panels, titles.items(), strict=True):
            for agent, (label, colour) in CURVES.items():
                own = rows[rows["agent"] == agent]
                if agent == ORACLE:  # the same in all parts
                    own = own.drop_duplicates(["seed", "episode"])
                else:
                    own = own[own["part"] == part]
                table = own.pivot(index="episode", columns="seed", values="cumulative_regret")
                draw_mean_and_band(axes, table, color=colour, label=label)
            axes.set(xlabel="episode", xlim=(0, None))
            axes.set_title(title)
        panels[0].set_ylim(bottom=0)
        panels[0].set_ylabel("cumulative regret per task")
        panels[0].legend(frameon=False, loc="upper left")
        letter_panels(panels)
        return drawn


def caption(rows: pd.DataFrame) -> str:
    """Panels, bands and numbers of seeds."""
    seeds = rows.groupby(["part", "agent"])["seed"].nunique()
    return (
        "Regret in linear MDPs: mean over seeds and its 95% interval. (a) A finite class that "
        "has the true representation. (b) The default agent, which learns one. "
        f"{seed_counts(seeds)}."
    )
