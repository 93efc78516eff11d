"""What an agent in many shards needs: bytes, time and memory, predicted from small measurements.

    python -m benchmarks.shard_plan --scaling benchmarks/shard_scaling.json \
        --json benchmarks/shard_plan.json

First it predicts the measured cases of `shard_scaling.py` from those of one shard, from the times
of single exchanges, and from how much shards on one machine slow each other down, and prints
measured and predicted times. Then it prints the cases that are too large to measure: 10^6 and 10^8
tasks at 1,000 rounds a second.

The model. A round of n rows in a shard takes n times the seconds of a row, and its exchanges. A fit
takes the seconds of its samples, the seconds that its steps take with any batch, and in every step
a sum of all gradients. What does not depend on the number of tasks follows from the two cases with
one shard, whose batches have different sizes. Over a network a sum of
G bytes over S shards takes the smaller of 2 log2(S) messages of G bytes (a tree) and 2 (S - 1)
messages of G / S bytes (a ring). The memory of a shard is that of its samples, their features, and
its heads.
"""

from __future__ import annotations

import argparse
import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

TOLERANCE = 0.3


@dataclass(frozen=True)
class Machine:
    """What the shards run on.

    Attributes:
        latency: seconds of a message between two shards.
        bandwidth: bytes a second between two shards.
        memory: bytes for each shard.
    """

    latency: float = 50e-6
    bandwidth: float = 1.25e9
    memory: float = 32e9


@dataclass(frozen=True)
class Load:
    """What the agent has to do.

    Attributes:
        tasks: of all shards.
        samples: of each task.
        columns: numbers of an input, 4 bytes each.
        features: of a head.
        rounds: per second.
        rows: decisions in a round.
    """

    tasks: int
    samples: int = 20
    columns: int = 16
    features: int = 128
    rounds: float = 1000.0
    rows: int = 10


@dataclass(frozen=True)
class Costs:
    """Of one shard on one core, from the measurements.

    Attributes:
        row: seconds of a decision and its reward.
        fit: seconds of a fit.
        batch: samples in a step of that fit.
        steps: of that fit.
        gradient: bytes of the gradient of phi.
        exchanges: in a round with the joint choice.
        observe_exchanges: of them in `observe`.
    """

    row: float
    fit: float
    batch: int
    steps: int
    gradient: int
    exchanges: int
    observe_exchanges: int = 5

    @classmethod
    def of(cls, rows: list[dict[str, Any]]) -> Costs:
        """From the rows of weak scaling; the number of exchanges is that of several shards."""
        weak = [row for row in rows if row["kind"] == "weak"]
        one, most = weak[0], weak[-1]
        return cls(
            row=one["rounds_seconds"] / one["tasks"],
            fit=one["fits_seconds"],
            batch=one["batch_size"],
            steps=most["fit_bytes"] // most["gradient_bytes"],
            gradient=one["gradient_bytes"],
            exchanges=most["round_exchanges"],
        )


def fixed_seconds(rows: list[dict[str, Any]], name: str) -> float:
    """What fits or rounds of one shard take for any number of tasks: from two numbers of tasks."""
    alone = sorted((row for row in rows if row["shards"] == 1), key=lambda row: row["tasks"])
    if not alone or alone[0]["tasks"] == alone[-1]["tasks"]:
        return 0.0
    ratio = alone[-1]["tasks"] / alone[0]["tasks"]
    return max(0.0, (ratio * alone[0][name] - alone[-1][name]) / (ratio - 1))


def predicted(
    row: dict[str, Any], first: dict[str, Any], rows: list[dict[str, Any]], steps: int
) -> dict[str, Any]:
    """The times of a measured case from those of the first case of its kind, and of one shard."""
    share, slower = row["tasks"] / first["tasks"], row["work_seconds"] / first["work_seconds"]

    def computed(name: str) -> float:
        fixed = fixed_seconds(rows, name)
        return slower * (fixed + share * (first[name] - fixed))

    fit = computed("fits_seconds") + steps * row["sums_seconds"]
    seconds = computed("rounds_seconds") + row["round_exchanges"] * row["latencies_seconds"]
    return {
        "kind": row["kind"],
        "shards": row["shards"],
        "fit_measured": row["fits_seconds"],
        "fit_predicted": fit,
        "fit_error": fit / row["fits_seconds"] - 1,
        "round_measured": row["rounds_seconds"],
        "round_predicted": seconds,
        "round_error": seconds / row["rounds_seconds"] - 1,
    }


def bytes_of_task(load: Load) -> int:
    """Memory of a task: inputs, features and indices of its samples, moments and head."""
    sample = 4 * load.columns + 8 + 8 + (4 * load.features + 8 + 8)
    return load.samples * sample + 2 * 8 * load.features + 4 * 8


def sum_seconds(size: float, shards: int, machine: Machine) -> float:
    """The time of a sum over shards of `size` bytes each."""
    if shards == 1:
        return 0.0
    depth = math.ceil(math.log2(shards))
    tree = 2 * depth * (machine.latency + size / machine.bandwidth)
    ring = 2 * (shards - 1) * (machine.latency + size / shards / machine.bandwidth)
    return min(tree, ring)


def plan(load: Load, costs: Costs, machine: Machine) -> dict[str, Any]:
    """Shards, memory, bytes and times of a load, and what limits it first."""
    for_memory = math.ceil(load.tasks * bytes_of_task(load) / machine.memory)
    for_rows = math.ceil(load.rounds * load.rows * costs.row)
    shards = 2 ** math.ceil(math.log2(max(1, for_memory, for_rows)))
    exchange = sum_seconds(8, shards, machine)
    joint = costs.exchanges * exchange
    learning = costs.observe_exchanges * exchange
    all_reduce = sum_seconds(costs.gradient, shards, machine)
    # A fit has the steps of the measured one; its last pass computes the features of all samples.
    per_sample = costs.fit / (3 * costs.steps * costs.batch)  # a pass forward is a third of a step
    last_pass = load.tasks * load.samples / shards * per_sample
    limits = {
        "joint choices a second": 1 / joint if joint else math.inf,
        "calls of observe a second": 1 / learning if learning else math.inf,
        "rows a second": shards / costs.row,
    }
    wanted = {
        "joint choices a second": load.rounds,
        "calls of observe a second": load.rounds,
        "rows a second": load.rounds * load.rows,
    }
    return {
        **asdict(load),
        "shards": shards,
        "shards_for_memory": for_memory,
        "shards_for_rows": for_rows,
        "bytes_of_task": bytes_of_task(load),
        "bytes_of_shard": load.tasks * bytes_of_task(load) / shards,
        "fit_bytes_sent_by_shard": 2 * costs.steps * costs.gradient,
        "fit_bytes_of_all": 2 * costs.steps * costs.gradient * shards,
        "all_reduce_seconds": all_reduce,
        "fit_exchange_seconds": costs.steps * all_reduce,
        "fit_last_pass_seconds": last_pass,
        "joint_choice_exchange_seconds": joint,
        "observe_exchange_seconds": learning,
        "possible": limits,
        "breaks": [name for name in limits if limits[name] < wanted[name]],
        "first_break": min(limits, key=lambda name: limits[name] / wanted[name]),
    }


def main() -> None:
    """Print and write the predictions."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scaling", type=Path, required=True)
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--tasks", nargs="+", type=int, default=[10**6, 10**8])
    words = parser.parse_args()
    measured = json.loads(words.scaling.read_text())
    # Independent agents are no shards: they show what the machine allows.
    rows = [row for row in measured["rows"] if row["kind"] != "independent"]
    costs, machine = Costs.of(rows), Machine()
    first = {row["kind"]: row for row in reversed(rows)}
    small = [predicted(row, first[row["kind"]], rows, costs.steps) for row in rows]
    for row in small:
        print(
            f"{row['kind']:6} {row['shards']:3} shards: fit {row['fit_measured']:.3f} s measured, "
            f"{row['fit_predicted']:.3f} s predicted ({row['fit_error']:+.0%}); round "
            f"{row['round_measured']:.4f} s, {row['round_predicted']:.4f} s "
            f"({row['round_error']:+.0%})"
        )
    large = [plan(Load(tasks), costs, machine) for tasks in words.tasks]
    for row in large:
        print(json.dumps(row, indent=2))
    result = {
        "measured": measured["provenance"],
        "tolerance": TOLERANCE,
        "costs": asdict(costs),
        "machine": asdict(machine),
        "small": small,
        "large": large,
    }
    words.json.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
