"""The command of the suite: rows, resume, tuning apart from the report, tables with intervals."""

import json
from itertools import islice
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from benchmarks.suite import running
from benchmarks.suite.__main__ import main, parser, plan_of
from benchmarks.suite.analysis import (
    RUN_COLUMNS,
    contender_table,
    ratio_interval,
    ratio_table,
)
from benchmarks.suite.contenders import CONTENDERS, DEFAULT, Contender, Registered
from benchmarks.suite.families import FAMILIES, Family
from benchmarks.suite.playing import ProblemRun, play_problem
from benchmarks.suite.problems.synthetic import FixedArms
from benchmarks.suite.problems.tables import JesterUsers
from benchmarks.suite.problems.variants import Outlier, WheelAfterWheels

from gfucb.bandits import LinearUCB, Uniform
from gfucb.bandits.linear_features import OneHotItems
from gfucb.runs.store import RunDirectory


def tiny(seed, data_dir):
    return FixedArms(num_tasks=2, num_arms=3, seed=seed)


def absent(seed, data_dir):
    return JesterUsers(data_dir, num_tasks=3, seed=seed)


@pytest.fixture
def small_suite(monkeypatch):
    """One family of a fixed-arm problem; the default is a linear agent without tuning."""
    names = ("linear-task", "linear-pooled")
    family = Family("tiny", tiny, 12, 8, names, reports_stuck=True)
    monkeypatch.setitem(FAMILIES, "tiny", family)
    monkeypatch.setitem(FAMILIES, "absent", Family("absent", absent, 5, 5, names))
    for name in names:
        grid = ({"alpha": 0.1}, {"alpha": 0.7})
        monkeypatch.setitem(CONTENDERS, name, Contender(name, Registered(name), grid))
    default = Contender(
        "gfucb", Registered("linear-shared"), uses_network=True, is_alternative=False
    )
    monkeypatch.setitem(CONTENDERS, "gfucb", default)


def run_tiny(out: Path, *words: str) -> None:
    main(["run", "--families", "tiny", "absent", "--processes", "1", "--out", str(out), *words])


def test_the_command_tunes_reports_and_resumes(small_suite, tmp_path, capsys):
    run_tiny(tmp_path, "--report-seeds", "5")
    said = capsys.readouterr().out
    assert "absent is left out" in said and "pass --data" in said
    runs = {path.parent.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("rows.csv")}
    tuning = {name for name in runs if int(name.rsplit("=", 1)[1]) >= 2000}
    assert {name.rsplit("=", 1)[1] for name in tuning} == {"2000", "2001", "2002"}
    assert len(tuning) == 2 * 2 * 3
    assert len(runs - tuning) == 4 * 5  # default, two alternatives and uniform
    table = pd.read_csv(tmp_path / "table-default.csv")
    (line,) = table.to_dict("records")
    assert line["best_alternative"] in ("linear-task", "linear-pooled") and line["seeds"] == 5
    assert line["ratio"] == pytest.approx(line["regret"] / line["alternative_regret"])
    assert line["ratio_low"] <= line["ratio"] <= line["ratio_high"]
    assert 0 <= line["stuck"] <= 1 and line["latency"] > 0
    assert "| tiny |" in (tmp_path / "table-default.md").read_text()
    assert (tmp_path / "table-default.png").stat().st_size > 1000
    times = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("rows.csv")}
    run_tiny(tmp_path, "--report-seeds", "5")
    assert "12 runs, 0 of them missing" in capsys.readouterr().out
    assert times == {path: path.stat().st_mtime_ns for path in tmp_path.rglob("rows.csv")}


def test_the_quick_version_has_fewer_settings_and_the_number_of_rounds_can_be_set():
    plan = plan_of(parser().parse_args(["run", "--quick"]))
    assert plan.tuning_seeds == 1 and len(plan.grid_of("linear-task")) == 3
    assert all(FAMILIES[name].quick_rounds == plan.rounds(FAMILIES[name]) for name in plan.families)
    assert "multitask-greedy" not in plan.contenders and "gfucb" in plan.contenders
    long = plan_of(parser().parse_args(["run", "--num-rounds", "20000"]))
    assert long.rounds(FAMILIES["wheel-0.5"]) == 20000
    assert set(long.families) == set(FAMILIES) and set(long.contenders) == set(CONTENDERS)
    assert len(long.grid_of("linear-task")) == len(CONTENDERS["linear-task"].grid)


def test_only_agents_with_networks_run_again_under_another_label(small_suite, tmp_path, capsys):
    words = ("--report-seeds", "2", "--tuning-seeds", "1")
    run_tiny(tmp_path, *words)
    capsys.readouterr()
    run_tiny(tmp_path, *words, "--label", "next")
    assert "8 runs, 2 of them missing" in capsys.readouterr().out
    assert (tmp_path / "table-next.csv").exists()


def test_a_failing_contender_is_reported_and_the_others_go_on(small_suite, tmp_path, capsys):
    disjoint = Contender("gfucb", Registered("linear-arms-task"), uses_network=True)
    CONTENDERS["gfucb"] = disjoint
    run_tiny(tmp_path, "--report-seeds", "1", "--tuning-seeds", "1")
    said = capsys.readouterr().out
    assert "InvalidInputError: disjoint arms need" in said
    assert "| linear-task |" in said and "against the best alternative" not in said
    assert "No finished runs of the default or of an alternative: tiny." in said


@pytest.mark.slow
def test_two_processes_give_the_rows_of_one(tmp_path):
    words = ["--families", "linear", "--contenders", "oracle-ucb", "uniform", "--quick"]
    seeds = ["--tuning-seeds", "1", "--report-seeds", "1"]
    for processes in ("1", "2"):
        main(["run", *words, *seeds, "--processes", processes, "--out", str(tmp_path / processes)])
    for path in (tmp_path / "1").rglob("rows.csv"):
        other = tmp_path / "2" / path.relative_to(tmp_path / "1")
        assert path.read_bytes() == other.read_bytes()


def test_without_runs_the_table_says_so(tmp_path):
    with pytest.raises(SystemExit, match="no finished runs"):
        main(["table", "--families", "linear", "--out", str(tmp_path)])


def test_an_interrupted_run_continues_with_the_same_rows(data_dir, tmp_path):
    def work(directory: Path) -> ProblemRun:
        environment = JesterUsers(data_dir, num_tasks=5, seed=1)
        agent = LinearUCB(5, sharing="hierarchical", features=OneHotItems(100))
        return ProblemRun(agent, environment, 12, reports_stuck=True, directory=directory)

    whole = RunDirectory(tmp_path / "whole", {})
    list(whole.write(work(whole.path)))
    stored = RunDirectory(tmp_path / "interrupted", {})
    rows = stored.write(work(stored.path))
    list(islice(rows, 5))
    rows.close()
    list(stored.write(work(stored.path)))
    assert (stored.path / "rows.csv").read_bytes() == (whole.path / "rows.csv").read_bytes()
    timing = json.loads((stored.path / "timing.json").read_text())
    assert set(timing) == {"decide", "observe", "learn"} and timing["decide"] > 0


class Constant:
    """Always the same action."""

    def __init__(self, action: int) -> None:
        self.action, self.logs = action, []

    def decide(self, candidates, tasks=None, available=None):
        self.tasks = tasks
        every = torch.arange(candidates.shape[1]) == self.action
        agent = Uniform(65)
        rows = torch.arange(len(candidates)) if tasks is None else tasks
        return agent.decide(candidates, rows, every.expand(len(candidates), -1))

    def observe(self, decision, rewards):
        pass

    def learn(self, *log):
        self.logs.append(log)


def test_tasks_are_stuck_after_fifty_rounds_without_a_best_action():
    environment = FixedArms(num_tasks=12, num_arms=3, seed=0)
    rows = list(play_problem(Constant(0), environment, 50, reports_stuck=True))
    wrong = float((environment.means.argmax(1) != 0).double().mean())
    assert rows[48]["stuck"] == 0 and rows[49]["stuck"] == pytest.approx(wrong) and wrong > 0


def test_a_log_is_learned_once_before_the_first_round_and_rows_are_of_the_last_task():
    agent = Constant(0)
    environment = WheelAfterWheels(0.5, seed=0, num_earlier=64, num_samples=3)
    rows = list(play_problem(agent, environment, 4))
    assert len(rows) == 4 and len(agent.logs) == 1 and len(agent.logs[0][0]) == 192
    assert agent.tasks.tolist() == [64]
    assert len(list(play_problem(Uniform(65), environment, 2))) == 2  # it has no `learn`


def test_regret_of_the_task_with_the_outlier_does_not_count():
    environment = Outlier(FixedArms(num_tasks=2, num_arms=2, seed=3), task=0)
    (row,) = play_problem(Constant(0), environment, 1)
    assert row["regret"] == float(environment.round(1).regrets(torch.zeros(2).long())[1])


def test_the_best_alternative_and_the_interval_of_its_ratio():
    regrets = {"gfucb": [2.0, 4.0, 3.0], "linear-task": [2.0, 2.0, 2.0], "uniform": [8.0] * 3}
    regrets["oracle-ucb"] = [0.5] * 3
    runs = pd.DataFrame(
        [
            {"family": "linear", "contender": name, "settings": "", "seed": seed, "regret": value}
            for name, values in regrets.items()
            for seed, value in enumerate(values)
        ]
    ).assign(seconds=1.0, latency=0.1, stuck=np.nan, commit="")
    (line,) = ratio_table(runs).to_dict("records")
    assert line["best_alternative"] == "linear-task" and line["ratio"] == pytest.approx(1.5)
    assert line["percent_of_uniform"] == pytest.approx(37.5)
    assert 1.0 <= line["ratio_low"] < 1.5 < line["ratio_high"] <= 2.0
    assert contender_table(runs)["contender"].iloc[0] == "oracle-ucb"
    same = ratio_interval(np.array([1.0, 2.0, 9.0]), np.array([1.0, 2.0, 9.0]))
    assert same == (1.0, 1.0)  # paired
    assert np.isnan(ratio_interval(np.ones(1), np.ones(1))).all()


def test_settings_are_chosen_on_tuning_seeds_only(small_suite, tmp_path, monkeypatch):
    plan = running.Plan(tmp_path, None, ("tiny",), tuning_seeds=2)
    found = {("0.1", 2000): 3.0, ("0.1", 2001): 3.0, ("0.7", 2000): 1.0, ("0.7", 2001): 4.0}

    def results(out, trial, seeds):
        alpha = str(trial.settings["alpha"])
        known = {s: found[alpha, s] for s in seeds if (alpha, s) in found}
        return {s: running.Result(r, 0, 0, 0, "") for s, r in known.items()}

    monkeypatch.setattr(running, "results_of", results)
    best = running.best_trial(plan, FAMILIES["tiny"], "linear-task")
    assert best is not None and best.settings == {"alpha": 0.7}
    del found["0.1", 2001]
    assert running.best_trial(plan, FAMILIES["tiny"], "linear-task") is None


def test_earlier_runs_fill_what_is_missing(tmp_path):
    def lines(contender: str, regret: float, commit: str) -> pd.DataFrame:
        values = ("linear", contender, "", 1.0, 0.1, float("nan"), commit)
        names = ("family", "contender", "settings", "seconds", "latency", "stuck", "commit")
        table = pd.DataFrame([dict(zip(names, values, strict=True)) for _ in range(3)])
        return table.assign(seed=[100, 101, 102], regret=regret)[[*RUN_COLUMNS, "commit"]]

    newer, older = tmp_path / "newer.csv", tmp_path / "older.csv"
    lines(DEFAULT, 2.0, "a" * 40).to_csv(newer, index=False)
    both = [lines(DEFAULT, 9.0, "b" * 40), lines("linear-task", 4.0, "b" * 40 + "+")]
    pd.concat(both).to_csv(older, index=False)
    main(["table", "--out", str(tmp_path), "--add-runs", str(newer), str(older)])
    (line,) = pd.read_csv(tmp_path / "table-default.csv").to_dict("records")
    assert line["regret"] == 2.0 and line["ratio"] == 0.5 and line["commit"] == "aaaaaaa"
    newer.write_text("family,regret\n")
    with pytest.raises(SystemExit, match="no table of runs"):
        main(["table", "--out", str(tmp_path), "--add-runs", str(newer)])
