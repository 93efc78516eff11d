"""The numbers of the locks: episodes to the goal, optimism violations, and the verdicts."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd

from gfucb.paper.common import Verdict
from gfucb.paper.intervals import exceeds, mean_and_half_width
from gfucb.paper.lock.sweep import DEFAULT, OPTIMISTIC, ORACLE, PRINTED


def last_rows(rows: pd.DataFrame, part: str) -> pd.DataFrame:
    """The last row of every run; `all_reached`: whether all its tasks reached the goal."""
    own = rows[rows["part"] == part]
    runs = own.groupby(["agent", "horizon", "num_tasks", "seed"])
    last = own.loc[runs["episode"].idxmax()]
    return last.assign(all_reached=last["tasks_there"] == last["num_tasks"])


def verdicts(rows: pd.DataFrame) -> list[Verdict]:
    """Tabular locks of the longest horizon, then rich observations by number of tasks."""
    found = _tabular_verdicts(last_rows(rows, "tabular"))
    rich = last_rows(rows, "rich")
    return found if rich.empty else [*found, *_rich_verdicts(rich)]


def _tabular_verdicts(tabular: pd.DataFrame) -> list[Verdict]:
    horizon = int(tabular["horizon"].max())
    longest = tabular[tabular["horizon"] == horizon]
    default, optimistic, printed = (
        longest[longest["agent"] == agent] for agent in (DEFAULT, OPTIMISTIC, PRINTED)
    )
    printed_reached = int(printed["all_reached"].sum())
    regret_per_episode = printed["cumulative_regret"] / printed["episode"]
    return [
        Verdict(
            f"H = {horizon}, as printed: no seed reaches the goal",
            f"{printed_reached} of {len(printed)} seeds; regret per episode "
            f"{mean_and_half_width(regret_per_episode)}; optimistic value below V* in "
            f"{printed['violations'].mean():.1%} of the episodes",
            printed_reached == 0,
        ),
        _all_reach(f"H = {horizon}, optimistic values backed up", optimistic),
        Verdict(
            f"H = {horizon}, optimistic values backed up: the optimistic value is never below V*",
            f"below in {optimistic['violations'].mean():.2%} of the episodes",
            bool((optimistic["violations"] == 0).all()),
        ),
        _all_reach(f"H = {horizon}, default agent", default),
    ]


def _all_reach(name: str, runs: pd.DataFrame) -> Verdict:
    reached = int(runs["all_reached"].sum())
    return Verdict(
        f"{name}: all seeds reach the goal",
        f"{reached} of {len(runs)} seeds, after {mean_and_half_width(runs['first_goal'])} episodes",
        reached == len(runs),
    )


def _rich_verdicts(rich: pd.DataFrame) -> list[Verdict]:
    is_oracle = rich["agent"] == ORACLE.name
    oracle, learned = rich[is_oracle], rich[~is_oracle]
    by_tasks = {
        m: learned[learned["num_tasks"] == m] for m in sorted(learned["num_tasks"].unique())
    }
    middle = 5 if 5 in by_tasks else max(by_tasks)
    reached = int(by_tasks[middle]["all_reached"].sum())
    required = int(np.ceil(0.9 * len(by_tasks[middle])))
    return [
        Verdict(
            f"rich observations, M = {middle}: all tasks reach the goal on 9 of 10 seeds",
            f"{reached} of {len(by_tasks[middle])} seeds",
            reached >= required,
            f"{mean_and_half_width(by_tasks[middle]['first_goal'])} episodes; with observed states "
            f"LSVI-UCB {mean_and_half_width(oracle[oracle['num_tasks'] == middle]['first_goal'])}",
        ),
        *(
            _fewer_episodes(few, many, by_tasks[few], by_tasks[many])
            for few, many in itertools.product(list(by_tasks)[:1], list(by_tasks)[1:])
        ),
    ]


def _fewer_episodes(few: int, many: int, before: pd.DataFrame, after: pd.DataFrame) -> Verdict:
    """Whether a task needs fewer episodes with more tasks: the 95% interval over paired seeds."""
    first, second = (own.set_index("seed")["first_goal"] for own in (before, after))
    saved = (first - second).dropna()
    return Verdict(
        f"rich observations: fewer episodes per task to the goal with M = {many} than with "
        f"M = {few}",
        f"{mean_and_half_width(second)} against {mean_and_half_width(first)}",
        exceeds(saved),
        f"difference {mean_and_half_width(saved)} episodes, {len(saved)} paired seeds",
    )
