"""The exploration benchmarks: stored runs, tuned scales, and their table."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from benchmarks.episodic.__main__ import main
from benchmarks.episodic.contenders import CONTENDERS
from benchmarks.episodic.features import RandomFeatures, on_random_features
from benchmarks.episodic.problems import PROBLEMS, Problem
from benchmarks.episodic.running import Plan, best_scale, report_jobs, tune, tuning_jobs
from benchmarks.episodic.solving import Budget, exact_evaluation, solve
from benchmarks.episodic.table import mean_and_interval, overview_markdown

from gfucb.core.errors import RunDirectoryError
from gfucb.environments import combination_lock, deep_sea
from gfucb.episodic import LSVIUCB
from gfucb.runs.store import is_finished, read_provenance
from gfucb.runs.summary import find_runs

SMALL = Problem(
    lambda num_tasks, seed: combination_lock(2, 3, num_tasks=num_tasks, seed=seed),
    2,
    Budget(60, evaluate_every=5, evaluation_episodes=4, in_a_row=2),
    length_scale=4.0,
    description="a small lock",
)


def test_training_ends_when_the_greedy_policy_solves_all_tasks():
    environment = combination_lock(3, 4, num_tasks=2, seed=0).latent
    rows = solve(LSVIUCB(2, 3, beta=0.1, ridge=0.01), environment, Budget(200))
    last = rows[-1]
    assert last["solved_tasks"] == 2 and last["success"] == last["greedy_return"] == 1.0
    assert last["episodes"] < 200 and last["episodes"] == 10 * len(rows)
    assert all(row["success"] == 1.0 for row in rows[-5:])
    assert last["mean_solved_after"] <= last["episodes"]
    assert rows[0]["cpu_seconds"] < last["cpu_seconds"]


def test_unsolved_tasks_count_with_the_whole_budget():
    environment = combination_lock(12, 10, num_tasks=2, seed=0).latent
    rows = solve(LSVIUCB(2, 12, beta=0.0), environment, Budget(20))
    assert rows[-1]["solved_tasks"] == 0 and rows[-1]["mean_solved_after"] == 20


def test_exact_evaluation_is_the_value_of_the_greedy_policy():
    environment = deep_sea(4, num_tasks=2, stochastic=True, seed=0)
    known = environment.optimal_action_values.argmax(-1)

    class Optimal:
        def greedy_policy(self):
            def policy(stage, candidates, tasks):
                states = candidates[:, 0, :4].argmax(-1)
                return torch.from_numpy(known[tasks.numpy(), stage, states.numpy()])

            return policy

    evaluation = exact_evaluation(Optimal(), environment)
    assert np.allclose(evaluation.returns[0], environment.optimal_values[:, 0, 0])
    assert evaluation.perfect_tasks.all()
    known[:, 0] = 1 - known[:, 0]
    assert not exact_evaluation(Optimal(), environment).perfect_tasks.any()


def test_random_features_are_those_of_the_action_that_was_taken():
    environment = combination_lock(3, 4, num_tasks=2, seed=0)
    shown = on_random_features(environment, 4.0)
    inner, outer = environment.episode(1), shown.episode(1)
    features = RandomFeatures(8, 4, 4.0)
    candidates = outer.offered()[1]
    assert candidates.shape == (2, 4, 4 * features.count)
    assert torch.equal(candidates, features(inner.offered()[1]))
    blocks = candidates.reshape(2, 4, 4, features.count)
    for action in range(4):
        others = [other for other in range(4) if other != action]
        assert not blocks[:, action, others].any() and blocks[:, action, action].any()
    actions = torch.tensor([0, 1])
    one, other = outer.play(actions), inner.play(actions)
    assert torch.equal(one.rewards, other.rewards)
    assert np.array_equal(outer.reached_goal, inner.reached_goal)
    # Kernel values of equal and of distant observations.
    many = RandomFeatures(8, 4, 1.0)
    x = torch.zeros(2, 12)
    x[:, 8] = 1
    x[1, :8] = 5.0
    products = many(x) @ many(x).T
    assert products[0, 0] == pytest.approx(1.0, abs=0.35) and abs(products[0, 1]) < 0.4


@pytest.mark.slow
def test_runs_are_stored_tuned_and_tabulated(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(PROBLEMS, "lock-6", SMALL)
    words = ["--problems", "lock-6", "--contenders", "oracle", "lsvi-ucb", "--seeds", "2"]
    words += ["--out", str(tmp_path / "runs"), "--to", str(tmp_path / "tables")]
    with pytest.raises(SystemExit, match="no finished runs"):
        main(["table", *words])
    main(["run", *words])
    runs = find_runs(tmp_path / "runs")
    assert len(runs) == 2 * (3 + 2) and all(is_finished(path) for path in runs)
    plan = Plan(tmp_path / "runs", ("lock-6",), ("oracle",), (0, 1))
    assert best_scale(plan, "lock-6", "oracle") in CONTENDERS["oracle"].scales
    first = (tmp_path / "tables" / "table.md").read_text()
    assert "a small lock" in first and "2 of 2" in first
    content = json.loads((tmp_path / "tables" / "table.json").read_text())
    assert {line["contender"] for line in content["results"]} == {"oracle", "lsvi-ucb"}
    assert content["provenance"][0]["versions"] == read_provenance(runs[0])["versions"]
    main(["table", *words])
    assert (tmp_path / "tables" / "table.md").read_text() == first
    assert first in capsys.readouterr().out


@pytest.mark.parametrize("name", ["randomised-lsvi", "epsilon-greedy", "fitted-q", "gfucb"])
def test_other_contenders_train_and_are_evaluated(name):
    contender = CONTENDERS[name]
    environment = contender.shown(SMALL, SMALL.environment(0))
    budget = Budget(2, evaluate_every=1, evaluation_episodes=2)
    rows = solve(contender.make(environment, 0.1, 0), environment, budget)
    assert len(rows) == 2 and 0 <= rows[-1]["greedy_return"] <= 1


def test_contenders_run_in_the_problems_that_suit_them(tmp_path):
    problems = ("lock-6-alone", "deep-sea", "mountain-car")
    pairs = Plan(tmp_path, problems, ("gfucb", "joining", "oracle", "fitted-q"), (0,)).pairs
    assert {problem for problem, contender in pairs if contender == "joining"} == {problems[0]}
    assert {problem for problem, contender in pairs if contender == "oracle"} == {*problems[:2]}
    assert all((problem, "fitted-q") in pairs for problem in problems)


def test_some_scales_are_tuned_and_a_report_needs_all(tmp_path, monkeypatch):
    monkeypatch.setitem(PROBLEMS, "lock-6", replace(SMALL, budget=Budget(1, evaluate_every=1)))
    plan = Plan(tmp_path, ("lock-6",), ("oracle",), (0,), scales=(0.02,))
    tune(plan, processes=1)
    tuned = [is_finished(tmp_path / job.name) for job in tuning_jobs(replace(plan, scales=None))]
    assert tuned == [False, True, False]
    other = tuning_jobs(replace(plan, scales=(0.3,)))[0]
    # A report that starts while another process is tuning would use a scale that is not the best.
    with (
        other.directory(tmp_path).locked(),
        pytest.raises(RunDirectoryError, match="another process"),
    ):
        main(["run", "--problems", "lock-6", "--contenders", "oracle", "--out", str(tmp_path)])
    assert not any(is_finished(tmp_path / job.name) for job in report_jobs(plan))


def test_a_task_that_joins_is_compared_on_the_same_seeds(tmp_path, monkeypatch):
    small = replace(SMALL, num_tasks=1, budget=Budget(60, evaluate_every=5, in_a_row=1))
    monkeypatch.setitem(PROBLEMS, "lock-12-alone", small)
    words = ["--problems", "lock-12-alone", "--contenders", "gfucb", "joining", "--seeds", "2"]
    main(["run", *words, "--out", str(tmp_path)])
    content = json.loads((tmp_path / "table.json").read_text())
    alone, joining = (line["mean_solved_after"]["mean"] for line in content["results"])
    (comparison,) = content["comparisons"]
    assert comparison["seeds"] == [0, 1] and comparison["one"] == ["lock-12-alone", "joining"]
    assert comparison["difference"]["mean"] == joining - alone
    assert "difference in episodes a task" in (tmp_path / "table.md").read_text()


def test_intervals_are_those_of_student():
    found = mean_and_interval([1.0, 2.0, 3.0])
    assert found["mean"] == 2.0 and found["half_width"] == pytest.approx(4.3027 / 3**0.5, rel=1e-3)
    assert mean_and_interval([1.0])["half_width"] is None


def _line(problem, contender, num_solved, num_seeds=3):
    mean = {"mean": 70.4, "half_width": 6.6}
    return {
        "problem": problem,
        "contender": contender,
        "num_seeds": num_seeds,
        "num_solved": num_solved,
        "solved_tasks": 0.8,
        "mean_solved_after": mean,
        "episodes": {"mean": 450.0, "half_width": None},
    }


def test_the_overview_says_what_was_not_solved_and_what_was_not_run():
    lines = [
        _line("deep-sea", "oracle", 3),
        _line("deep-sea", "gfucb", 10, num_seeds=10),
        _line("umbrella", "oracle", 1),
        _line("mountain-car", "gfucb", 3),
    ]
    heading, _, *rows = overview_markdown(lines).splitlines()
    assert heading == (
        "| problem | EpisodicGFUCB, default; 3 or 10 seeds | LSVI-UCB, knows the state; 3 seeds |"
    )
    assert rows == [
        "| deep sea, N = 10, M = 5 | 70 ± 7 | 70 ± 7 |",
        "| umbrella chain, H = 10, M = 5 | not run | 1 of 3 seeds, 80% of tasks in 450 |",
        "| mountain car, H = 30, M = 3 | 70 ± 7 | does not apply |",
    ]
