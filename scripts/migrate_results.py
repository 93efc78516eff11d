"""Bring recorded results to the names that this version uses; the numbers stay as they are.

    python scripts/migrate_results.py [DIRECTORY ..]

Converts results/*/provenance.json and benchmarks/*.json, by default below the repository. Keys and
a few labels are renamed, and the fit of agents is named. No rows.csv is touched, and every number
of a converted file is compared with the original before it is written. The ratios of `gfucb bench`,
once a file benchmarks/NAME.json, become run directories benchmarks/NAME/MEASUREMENT. Files that are
already converted stay unchanged, so the script can be run again.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from gfucb.core.files import atomic_write
from gfucb.runs.benchmark_results import Ratio
from gfucb.runs.text_files import csv_text, parse_csv, read_json, write_json, write_text

ROOT = Path(__file__).parents[1]

# Of a reproduction's record: the record itself, and the settings of its claim.
RECORD_KEYS = {"asked": "settings", "made": "provenance", "pieces": "jobs"}
SETTING_KEYS = {
    "world": "environment",
    "rich_world": "rich_environment",
    "hope": "bonus_scale",
    "images_a_piece": "images_per_job",
}
REMARKS = {
    "pieces under way": "jobs under way",
    "begun at": "started at",
    "entered by hand": "added by hand",
}
# Of benchmarks.
BENCHMARK_KEYS = {
    "world": "environment",
    "optimism": "action_selector",
    "trust": "weight_ridge",
    "hope": "bonus",
    "fleet_copies": "batched_replicas",
    "fleet_rounds": "batched_rounds",
    "fleet_alone": "batched_alone",
    "copies": "replicas",
}
LABELS = {
    "the same runs as a fleet": "the same runs as one batch",
    ", as fleets": ", batched",
    "promises kept in nine of ten": "intervals that hold nine of ten rewards",
    ", trust ": ", weight ridge ",
    "seconds a task and round": "seconds per task and round",
    "bytes of state a task": "bytes of state per task",
    "a round that asks ": "a round of ",
    "a menu that repeats": "action sets that repeat",
    "the menu that repeats": "the action sets that repeat",
    "inputs of action sets": "inputs of the action sets",
}
WHOLE_LABELS = {"fleet": "batched"}


def convert_record(record: dict[str, Any]) -> dict[str, Any]:
    """The provenance.json of a reproduction."""
    top = {RECORD_KEYS.get(key, key): value for key, value in record.items()}
    settings = {
        key: _with_fit(_renamed(value, SETTING_KEYS, str)) if key == "config" else value
        for key, value in top["settings"].items()
    }
    entries = [_converted_entry(entry) for entry in top["provenance"]]
    return top | {"settings": settings, "provenance": entries}


def _with_fit(value: Any) -> Any:
    """Name the fit of agents recorded before fits had names: there was only the default."""
    if not isinstance(value, dict):
        return value
    is_agent = "fit_steps" in value and "fit" not in value
    added = {"fit": "default"} if is_agent else {}
    return {key: _with_fit(own) for key, own in value.items()} | added


def _converted_entry(entry: dict[str, Any]) -> dict[str, Any]:
    entry = {RECORD_KEYS.get(key, key): value for key, value in entry.items()}
    if "remark" in entry:
        entry["remark"] = _replaced(entry["remark"], REMARKS)
    return entry


def convert_benchmark(content: Any) -> Any:
    """The results of a benchmark, a dict or a list."""

    def label(text: str) -> str:
        return WHOLE_LABELS.get(text, _replaced(text, LABELS))

    return _renamed(content, BENCHMARK_KEYS, label)


def _replaced(text: str, changes: dict[str, str]) -> str:
    for old, new in changes.items():
        text = text.replace(old, new)
    return text


def _renamed(value: Any, keys: dict[str, str], label: Callable[[str], str]) -> Any:
    if isinstance(value, dict):
        return {keys.get(key, key): _renamed(own, keys, label) for key, own in value.items()}
    if isinstance(value, list):
        return [_renamed(own, keys, label) for own in value]
    return label(value) if isinstance(value, str) else value


def numbers(value: Any) -> Iterator[Any]:
    """All values of a file that are no text, in their order."""
    if isinstance(value, dict):
        for own in value.values():
            yield from numbers(own)
    elif isinstance(value, list):
        for own in value:
            yield from numbers(own)
    elif not isinstance(value, str):
        yield value


def migrate(path: Path, convert: Callable[[dict[str, Any]], dict[str, Any]]) -> bool:
    """Convert a file; whether it changed."""
    text = path.read_text()
    old = json.loads(text)
    new = convert(old)
    if list(numbers(old)) != list(numbers(new)):
        raise SystemExit(f"{path}: the conversion would change a number; nothing was written")
    if new == old:
        return False
    first_line = text.split("\n", 2)[1]
    indent = len(first_line) - len(first_line.lstrip(" "))
    converted = json.dumps(new, indent=indent) + "\n"
    atomic_write(path, lambda temporary: temporary.write_text(converted))
    return True


def migrate_ratios(path: Path) -> bool:
    """Convert a file of ratios to run directories and remove it; whether it was such a file."""
    content = read_json(path)
    if not content.keys() >= {"ratios", "provenance"}:
        return False
    provenance = dict(content["provenance"])
    shared = {name: provenance.pop(name) for name in ("sizes", "clock", "images")}
    measured = provenance.pop("measured")
    device = "cpu" if shared["clock"].startswith("CPU") else "cuda"
    times = {"started": measured, "finished": measured, "cpu_seconds": None, "restored": True}
    by_measurement: dict[str, list[Ratio]] = {}
    for record in content["ratios"]:
        fields = {name: value for name, value in record.items() if name not in ("value", "holds")}
        by_measurement.setdefault(record["name"].split(",")[0], []).append(Ratio(**fields))
    for name, ratios in by_measurement.items():
        text = csv_text([ratio.row() for ratio in ratios])
        if [Ratio.from_row(row) for row in parse_csv(text)] != ratios:
            raise SystemExit(f"{path}: the conversion would change a number; nothing was removed")
        directory = path.with_suffix("") / name
        directory.mkdir(parents=True)
        write_text(directory / "rows.csv", text)
        write_json(directory / "provenance.json", provenance | times)
        # Last: a directory with a config is a run.
        settings = {"measurement": name, "sizes": shared["sizes"], "device": device}
        settings |= {"clock": shared["clock"], "images": shared["images"], "quick": False}
        write_json(directory / "config.json", settings)
    path.unlink()
    return True


CONVERSIONS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "results/*/provenance.json": convert_record,
    "benchmarks/*.json": convert_benchmark,
}


def main(directories: list[str]) -> None:
    """Convert all files below the directories."""
    for root in [Path(name) for name in directories] or [ROOT]:
        for pattern, convert in CONVERSIONS.items():
            for path in sorted(root.glob(pattern)):
                print("converted" if migrate(path, convert) else "unchanged", path)
        for path in sorted(root.glob("benchmarks/*.json")):
            if migrate_ratios(path):
                print("converted", path.with_suffix(""))


if __name__ == "__main__":
    main(sys.argv[1:])
