"""The rows of `shard_repeats.py`: medians over calls and repetitions, and efficiencies."""

from __future__ import annotations

import statistics
from typing import Any

NAMES = ("fits", "rounds", "steps", "products", "memory", "loops")


def together(files: list[list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """One row for each measurement of all processes: medians of the last shard's times."""
    rows = []
    for parts in zip(*files, strict=True):
        if parts[0]["condition"] == "pairs":
            continue
        shards = [part for part in parts if "fits" in part]
        row: dict[str, Any] = {name: parts[0][name] for name in ("condition", "repetition")}
        for name in NAMES:
            if name in shards[0]:
                calls = list(zip(*(shard[name] for shard in shards), strict=True))
                row[name] = statistics.median(max(call) for call in calls)
                row[f"{name}_of_shards"] = [statistics.median(shard[name]) for shard in shards]
        for name in shards[0]:
            if name.startswith("fit_"):
                row[name] = statistics.mean(shard[name] for shard in shards)
        rows.append(row)
    return rows


def efficiencies(rows: list[dict[str, Any]], shards: int) -> dict[str, dict[str, float]]:
    """Of all shards relative to one, from medians over repetitions, for each condition."""
    conditions = dict.fromkeys(row["condition"] for row in rows)
    return {
        condition: _quotients(
            rows, f"{condition.split()[0]} one", condition, shards if "strong" in condition else 1
        )
        for condition in conditions
        if not condition.endswith(" one")
    }


def equal_load(rows: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Of one agent in all shards relative to as many independent agents at the same time."""
    return {
        condition: _quotients(rows, "weak independent", condition, 1)
        for condition in ("weak all", "weak pinned")
        if {condition, "weak independent"} <= {row["condition"] for row in rows}
    }


def _quotients(
    rows: list[dict[str, Any]], reference: str, condition: str, share: int
) -> dict[str, float]:
    def seconds(condition: str, name: str) -> float:
        return statistics.median(row[name] for row in rows if row["condition"] == condition)

    names = set.intersection(
        *(set(row) for row in rows if row["condition"] in (reference, condition))
    )
    return {
        name: seconds(reference, name) / (share * seconds(condition, name))
        for name in NAMES
        if name in names
    }
