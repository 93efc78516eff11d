"""Action selectors on digits: how well widths predict errors, and which functions they find.

    python benchmarks/solvers.py --seeds 5

The default agent plays M = 10 tasks. After t rounds its fit is frozen, and widths are computed
for the candidates of new rounds. Reported over all candidates: the rank correlation of the width
with the absolute error of the fit; the mean bonus that covers 95% of the errors, relative to the
best constant bonus (below 1: the width distinguishes inputs); the share of the squared width that
comes from the representation. For the joint problem of one round: the optimistic value minus the
best value of the fit, the constraint violation, and seconds. The rows of a seed are stored in
`runs/solvers`; a repeated command computes the missing ones.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import torch
from scipy.stats import spearmanr
from torch import Tensor

import gfucb
from gfucb.core.action_sets import ActionSets
from gfucb.environments import ImageBandit, load_digits
from gfucb.exploration.tangent import Tangent
from gfucb.models import ConfidenceSet, features_of
from gfucb.models.tangents import WeightSketch
from gfucb.runs.jobs import Job, run_all
from gfucb.runs.loop import play
from gfucb.runs.store import distinct_provenance
from gfucb.runs.text_files import with_numbers, write_json

RESULTS = Path(__file__).with_suffix(".json")
RUNS = Path(__file__).parents[1] / "runs" / "solvers"
TASKS, TIMES, FRESH = 10, (20, 60, 200), 20
WEIGHT_RIDGES = (0.1, 1.0, 10.0, 100.0)
Measurement = dict[str, float | str]


def main() -> None:
    """Measure, write the rows with provenance, and print tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=RUNS, help="directory of the runs")
    parser.add_argument("--processes", type=int, default=1, help="seeds at a time")
    parser.add_argument("--json", type=Path, default=RESULTS, help="file of all rows")
    chosen = parser.parse_args()
    jobs = [
        Job(f"seed={seed}", partial(measured, seed), settings={"tasks": TASKS, "seed": seed})
        for seed in range(chosen.seeds)
    ]
    computed = run_all(jobs, chosen.out, processes=chosen.processes)
    rows = [with_numbers(row) for own in computed.values() for row in own]
    provenance = distinct_provenance(chosen.out / name for name in computed)
    write_json(chosen.json, {"rows": rows, "provenance": provenance})
    show(rows)


def measured(seed: int) -> list[Measurement]:
    """All measurements of one seed."""
    environment = ImageBandit(load_digits(), num_tasks=TASKS, seed=seed)
    agent, done = gfucb.GFUCB(TASKS, seed=seed, value_range=(0.0, 1.0)), 0
    rows: list[Measurement] = []
    for time_ in TIMES:
        for _ in play(agent, environment, num_rounds=time_, rounds_done=done):
            pass
        done = time_
        rounds = [environment.round(10_000 + index) for index in range(FRESH)]
        candidates = torch.cat([round_.candidates for round_ in rounds])
        means = torch.cat([round_.mean_rewards for round_ in rounds])
        tasks = torch.arange(TASKS).repeat(FRESH)
        action_sets = ActionSets(candidates, tasks, torch.ones(means.shape, dtype=torch.bool))
        confidence_set = agent.confidence_set(candidates.flatten(0, 1))
        errors = (action_sets.values_of(confidence_set.center) - means).abs().flatten()
        for name, widths, share in widths_of(confidence_set, action_sets):
            found: Measurement = {"t": time_, "seed": seed, "solver": name, "share": share}
            rows.append({**found, **quality(widths.flatten(), errors)})
        joint = ActionSets(candidates[:TASKS], tasks[:TASKS], action_sets.available[:TASKS])
        rows += [{"t": time_, "seed": seed, **row} for row in members(confidence_set, joint)]
    return rows


def widths_of(
    confidence_set: ConfidenceSet, action_sets: ActionSets
) -> list[tuple[str, Tensor, float]]:
    """Widths [row, action] of the set of radius 1, and the representation's share of them."""
    features = features_of(
        confidence_set.center.representation, action_sets.candidates.flatten(0, 1)
    ).unflatten(0, action_sets.available.shape)
    ellipsoid = confidence_set.ellipsoid()
    assert ellipsoid is not None, "networks have heads"
    heads = ellipsoid.squared_widths(features, action_sets.tasks)
    found = [("last layer", heads.sqrt(), 0.0)]
    for weight_ridge in WEIGHT_RIDGES:
        tangent = Tangent.at(confidence_set, action_sets, WeightSketch(), weight_ridge)
        both = tangent.own.square().sum(-1) + tangent.shared.square().sum(-1)
        share = float(tangent.shared.square().sum() / both.sum())
        found.append((f"linearised, weight ridge {weight_ridge:g}", both.sqrt(), share))
    tangent = Tangent.at(confidence_set, action_sets, WeightSketch(), 10.0)
    found.append(("gradient, weight ridge 10", tangent.gradient_widths().sqrt(), float("nan")))
    return found


def quality(widths: Tensor, errors: Tensor) -> dict[str, float]:
    """Rank correlation, and sharpness at 95% coverage."""
    scale = float((errors / widths).quantile(0.95))
    sharpness = scale * float(widths.mean()) / float(errors.quantile(0.95))
    return {
        "correlation": float(spearmanr(widths.numpy(), errors.numpy()).statistic),
        "sharpness": sharpness,
    }


def members(confidence_set: ConfidenceSet, action_sets: ActionSets) -> list[Measurement]:
    """Of one joint decision: optimistic value minus the greedy one, violation, seconds."""
    greedy = float(gfucb.Greedy()(confidence_set, action_sets).values.sum())
    # An agent computes these once per fit, so they are not part of the time of a decision.
    tangents = replace(confidence_set).arrowhead(WeightSketch(), 10.0).tangents
    confidence_set = replace(confidence_set, center_tangents=tangents)
    solvers = {
        "last layer": gfucb.LastLayer(),
        "linearised, weight ridge 10": gfucb.exploration.Linearised(),
        "gradient, weight ridge 10": gfucb.exploration.GradientBonus(),
        "certified, weight ridge 10": gfucb.exploration.Certified(),
        "certified, weight ridge 1": gfucb.exploration.Certified(weight_ridge=1.0),
        "fine-tuning, stable": gfucb.exploration.FineTuning.stable(),
        "fine-tuning, literal sum": gfucb.exploration.FineTuning.literal_sum(),
    }
    rows: list[Measurement] = []
    for name, solver in solvers.items():
        started = time.perf_counter()
        choice = solver(confidence_set, action_sets)
        seconds = time.perf_counter() - started
        bonus = float(choice.values.sum()) - greedy
        rows.append(
            {"solver": name, "bonus": bonus, "violation": choice.violation, "seconds": seconds}
        )
    return rows


def show(rows: list[Measurement]) -> None:
    """Medians over seeds, as tables."""
    for columns in (("correlation", "sharpness", "share"), ("bonus", "violation", "seconds")):
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
    main()
