"""The numbers by which agents are compared: regret, or the reward where no regret is known."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Metric:
    """A number by which agents are compared, a mean over tasks.

    Attributes:
        name: its column in rows and in summaries, and the name of its figure.
        label: its name in tables.
        title: the number of a whole run, for titles.
        per_round: the number of a round, for captions and axes.
        is_cost: whether a small value is good.
    """

    name: str
    label: str
    title: str
    per_round: str
    is_cost: bool

    def final(self, rows: pd.DataFrame) -> pd.DataFrame:
        """The number of each run, [agent, seed]: the sum of regrets, the mean of rewards."""
        by_run = rows.groupby(["agent", "seed"])
        found = by_run["cumulative_regret"].max() if self.is_cost else by_run["reward"].mean()
        return found.unstack("seed")

    def final_of_run(self, rows: Sequence[Mapping[str, Any]]) -> float:
        """The same of the rows of one run."""
        if self.is_cost:
            return float(rows[-1]["cumulative_regret"])
        return fmean(float(row["reward"]) for row in rows)


REGRET = Metric("regret", "regret", "Regret per task", "regret per decision", is_cost=True)
REWARD = Metric(
    "reward", "mean reward", "Mean reward per task and round", "mean reward", is_cost=False
)


def metric_of(columns: Container[str]) -> Metric:
    """By which number runs are compared, from the columns of their rows or of their summary."""
    return REGRET if "regret" in columns else REWARD


def number_of_seeds(rows: pd.DataFrame) -> int | str:
    """How many seeds agents have in rows of runs: 5, or "2 to 5" if they differ."""
    return as_range(rows.groupby("agent")["seed"].nunique())


def as_range(seeds: pd.Series[int]) -> int | str:
    """The numbers of seeds of several agents: one number if all are equal."""
    fewest, most = int(seeds.min()), int(seeds.max())
    return most if fewest == most else f"{fewest} to {most}"


def count_of_seeds(seeds: int | str) -> str:
    """For captions: "1 seed", "2 to 5 seeds"."""
    return "1 seed" if seeds == 1 else f"{seeds} seeds"
