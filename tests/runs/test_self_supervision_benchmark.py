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
    monkeypatch.setattr(benchmark, "Sizes", lambda **_: sizes)
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


def test_the_runs_of_the_figure_use_self_supervision_by_default(monkeypatch):
    made = []
    sizes, options = Sizes(num_rounds=1, stride=1), Options(quick=True)
    module = curve_rows.__globals__
    curve = Curve("gfucb", 2, 3, num_tasks=2)

    def make(num_tasks, **settings):
        made.append(settings["self_supervision"])
        return benchmark_gfucb(num_tasks, **settings)

    benchmark_gfucb = module["BATCHED"]["gfucb"]
    monkeypatch.setitem(module["BATCHED"], "gfucb", make)
    curve_rows(curve, [0], sizes, options)
    curve_rows(curve, [0], sizes, options, self_supervision=None)
    assert made == ["auto", None]


def test_the_table_has_the_ratios_of_paired_seeds():
    rows = pd.read_csv(benchmark.FIGURE)
    ten = rows[(rows["agent"] == "gfucb") & (rows["group_size"] == 10)]
    own = ten[(ten["num_actions"] == 10) & (ten["seed"] < 220)]
    twice = own.assign(job="M=10, without", regret=own["regret"] * 2)
    text = benchmark.table(twice)
    line = next(line for line in text.splitlines() if line.startswith("| M=10 | 20"))
    assert "| 0.50 (95% CI 0.50 to 0.50) |" in line
    assert "| K=5 | 20 |" in text  # against greedy
    assert "| M=1 |" not in text


def test_digits_have_ratios_to_linucb():
    without = pd.read_csv(benchmark.WITHOUT_DIGITS).query("agent == 'gfucb' and tasks == 10")
    columns = {"job": "digits, M=10", "group_size": 10, "num_actions": 10, "epsilon": 0.0}
    own = without.assign(**columns, round=200, regret=without["regret"] / 2)
    (line,) = [line for line in benchmark.table(own).splitlines() if "digits, M=10" in line]
    assert "| 20 | 10.43 | 5.21 | 0.50 (95% CI 0.50 to 0.50) | 0.25 (" in line


def test_jobs_on_wrong_views_differ_in_self_supervision_only():
    used, unused = (benchmark.BY_NAME[f"digits rotation{end}"] for end in ("", ", without"))
    assert used.is_used and not unused.is_used
    assert (used.curve, used.images, used.first_seed) == (
        unused.curve,
        unused.images,
        unused.first_seed,
    )
    environment = used.environment(Options(), seed=300)
    images = environment.round(1).candidates
    assert images.shape == (10, 10, 8, 8) and environment.noise_scale == 0.1
