"""The benchmark of self-supervision: jobs that resume, and a table of ratios on paired seeds."""

import json

import pandas as pd
import pytest
from benchmarks import self_supervision as benchmark

from gfucb.paper.common import Options
from gfucb.paper.fig1.sweep import Curve, Sizes, curve_rows


@pytest.fixture
def job(monkeypatch):
    sizes = Sizes(num_rounds=4, stride=2)
    monkeypatch.setattr(benchmark, "Sizes", lambda: sizes)
    return benchmark.Job("M=10", Curve("gfucb", 2, 3, num_tasks=2), num_seeds=2)


def test_a_finished_job_is_not_made_again(job, tmp_path, capsys):
    options = Options(quick=True)  # digits instead of MNIST
    benchmark.run(job, options, tmp_path)
    rows = (tmp_path / "M=10.csv").read_text()
    assert "M=10" in capsys.readouterr().out
    assert "commit" in json.loads((tmp_path / "M=10.json").read_text())
    benchmark.run(job, options, tmp_path)
    assert capsys.readouterr().out == "" and (tmp_path / "M=10.csv").read_text() == rows
    seeds = {int(line.split(",")[5]) for line in rows.splitlines()[1:]}
    assert seeds == {200, 201}


def test_the_runs_use_self_supervision(monkeypatch):
    made = []
    sizes, options = Sizes(num_rounds=1, stride=1), Options(quick=True)
    module = curve_rows.__globals__
    curve = Curve("gfucb", 2, 3, num_tasks=2)

    def make(num_tasks, **settings):
        made.append(settings["self_supervision"])
        return benchmark_gfucb(num_tasks, **settings)

    benchmark_gfucb = module["BATCHED"]["gfucb"]
    monkeypatch.setitem(module["BATCHED"], "gfucb", make)
    curve_rows(curve, [0], sizes, options, self_supervision="auto")
    curve_rows(curve, [0], sizes, options)
    assert made == ["auto", None]


def test_the_table_has_the_ratios_of_paired_seeds():
    without = pd.read_csv(benchmark.WITHOUT)
    ten = without[(without["agent"] == "gfucb") & (without["group_size"] == 10)]
    own = ten[(ten["num_actions"] == 10) & (ten["seed"] < 220)]
    half = own.assign(job="M=10", regret=own["regret"] / 2)
    greedy = half.assign(job="M=10, greedy", agent="greedy", regret=half["regret"] * 4)
    text = benchmark.table(pd.concat([half, greedy]))
    line = next(line for line in text.splitlines() if line.startswith("| M=10 | 20"))
    assert "| 0.50 (95% CI 0.50 to 0.50) |" in line
    assert "| M=10 | 0.25 (95% CI 0.25 to 0.25) |" in text
    assert "K=5" not in text
