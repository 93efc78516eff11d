"""The comparison with other packages: its problems are those of the suite, its players learn."""

import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from benchmarks.peers.plan import PEERS, TUNED_ON
from benchmarks.peers.players.problem import Problem, action_vectors
from benchmarks.peers.problem_files import PROBLEMS, write_problem
from benchmarks.peers.running import HERE, Comparison
from benchmarks.peers.table import (
    compact,
    markdown,
    memories,
    quoted,
    run_table,
    speeds,
    summary_table,
    verdicts,
    with_kept,
)
from benchmarks.suite.families import FAMILIES


def small(name, tmp_path, num_rounds=3, seed=5):
    spec = replace(PROBLEMS[name], num_rounds=num_rounds)
    path = tmp_path / f"{name}.npz"
    write_problem(spec, seed, None, path)
    return Problem(path), FAMILIES[spec.family].make(seed, None)


def test_digits_are_those_of_the_suite(tmp_path):
    problem, environment = small("digits-10", tmp_path)
    for index in range(3):
        round_, offer = environment.round(index + 1), problem.offer(index)
        shown = round_.candidates.to(torch.float64).flatten(2).numpy() / 255
        assert np.array_equal(offer.vectors, shown)
        actions = np.arange(10) % 10
        rewards, regrets = problem.play(index, offer, actions)
        assert np.allclose(rewards, round_.rewards(torch.from_numpy(actions)))
        assert np.allclose(regrets, round_.regrets(torch.from_numpy(actions)))


@pytest.mark.parametrize("name", ["stores", "wheel"])
def test_contexts_and_scaled_rewards_are_those_of_the_suite(name, tmp_path):
    problem, environment = small(name, tmp_path)
    round_, offer = environment.round(2), problem.offer(1)
    assert np.array_equal(offer.contexts, round_.candidates[:, 0, :-5].numpy())
    actions = np.full(environment.num_tasks, 2)
    rewards, regrets = problem.play(1, offer, actions)
    low, high = environment.value_range
    expected = (round_.rewards(torch.from_numpy(actions)) - low) / (high - low)
    assert np.allclose(rewards, expected)
    assert np.allclose(regrets, round_.regrets(torch.from_numpy(actions)))
    # Weights of its own for each arm: vectors of different arms have no column in common.
    first, second = action_vectors(problem, offer)[0, :2]
    assert first.any() and not (first * second).any()


def test_chosen_jokes_are_not_offered_again(tmp_path):
    ratings = np.random.default_rng(0).uniform(-10, 10, (40, 100))
    (tmp_path / "jester5k").mkdir()
    np.savez(tmp_path / "jester5k" / "jester5k.npz", ratings=ratings)
    spec = replace(PROBLEMS["jester"], num_rounds=4)
    write_problem(spec, 1, str(tmp_path), tmp_path / "jester.npz")
    problem = Problem(tmp_path / "jester.npz")
    environment = FAMILIES[spec.family].make(1, str(tmp_path))
    chosen = torch.zeros(environment.ratings.shape, dtype=torch.bool)
    rows = torch.arange(problem.num_tasks)
    for index in range(4):
        round_, offer = environment.round_after(index + 1, chosen), problem.offer(index)
        assert np.array_equal(offer.items, round_.candidates)
        actions = np.zeros(problem.num_tasks, dtype=np.int64)
        _, regrets = problem.play(index, offer, actions)
        assert np.allclose(regrets, round_.regrets(torch.from_numpy(actions)))
        chosen[rows, round_.candidates[:, 0]] = True


def test_a_player_writes_regret_and_costs(tmp_path):
    small("stores", tmp_path, num_rounds=2)
    words = ["--player", "uniform", "--problem", tmp_path / "stores.npz", "--out"]
    command = [sys.executable, "-m", "players.play", *words, tmp_path / "run.json"]
    subprocess.run(command, cwd=HERE, check=True)
    found = json.loads((tmp_path / "run.json").read_text())
    assert found["decisions"] == 100
    assert 0 < found["regret"] < 2
    assert 10 < found["peak_memory"] < 150  # numpy alone: the memory of this process is not counted


def test_settings_are_chosen_on_the_tuning_seed(tmp_path):
    comparison = Comparison(tmp_path, tmp_path, None, ("stores",), ("gfucb", "coba"), 2)
    spec, peer = PROBLEMS["stores"], PEERS["coba"]
    write_problem(replace(spec, num_rounds=1), 2000, None, comparison.problem_file(spec, 2000))
    write_problem(replace(spec, num_rounds=1), 0, None, comparison.problem_file(spec, 0))
    grid = comparison.grid(spec, peer)
    run = {"decisions": 50, "decide_seconds": 1.0, "learn_seconds": 1.0, "peak_memory": 9.0}
    run |= {"problem": "stores", "num_rounds": 1, "version": "8", "python": "3", "numpy": "2"}
    run |= {"provenance": {"commit": "c", "uncommitted_changes": False, "finished": "f"}, "load": 1}
    for seed in (2000, 0, 1):
        for number, settings in enumerate(grid):
            path = comparison.run_file(spec, peer, settings, seed)
            path.parent.mkdir(parents=True, exist_ok=True)
            # The best setting of the report seeds is not the best of the tuning seed.
            regret = abs(number - 1) if seed == 2000 else 10.0 - number + seed
            own = {"peer": "coba", "settings": settings, "seed": seed, "regret": float(regret)}
            path.write_text(json.dumps(run | own))
    for seed in (0, 1):
        path = comparison.run_file(spec, PEERS["gfucb"], {}, seed)
        own = {"peer": "gfucb", "settings": {}, "seed": seed, "regret": 4.0}
        path.write_text(json.dumps(run | own))
    assert comparison.chosen(spec, peer) == grid[1]
    summary = summary_table(run_table(comparison)).set_index("peer")
    assert summary.loc["coba", "regret"] == 9.5
    assert summary.loc["coba", "difference"] == 5.5
    assert summary.loc["coba", "speed"] == 25.0
    assert pd.isna(summary.loc["gfucb", "difference"])
    assert "| gfucb (default agent) | **4.00** |" in compact(summary.reset_index())
    assert speeds(summary.reset_index()).startswith("| decisions / CPU-s | stores, 50 tasks |")
    assert "| coba | 25 |" in speeds(summary.reset_index())
    uniform = summary.reset_index().tail(1).assign(peer="uniform")
    assert "random" in memories(uniform) and "random" not in speeds(uniform)
    assert "| coba | 9 |" in memories(summary.reset_index())
    assert "| stores, 50 tasks | coba | 0.42 | nan | 2 |" in verdicts(summary.reset_index())


def test_what_was_not_played_again_is_kept():
    before = pd.read_csv(HERE / "results" / "runs.csv", keep_default_na=False)
    is_new = (before["problem"] == "stores") & (before["peer"] == "gfucb")
    found = with_kept(before[is_new].head(2).assign(regret=0.5), before)
    assert (found["regret"] == 0.5).sum() == 2
    assert len(found) == len(before) - is_new.sum() + 2
    assert with_kept(before[is_new], before).equals(before)


def test_tables_of_documents_are_replaced():
    document = (
        "a\n\n| regret | x |\n| --- | --- |\n| old | 1 |\n\n| package | y |\n| --- | --- |\n\nb\n"
    )
    found = quoted(document, "| regret | z |\n| --- | --- |\n| new | 2 |")
    assert found == document.replace("| x |", "| z |").replace("old | 1", "new | 2")


def test_documents_that_leave_random_actions_out_go_on_to():
    table = "| regret | z |\n| --- | --- |\n| new | 2 |\n| random actions | 9 |\n"
    head = "| regret | x |\n| --- | --- |\n"
    without = table.replace("| random actions | 9 |\n", "")
    assert quoted(f"{head}| old | 1 |\n\nb\n", table.rstrip()) == f"{without}\nb\n"
    assert quoted(f"{head}| random actions | 8 |\n\nb\n", table.rstrip()) == f"{table}\nb\n"
    assert quoted(f"{head}\nb\n", table.rstrip()) == f"{table}\nb\n"


def test_every_grid_has_requirements_and_every_problem_a_family():
    for peer in PEERS.values():
        if not peer.is_own:
            assert f"{peer.distribution}==" in "".join(
                path.read_text() for path in (HERE / "requirements").glob(f"{peer.name}*.txt")
            )
    assert {spec.family for spec in PROBLEMS.values()} <= set(FAMILIES)
    assert all(name in PROBLEMS and own in PROBLEMS for name, own in TUNED_ON.items())


def test_committed_tables_are_those_of_the_committed_runs():
    results = HERE / "results"
    runs = pd.read_csv(results / "runs.csv", keep_default_na=False)
    assert (results / "table.md").read_text() == markdown(summary_table(runs), runs)
    assert not any(commit.endswith("+") for commit in runs["commit"])


@pytest.mark.parametrize("name", ["README.md", "docs/explanation/other_packages.md"])
def test_documents_quote_the_committed_tables(name):
    known = (HERE / "results" / "table.md").read_text().splitlines()
    lines = (HERE.parents[1] / name).read_text().splitlines()
    titles = [f"| {peer.title} |" for peer in PEERS.values() if peer.name != "gfucb"]
    found = [line for line in lines if any(line.startswith(title) for title in titles)]
    assert len(found) >= 5
    assert [line for line in found if line not in known] == []
