"""Off-policy estimates of coba and vw-estimators on one small log, for comparison with ours.

    pip install coba==8.1.0 vw-estimators==0.2.2 vowpalwabbit==9.11.9
    python benchmarks/off_policy_reference.py --json benchmarks/off_policy_reference.json

The script runs in an environment of its own, without this library. The file has the log, the
probabilities of the policy that is evaluated, its exact value in the contexts of the log, the
numbers of both packages and their versions. `tests/evaluation/test_reference_numbers.py` compares.
"""

from __future__ import annotations

import argparse
import json
import math
import random
from importlib.metadata import version
from pathlib import Path
from typing import Any

# With this seed no running mean of weighted rewards exceeds 1, where vw-estimators departs from the
# theorem: predictions of its confidence sequence are not limited to 1.
ROWS, ACTIONS, SEED = 600, 3, 1
PACKAGES = ("coba", "vw-estimators", "vowpalwabbit")


def make_log() -> dict[str, list[Any]]:
    """A log of an epsilon-greedy policy, columns of numbers with six digits."""
    draws = random.Random(SEED)
    log: dict[str, list[Any]] = {
        name: []
        for name in ("contexts", "actions", "probabilities", "rewards", "policy", "expected")
    }
    for _ in range(ROWS):
        context = [round(draws.uniform(-1, 1), 6) for _ in range(2)]
        expected = [
            round(0.35 + 0.25 * context[0] * (action - 1) + 0.15 * context[1] * (action == 1), 6)
            for action in range(ACTIONS)
        ]
        logged = [0.2] * ACTIONS
        logged[0 if context[1] > 0 else 1] += 0.4
        action = draws.choices(range(ACTIONS), logged)[0]
        best = expected.index(max(expected))
        log["contexts"].append(context)
        log["actions"].append(action)
        log["probabilities"].append(round(logged[action], 6))
        log["rewards"].append(float(draws.random() < expected[action]))
        log["policy"].append([0.7 if a == best else 0.15 for a in range(ACTIONS)])
        log["expected"].append(expected)
    return log


def vw_numbers(log: dict[str, list[Any]]) -> dict[str, Any]:
    """Estimates and 95% intervals of vw-estimators."""
    from estimators.bandits import cs, gaussian, ips, snips

    found = {
        "ips": ips.Estimator(),
        "snips": snips.Estimator(),
        "gaussian": gaussian.Interval(),
        "cs": cs.Interval(rmin=0, rmax=1),
    }
    for action, logged, reward, policy in zip(
        log["actions"], log["probabilities"], log["rewards"], log["policy"], strict=True
    ):
        for estimator in found.values():
            estimator.add_example(logged, reward, policy[action])
    return {name: estimator.get() for name, estimator in found.items()}


def coba_numbers(log: dict[str, list[Any]]) -> dict[str, float]:
    """Means over rows of sum_a pi(a) r(a), with the rewards r that coba assigns to actions."""
    from coba.environments import OpeRewards

    rows = [
        {"context": context, "action": str(action), "reward": reward, "probability": probability}
        for context, action, reward, probability in zip(
            log["contexts"], log["actions"], log["rewards"], log["probabilities"], strict=True
        )
    ]
    numbers = {}
    for kind in ("IPS", "DM", "DR"):
        filled = list(OpeRewards(kind).filter(rows))
        sums = [
            sum(p * row["rewards"](str(action)) for action, p in enumerate(policy))
            for row, policy in zip(filled, log["policy"], strict=True)
        ]
        numbers[kind.lower()] = math.fsum(sums) / ROWS
    return numbers


def exact_value(log: dict[str, list[Any]]) -> float:
    """The expected reward of the policy in the contexts of the log."""
    rows = zip(log["policy"], log["expected"], strict=True)
    return math.fsum(p * r for policy, row in rows for p, r in zip(policy, row, strict=True)) / ROWS


def main() -> None:
    """Compute all numbers and write them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, required=True)
    path = parser.parse_args().json
    log = make_log()
    content = {
        "versions": {name: version(name) for name in PACKAGES},
        "exact": exact_value(log),
        "vw-estimators": vw_numbers(log),
        "coba": coba_numbers(log),
        "log": {name: column for name, column in log.items() if name != "expected"},
    }
    path.write_text(json.dumps(content) + "\n")


if __name__ == "__main__":
    main()
