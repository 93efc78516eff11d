"""The scripts in benchmarks/ store their runs as all commands do."""

import importlib.util
import json
import sys
from functools import partial
from pathlib import Path

import pytest

from gfucb.exploration import FineTuning
from gfucb.runs.store import is_finished, read_config, read_provenance, read_rows
from gfucb.runs.summary import find_runs
from gfucb.runs.text_files import with_numbers

SCRIPTS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def script(monkeypatch):
    def load(name: str):
        spec = importlib.util.spec_from_file_location(f"{name}_script", SCRIPTS / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, f"{name}_script", module)
        spec.loader.exec_module(module)
        return module

    return load


def call(module, monkeypatch, *words: object) -> None:
    monkeypatch.setattr(sys, "argv", [module.__name__, *map(str, words)])
    module.main()


def test_numbers_are_read_as_they_were_written():
    row = {"t": "20", "value": "0.1", "name": "last layer", "share": "nan", "empty": "", "n": "-1"}
    found = with_numbers(row)
    assert found.pop("share") != found.get("share")  # not a number
    assert found == {"t": 20, "value": 0.1, "name": "last layer", "n": -1.0}
    assert isinstance(found["t"], int)


def test_lsvi_speed_stores_its_runs_and_computes_them_once(script, tmp_path, monkeypatch, capsys):
    speed = script("lsvi_speed")
    monkeypatch.setattr(speed, "SEEDS", range(2))
    words = ["--episodes", 3, "--out", tmp_path / "runs", "--json", tmp_path / "speed.json"]
    call(speed, monkeypatch, *words)
    runs = find_runs(tmp_path / "runs")
    assert len(runs) == 6 and all(is_finished(path) for path in runs)
    content = json.loads((tmp_path / "speed.json").read_text())
    (record,) = content["provenance"]
    assert record["versions"] == read_provenance(runs[0])["versions"] and "started" not in record
    for method, line in content["results"].items():
        own = [path for path in runs if read_config(path)["method"] == method]
        seconds = sum(float(row["seconds"]) for path in own for row in read_rows(path))
        assert line["episodes_per_cpu_second"] == pytest.approx(2 * 3 / seconds)
    first = capsys.readouterr().out
    call(speed, monkeypatch, *words)  # times of a second run would differ
    assert capsys.readouterr().out == first


@pytest.mark.slow
def test_solvers_store_the_rows_of_each_seed(script, tmp_path, monkeypatch, capsys):
    solvers = script("solvers")
    for name, value in {"TASKS": 2, "TIMES": (2,), "FRESH": 2, "WEIGHT_RIDGES": (1.0,)}.items():
        monkeypatch.setattr(solvers, name, value)
    for name in ("stable", "literal_sum"):
        make = getattr(FineTuning, name)
        monkeypatch.setattr(FineTuning, name, partial(make, 2))
    words = ["--seeds", 1, "--out", tmp_path / "runs", "--json", tmp_path / "solvers.json"]
    call(solvers, monkeypatch, *words)
    assert [path.name for path in find_runs(tmp_path / "runs")] == ["seed=0"]
    content = json.loads((tmp_path / "solvers.json").read_text())
    assert len(content["provenance"]) == 1
    stored = [row for path in find_runs(tmp_path / "runs") for row in read_rows(path)]
    assert len(content["rows"]) == len(stored) == 3 + 7
    assert {row["t"] for row in content["rows"]} == {2}
    printed = capsys.readouterr().out
    assert "| certified, weight ridge 1 |" in printed and "| last layer |" in printed
