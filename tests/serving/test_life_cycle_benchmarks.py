"""The benchmarks of the life cycle run in a small version, and continue from their runs."""

import json
import sys

import numpy as np
import pytest
from benchmarks import background_regret, forgetting, joining_tasks, paired, revenue

from gfucb.environments import ImageBandit, load_digits


def call(module, monkeypatch, tmp_path, *words: object) -> dict:
    out = tmp_path / "out.json"
    paths = ["--runs", tmp_path / "runs.jsonl", "--json", out]
    monkeypatch.setattr(sys, "argv", [module.__name__, *map(str, [*words, *paths])])
    module.main()
    return json.loads(out.read_text())


@pytest.fixture(autouse=True)
def in_this_process(monkeypatch):
    """Processes would import the modules as they are."""

    class Pool:
        def __init__(self, *_) -> None: ...
        def __enter__(self):
            return self

        def __exit__(self, *_) -> None: ...
        def submit(self, function, job):
            future = paired.Future()
            future.set_result(function(job))
            return future

    monkeypatch.setattr(paired, "ProcessPoolExecutor", Pool)


def test_forgetting_is_compared_with_a_fresh_agent(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(forgetting, "CHANGE", 2)
    monkeypatch.setattr(forgetting, "AFTER", 1)
    monkeypatch.setattr(forgetting, "BOUNDED", {"at most 1": {}})
    monkeypatch.setattr(forgetting, "FORGETTING", {"everything": {}})
    page = tmp_path / "page.md"
    names = ("after a change to fresh", "without a change to everything")
    page.write_text("".join(f"<!-- {n} -->\nold\n<!-- end of {n} -->\n" for n in names))
    words = ("--problems", "items", "--seeds", 1, "--page", page)
    tables = call(forgetting, monkeypatch, tmp_path, *words)["tables"]
    (after,), price = (tables[name] for name in names)
    assert after["setting"] == "everything"
    assert after["late"]["ratio"] == after["ratio"]  # there is one round
    assert [row["ratio"] for row in price] == [1.0, 1.0]  # the same agents here
    assert "old" not in page.read_text() and page.read_text().count("| items |") == 3
    lines = (tmp_path / "runs.jsonl").read_text()
    call(forgetting, monkeypatch, tmp_path, *words)
    assert (tmp_path / "runs.jsonl").read_text() == lines


def test_the_first_round_of_a_fresh_agent_is_that_after_the_change():
    later, never = (forgetting.Items(drift_at=at, seed=0) for at in (2, forgetting.NEVER))
    assert (later.round(2).mean_rewards == never.round(2).mean_rewards).all()
    assert (later.round(3).mean_rewards != never.round(3).mean_rewards).any()
    assert (later.round(3).candidates == never.round(3).candidates).all()


def test_the_copy_that_sees_a_change_leaves_the_other_agent_alone(monkeypatch):
    monkeypatch.setattr(forgetting, "CHANGE", 3)
    monkeypatch.setattr(forgetting, "AFTER", 3)
    job = {"problem": "items", "seed": 0, "setting": "everything"}
    played = forgetting.play(job)
    monkeypatch.setattr(forgetting, "BOUNDED", {"all": {}})
    alone = forgetting.play(job | {"setting": "all"})  # without the copy
    assert alone["all"] == played["all"] and "after" not in alone
    assert played["after"] != played["all"] - played["before"]


def test_background_fits_are_used_when_they_are_ready(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys.modules[background_regret.Stores.__module__], "TASKS", 3)
    words = ("--decisions", 12, "--seeds", 1, "--rates", 1e-9)  # ready after one more decision
    content = call(background_regret, monkeypatch, tmp_path, *words)
    assert [row["rate"] for row in content["tables"]["background regret"]] == [1e-9]
    inline, background = (run["result"]["fits"] for run in content["runs"])
    assert 1 < background <= inline


def test_revenue_is_compared_in_the_unit_of_rewards(tmp_path, monkeypatch, capsys):
    words = ("--problems", "items", "--seeds", 1, "--rounds", 2)
    (row,) = call(revenue, monkeypatch, tmp_path, *words)["tables"]["revenue"]
    assert 0 < row["dollars"] < 2 and row["ratio"] == pytest.approx(row["dollars"] / row["scaled"])


@pytest.mark.slow
def test_regret_of_joining_tasks_is_measured(tmp_path, monkeypatch, capsys):
    def digits(seed: int, _: str) -> ImageBandit:
        return ImageBandit(load_digits(), num_tasks=4, num_actions=3, seed=seed)

    problem = joining_tasks.Problem(digits, founders=2, founder_rounds=2, rounds=2)
    monkeypatch.setattr(joining_tasks, "PROBLEMS", {"digits": problem})
    monkeypatch.setattr(joining_tasks, "JOINED", (1, 2))
    content = call(joining_tasks, monkeypatch, tmp_path, "--seeds", 1)
    table = content["tables"]["joining tasks"]
    assert [row["position"] for row in table] == [1, 2]
    (result,) = (run["result"] for run in content["runs"])
    assert table[1]["ratio"] == pytest.approx(result["joined 2"] / result["alone 2"])


def test_seeds_that_only_one_setting_has_are_left_out():
    lines = [
        {"job": {"seed": seed, "unit": unit}, "result": {"regret": 10 * seed + len(unit)}}
        for unit, seeds in (("scaled", (2, 0, 1)), ("dollars", (0, 2)))
        for seed in seeds
    ]
    found = [paired.by_seed(lines, unit=unit) for unit in ("scaled", "dollars")]
    assert paired.numbers("regret", *found) == [[6, 26], [7, 27]]


def test_ratios_are_those_of_means_with_intervals_over_seeds():
    found = paired.ratio([2.0, 4.0, 6.0], [1.0, 2.0, 3.0])
    assert found == {"ratio": 2.0, "low": 2.0, "high": 2.0, "seeds": 3}
    draws = np.random.default_rng(1).normal(1, 0.1, (2, 50))
    found = paired.ratio(*draws)
    assert found["low"] < found["ratio"] < found["high"] < found["low"] + 0.2
