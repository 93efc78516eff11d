"""The comparison with the field: tuning seeds apart from report seeds, pages from results."""

import importlib.util
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from gfucb.runs import AGENTS, BanditAgentConfig
from gfucb.runs.jobs import run_all

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "neural_baselines.py"


@pytest.fixture
def field(tmp_path, monkeypatch):
    spec = importlib.util.spec_from_file_location("field_benchmark", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "field_benchmark", module)
    spec.loader.exec_module(module)
    for name in ("RUNS", "RESULTS", "TABLES"):
        monkeypatch.setattr(module, name, tmp_path / name.lower())
    monkeypatch.setattr(module, "SETTINGS", (module.Setting(2, 3),))
    return module


def test_every_method_is_known_and_has_at_most_one_scale_with_four_values(field):
    settings = {entry.name for entry in fields(BanditAgentConfig)}
    for method, scale in field.SCALE_OF.items():
        assert method in AGENTS
        assert scale is None or (scale in settings and len(set(field.SCALES[scale])) == 4)


def test_tuning_and_report_share_no_seed_and_the_best_value_is_reported(field):
    (setting,) = field.SETTINGS
    played = []
    for jobs in field.phases(setting, ["linucb"], 2, 3):
        run_all(jobs, field.RUNS)
        played.append([(float(job.name.split("/")[2]), job.settings["seed"]) for job in jobs])
    assert [{seed for _, seed in phase} for phase in played] == [{5000}, {5001}, {0}, {1}, {2}]
    assert [len(phase) for phase in played] == [4, 4, 1, 1, 1]
    best, means = field.tuned(setting, "linucb", 2)
    assert {value for phase in played[2:] for value, _ in phase} == {best.value}
    assert means[f"{best.value}"] == min(means.values()) and len(means) == 4

    field.write(2, 3)
    page = field.TABLES.read_text()
    row = next(line for line in page.splitlines() if line.startswith("| linucb"))
    mean = sum(best.regrets(range(3)).values()) / 3
    assert f"{mean:.2f}" in row and f"`alpha` {best.value:g}" in row
    assert '"commit"' in field.RESULTS.read_text()


def test_a_method_that_is_not_tuned_to_the_end_is_not_reported(field):
    (setting,) = field.SETTINGS
    run_all([field.Trial(setting, "linucb", 0.03).job(5000)], field.RUNS)
    assert field.tuned(setting, "linucb", 1) == (None, {})
    assert field.results(setting, 1, 1) == {}
    with pytest.raises(SystemExit, match="yet"):
        field.write(1, 1)
    assert not field.RESULTS.exists()
