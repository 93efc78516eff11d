"""What each solver's width knows of the true error, on digits; and what members it finds.

    python benchmarks/solvers.py --seeds 5

The default agent plays M = 10 tasks; after t rounds its fit is frozen and each solver is asked
about candidates of fresh rounds. Reported, over all candidates: the rank correlation of the
width with the true error of the fit; the mean bonus that covers 95% of the errors, relative to
the best constant bonus (below 1: the width tells inputs apart); the share of the squared width
that is due to the representation. Then, for the joint problem of one round: hope above the
fit's own best values, by how much the constraint is broken, seconds.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from scipy.stats import spearmanr
from torch import Tensor

import gfucb
from gfucb.contracts import Menu
from gfucb.environments import ImageBandit, load_digits
from gfucb.experiments.records import provenance_now
from gfucb.experiments.runner import play
from gfucb.functions import ConfidenceSet, features_of
from gfucb.functions.gradients import WeightSketch
from gfucb.optimism.linearised import Tangent

OUT = Path(__file__).with_suffix(".json")
TASKS, TIMES, FRESH = 10, (20, 60, 200), 20
TRUSTS = (0.1, 1.0, 10.0, 100.0)


def main() -> None:
    """Measure, print, and keep with provenance."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    chosen = parser.parse_args()
    rows = [row for seed in range(chosen.seeds) for row in measured(seed)]
    OUT.write_text(json.dumps({"rows": rows, "provenance": provenance_now()}, indent=1) + "\n")
    show(rows)


def measured(seed: int) -> list[dict[str, float | str]]:
    """All measurements of one seed."""
    world = ImageBandit(load_digits(), num_tasks=TASKS, seed=seed)
    agent, rows, done = gfucb.GFUCB(TASKS, seed=seed), [], 0
    for time_ in TIMES:
        for _ in play(agent, world, num_rounds=time_, rounds_done=done):
            pass
        done = time_
        rounds = [world.round(10_000 + index) for index in range(FRESH)]
        candidates = torch.cat([round_.candidates for round_ in rounds])
        means = torch.cat([round_.mean_rewards for round_ in rounds])
        tasks = torch.arange(TASKS).repeat(FRESH)
        menu = Menu(candidates, tasks, torch.ones(means.shape, dtype=torch.bool))
        confidence_set = agent.confidence_set(candidates.flatten(0, 1))
        errors = (menu.values_of(confidence_set.center) - means).abs().flatten()
        for name, widths, share in widths_of(confidence_set, menu):
            rows.append(
                {"t": time_, "seed": seed, "solver": name, "share": share}
                | quality(widths.flatten(), errors)
            )
        joint = Menu(candidates[:TASKS], tasks[:TASKS], menu.available[:TASKS])
        rows += [{"t": time_, "seed": seed} | row for row in members(confidence_set, joint)]
    return rows


def widths_of(confidence_set: ConfidenceSet, menu: Menu) -> list[tuple[str, Tensor, float]]:
    """Widths [entry, action] of the set of radius 1, and the representation's share of them."""
    features = features_of(
        confidence_set.center.representation, menu.candidates.flatten(0, 1)
    ).unflatten(0, menu.available.shape)
    heads = confidence_set.ellipsoid().squared_widths(features, menu.tasks)
    found = [("last layer", heads.sqrt(), 0.0)]
    for trust in TRUSTS:
        tangent = Tangent.at(confidence_set, menu, WeightSketch(), trust)
        both = tangent.own.square().sum(-1) + tangent.shared.square().sum(-1)
        share = float(tangent.shared.square().sum() / both.sum())
        found.append((f"linearised, trust {trust:g}", both.sqrt(), share))
    tangent = Tangent.at(confidence_set, menu, WeightSketch(), 10.0)
    found.append(("gradient, trust 10", tangent.gradient_widths().sqrt(), float("nan")))
    return found


def quality(widths: Tensor, errors: Tensor) -> dict[str, float]:
    """Rank correlation, and sharpness at 95% coverage."""
    scale = float((errors / widths).quantile(0.95))
    sharpness = scale * float(widths.mean()) / float(errors.quantile(0.95))
    return {
        "correlation": float(spearmanr(widths.numpy(), errors.numpy()).statistic),
        "sharpness": sharpness,
    }


def members(confidence_set: ConfidenceSet, menu: Menu) -> list[dict[str, float | str]]:
    """What solvers find in one round: hope above the fit's, violation, seconds."""
    believed = float(gfucb.Greedy()(confidence_set, menu).values.sum())
    # Paid once a fit by an agent; not a cost of the decision.
    tangents = replace(confidence_set).arrowhead(WeightSketch(), 10.0).tangents
    confidence_set = replace(confidence_set, center_tangents=tangents)
    solvers = {
        "last layer": gfucb.LastLayer(),
        "linearised, trust 10": gfucb.Linearised(),
        "gradient, trust 10": gfucb.Gradient(),
        "certified, trust 10": gfucb.Certified(),
        "certified, trust 1": gfucb.Certified(trust=1.0),
        "fine-tuning, stable": gfucb.FineTuning.stable(),
        "fine-tuning, literal sum": gfucb.FineTuning.literal_sum(),
    }
    rows: list[dict[str, float | str]] = []
    for name, solver in solvers.items():
        begun = time.perf_counter()
        choice = solver(confidence_set, menu)
        seconds = time.perf_counter() - begun
        hope = float(choice.values.sum()) - believed
        rows.append(
            {"solver": name, "hope": hope, "violation": choice.violation, "seconds": seconds}
        )
    return rows


def show(rows: list[dict[str, float | str]]) -> None:
    """Medians over seeds, as tables."""
    for columns in (("correlation", "sharpness", "share"), ("hope", "violation", "seconds")):
        names = list(dict.fromkeys(str(row["solver"]) for row in rows if columns[0] in row))
        print("\n| solver | " + " | ".join(f"{c}, t={t}" for c in columns for t in TIMES) + " |")
        print("|---" * (1 + len(columns) * len(TIMES)) + "|")
        for name in names:
            cells = []
            for column in columns:
                for time_ in TIMES:
                    values = [
                        float(row[column])
                        for row in rows
                        if row["solver"] == name and row["t"] == time_ and column in row
                    ]
                    cells.append(f"{np.median(values):.2g}")
            print(f"| {name} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
