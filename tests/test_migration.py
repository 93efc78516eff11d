"""Committed results: the rows of earlier versions, and the script that converts records."""

import dataclasses
import hashlib
import importlib.util
import json
import shutil
from pathlib import Path

import pytest

from gfucb.runs import store
from gfucb.runs.benchmark_results import Ratio
from gfucb.runs.summary import find_runs

ROOT = Path(__file__).parents[1]

# Of the rows that the conversion of records must leave as they are. All others were made anew
# since, and the page of results is compared with them.
ROWS = {
    "linear-mdp": "6fe75e5172607fe6f1a887a33c1c60163ac7356f563e4fc3ee9fe87f271cb91f",
    "lock": "5ec6b930eb41acb0e676bad59b21120935242317c9629601566f5f3d4f779d8f",
}
OLD_RECORD = {
    "asked": {
        "name": "lock",
        "seeds": None,
        "quick": False,
        "config": {"rich_world": {"horizon": 10}, "rich_agent": {"hope": 0.3, "name": "gfucb-mdp"}},
    },
    "made": [
        {"commit": "9a86", "pieces": ["a", "b"], "cpu_seconds": 1.5},
        {"commit": "db4e", "pieces": [], "remark": "5 pieces under way, begun at commit db4e"},
    ],
    "rows": {"a": 3, "b": 4},
    "under_way": {},
}
NEW_RECORD = {
    "settings": {
        "name": "lock",
        "seeds": None,
        "quick": False,
        "config": {
            "rich_environment": {"horizon": 10},
            "rich_agent": {"bonus_scale": 0.3, "name": "gfucb-mdp"},
        },
    },
    "provenance": [
        {"commit": "9a86", "jobs": ["a", "b"], "cpu_seconds": 1.5},
        {"commit": "db4e", "jobs": [], "remark": "5 jobs under way, started at commit db4e"},
    ],
    "rows": {"a": 3, "b": 4},
    "under_way": {},
}


@pytest.fixture
def script():
    path = ROOT / "scripts" / "migrate_results.py"
    spec = importlib.util.spec_from_file_location("migrate_results", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ROWS)
def test_committed_rows_equal_those_before_the_conversion(name):
    content = (ROOT / "results" / name / "rows.csv").read_bytes()
    assert hashlib.sha256(content).hexdigest() == ROWS[name]


def test_records_are_converted_once_and_rows_are_not_touched(script, tmp_path, capsys):
    directory = tmp_path / "results" / "lock"
    directory.mkdir(parents=True)
    path = directory / "provenance.json"
    path.write_text(json.dumps(OLD_RECORD, indent=2) + "\n")
    (directory / "rows.csv").write_text("piece,hope\n1,2\n")
    for expected in ("converted", "unchanged"):
        script.main([str(tmp_path)])
        assert capsys.readouterr().out == f"{expected} {path}\n"
        assert json.loads(path.read_text()) == NEW_RECORD
    assert path.read_text() == json.dumps(NEW_RECORD, indent=2) + "\n"
    assert (directory / "rows.csv").read_text() == "piece,hope\n1,2\n"


def test_benchmarks_are_converted(script, tmp_path):
    (tmp_path / "benchmarks").mkdir()
    path = tmp_path / "benchmarks" / "speed.json"
    old = {"sizes": {"fleet_copies": 20}, "ratios": [{"name": "fleet", "sizes": {"copies": 4}}]}
    path.write_text(json.dumps(old, indent=1) + "\n")
    script.main([str(tmp_path)])
    assert json.loads(path.read_text()) == {
        "sizes": {"batched_replicas": 20},
        "ratios": [{"name": "batched", "sizes": {"replicas": 4}}],
    }


def test_a_file_of_ratios_becomes_run_directories(script, tmp_path, capsys):
    (tmp_path / "benchmarks").mkdir()
    path = tmp_path / "benchmarks" / "cpu.json"
    ratios = [
        Ratio("growth", "late", "early", 0.1 + 0.2, 1 / 3, target=1.5, sizes={"tasks": 10}),
        Ratio("growth, between fits", "late", "early", 1.0, 2.0),
        Ratio("tasks, memory", "many", "few", 3.0, 4.0, "bytes"),
    ]
    provenance = {"commit": "9a86", "clock": "CPU time of the process", "images": "MNIST"}
    provenance |= {"measured": "2026-11-15T21:32:21+00:00", "sizes": {"num_tasks": 10}}
    records = [
        {"name": r.name, "value": r.value, "holds": r.holds} | dataclasses.asdict(r) for r in ratios
    ]
    path.write_text(json.dumps({"provenance": provenance, "ratios": records}, indent=2))
    script.main([str(tmp_path)])
    script.main([str(tmp_path)])  # the second call finds nothing
    assert capsys.readouterr().out.splitlines()[1:] == [f"converted {path.with_suffix('')}"]
    assert not path.exists()
    growth, tasks = find_runs(tmp_path)
    assert [Ratio.from_row(row) for row in store.read_rows(growth)] == ratios[:2]
    assert [Ratio.from_row(row) for row in store.read_rows(tasks)] == ratios[2:]
    assert store.read_provenance(growth)["commit"] == "9a86" and store.is_finished(growth)
    config = store.read_config(tasks)
    assert config["measurement"] == "tasks" and config["sizes"] == {"num_tasks": 10}


def test_a_conversion_that_would_change_a_number_writes_nothing(script, tmp_path):
    path = tmp_path / "record.json"
    path.write_text('{\n "x": 1\n}\n')
    with pytest.raises(SystemExit, match="would change a number"):
        script.migrate(path, lambda record: {"x": 2})
    assert json.loads(path.read_text()) == {"x": 1}


def test_the_committed_files_are_converted(script, tmp_path, capsys):
    for name in ("results", "benchmarks"):
        shutil.copytree(
            ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("jobs", "*.png")
        )
    script.main([str(tmp_path)])
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) > 10 and all(line.startswith("unchanged") for line in printed)
