"""The rows of `shard_repeats.py`: medians over calls and repetitions, and efficiencies."""

from __future__ import annotations

import statistics
from typing import Any

NAMES = ("fits", "rounds", "steps", "products", "copies", "loops")


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
    found = {}
    for condition in dict.fromkeys(row["condition"] for row in rows):
        kind, part = condition.split()
        if part == "one":
            continue
        ones = [row for row in rows if row["condition"] == f"{kind} one"]
        own = [row for row in rows if row["condition"] == condition]
        share = shards if kind == "strong" else 1
        found[condition] = {
            name: statistics.median(row[name] for row in ones)
            / (share * statistics.median(row[name] for row in own))
            for name in NAMES
            if ones and name in own[0]
        }
    return found
