"""Linear MDPs: what does not knowing the representation cost, and what does sharing it save?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import torch
from matplotlib import rc_context
from matplotlib.figure import Figure

from gfucb.core.random import random_stream
from gfucb.core.records import Row
from gfucb.environments import linear_mdps
from gfucb.paper.driver import Job, Options, Reproduction, Verdict
from gfucb.runs.episodic_agents import EPISODIC_AGENTS, EpisodicAgentConfig, make_episodic_agent
from gfucb.runs.loop import play
from gfucb.runs.plots import STYLE
from gfucb.runs.summary import half_width

SEEDS = tuple(range(20))
NUM_EPISODES = 500
STRIDE = 10  # episodes between two rows of a curve
WORLD = {
    "num_tasks": 10,
    "horizon": 5,
    "num_states": 30,
    "num_actions": 10,
    "feature_dim": 5,
    "input_dim": 20,
    "num_representations": 64,
    "sharpness": 6.0,
    "concentration": 0.1,
    "noise_scale": 0.1,
}
# Chosen on seeds from 1000 on.
FINITE = EpisodicAgentConfig(bonus_scale=0.2)
NETWORK = replace(
    FINITE,
    representation="network",
    share_stages=True,
    next_targets=16,
    fit_steps=100,
    weight_decay=0.3,
)
PARTS = {"finite class": FINITE, "network": NETWORK}
LINES = {
    "oracle-lsvi-ucb": ("LSVI-UCB, true representation", "#222222"),
    "gfucb-mdp": ("shared, unknown representation", "#d55e00"),
    "independent-mdp": ("each task alone", "#009e73"),
}


def _jobs(options: Options) -> list[Job]:
    seeds = options.seeds or ((0, 1) if options.quick else SEEDS)
    return [
        Job(
            f"{part.split()[0]}-{name}-seed={seed}",
            partial(_curve, part, name, seed, options.quick),
        )
        for seed in seeds
        for part in PARTS
        for name in LINES
    ]


def _environment(quick: bool) -> tuple[dict[str, Any], int]:
    small = {"num_tasks": 3, "horizon": 3, "num_states": 8, "num_actions": 4, "input_dim": 6}
    return (WORLD | small | {"num_representations": 8}, 40) if quick else (WORLD, NUM_EPISODES)


def _curve(part: str, name: str, seed: int, quick: bool) -> Sequence[Row]:
    settings, num_episodes = _environment(quick)
    environment = linear_mdps(seed=seed, **settings)
    config = replace(PARTS[part], name=name)
    if quick:
        config = replace(config, fit_steps=5)
    agent = make_episodic_agent(config, environment, seed)
    reads_truth = EPISODIC_AGENTS[name].reads_truth
    rows: list[Row] = []
    violations = 0.0
    for row in play(agent, environment, num_rounds=num_episodes, reads_truth=reads_truth):
        violations += float(row["optimism_violations"])
        episode = int(row["round"])
        if episode % STRIDE == 0:
            rows.append(
                {
                    "part": part,
                    "agent": name,
                    "seed": seed,
                    "episode": episode,
                    "cumulative_regret": round(float(row["cumulative_regret"]), 6),
                    "violations": round(violations / episode, 6),
                }
            )
    return rows


def final_regrets(rows: pd.DataFrame, part: str) -> pd.DataFrame:
    """Regret at the end, [seed, agent]."""
    own = rows[rows["part"] == part]
    last = own[own["episode"] == own["episode"].max()]
    return last.pivot(index="seed", columns="agent", values="cumulative_regret").dropna()


def ratio(values: Any, others: Any) -> tuple[float, float, float]:
    """Ratio of two means over paired seeds, and its 95% interval by the bootstrap over seeds."""
    one, other = np.asarray(values, dtype=float), np.asarray(others, dtype=float)
    shape, generator = (4000, len(one)), random_stream(0, "bootstrap")
    draws = torch.randint(len(one), shape, generator=generator).numpy()
    spread = one[draws].mean(1) / other[draws].mean(1)
    low, high = np.quantile(spread, [0.025, 0.975])
    return float(one.mean() / other.mean()), float(low), float(high)


def _verdicts(rows: pd.DataFrame) -> list[Verdict]:
    found = []
    for part in PARTS:
        final = final_regrets(rows, part)
        for rival, bound, words in (
            ("oracle-lsvi-ucb", 3.0, "LSVI-UCB with the true representation"),
            ("independent-mdp", 0.7, "independent copies"),
        ):
            value, low, high = ratio(final["gfucb-mdp"], final[rival])
            found.append(
                Verdict(
                    f"{part}: regret at most {bound} times that of {words}",
                    f"{value:.2f} (95% {low:.2f} to {high:.2f}), "
                    f"{final['gfucb-mdp'].mean():.1f} against {final[rival].mean():.1f}, "
                    f"{len(final)} paired seeds",
                    value <= bound,
                    f"upper end {high / bound:.2f} of the bound",
                )
            )
    return found


def _figure(rows: pd.DataFrame) -> Figure:
    with rc_context(STYLE):
        figure = Figure(figsize=(9.6, 4.0), layout="constrained")
        panels = figure.subplots(1, len(PARTS), sharey=True)
        for axes, part in zip(panels, PARTS, strict=True):
            for name, (words, colour) in LINES.items():
                own = rows[(rows["part"] == part) & (rows["agent"] == name)]
                table = own.pivot(index="episode", columns="seed", values="cumulative_regret")
                mean = table.mean(axis=1)
                spread = table.apply(lambda line: half_width(line.to_numpy(float)), axis=1)
                axes.plot(table.index, mean, color=colour, label=words, lw=2)
                axes.fill_between(
                    table.index, mean - spread, mean + spread, color=colour, alpha=0.2, lw=0
                )
            axes.set(title=f"phi among a {part}" if "class" in part else f"phi a {part}")
            axes.set(xlabel="episode", xlim=(0, None))
        panels[0].set_ylim(bottom=0)
        panels[0].set_ylabel("cumulative regret of one task")
        panels[0].legend(frameon=False, loc="upper left")
        return figure


def _config(options: Options) -> dict[str, Any]:
    environment, num_episodes = _environment(options.quick)
    agents = {part: asdict(config) for part, config in PARTS.items()}
    return {"environment": environment, "num_episodes": num_episodes, "agents": agents}


LINEAR_MDP = Reproduction(
    "Ten linear MDPs with a shared unknown representation are learned almost as fast as with a "
    "known one, and faster than alone.",
    _jobs,
    _figure,
    _verdicts,
    _config,
)
