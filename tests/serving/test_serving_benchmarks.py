"""The benchmarks of serving run in a small version."""

import json
import sys

import pytest
from benchmarks import joining_tasks, serving_latency

from gfucb.environments import ImageBandit, load_digits


def call(module, monkeypatch, *words: object) -> None:
    monkeypatch.setattr(sys, "argv", [module.__name__, *map(str, words)])
    module.main()


def test_latency_is_measured_once_for_each_seed(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(serving_latency, "TASKS", 3)
    out = tmp_path / "latency.json"
    words = ["--decisions", 4, "--seeds", 0, "--json", out]
    call(serving_latency, monkeypatch, *words)
    content = json.loads(out.read_text())
    assert [run["calls"] for run in content["runs"]] == [8] * 3
    assert set(content["regret_ratio_by_rate"]) == {"0.0", "50.0"}
    call(serving_latency, monkeypatch, *words)
    assert json.loads(out.read_text()) == content  # times of a second run would differ


@pytest.mark.slow
def test_regret_of_joining_tasks_is_measured(tmp_path, monkeypatch, capsys):
    def digits(seed: int, _: str) -> ImageBandit:
        return ImageBandit(load_digits(), num_tasks=4, num_actions=3, seed=seed)

    problem = joining_tasks.Problem(digits, founders=2, founder_rounds=2, rounds=2)
    monkeypatch.setattr(joining_tasks, "PROBLEMS", {"digits": problem})
    monkeypatch.setattr(joining_tasks, "JOINED", (1, 2))
    out = tmp_path / "joining.json"
    call(joining_tasks, monkeypatch, "--problems", "digits", "--seeds", 1, "--json", out)
    table = json.loads(out.read_text())["table"]
    assert [row["position"] for row in table] == [1, 2]
