"""The comparison of decoders: accuracy of cells, and a small run of all objectives."""

import json

import numpy as np
from benchmarks.episodic import decoders


def test_accuracy_weighs_visited_states_alike_and_takes_cells_by_majority():
    cells, states = np.array([0, 0, 0, 0, 1, 1, 1, 1]), np.array([0, 0, 0, 1, 1, 1, 1, 2])
    fresh, fresh_states = np.array([0, 0, 1, 1, 0]), np.array([0, 0, 1, 1, 1])
    # State 2 was seen once and does not count; a third of state 1 is decoded as state 0.
    np.testing.assert_allclose(decoders.accuracy(cells, states, fresh, fresh_states), [1.0, 2 / 3])


def test_all_decoders_are_run_on_the_same_transitions(tmp_path, monkeypatch, capsys):
    small = {"HORIZON": 2, "STEPS": 3, "BATCH": 8, "EPISODES": (4,), "EMISSIONS": {"hadamard": {}}}
    for name, value in small.items():
        monkeypatch.setattr(decoders, name, value)
    decoders.main(["--seeds", "1", "--out", str(tmp_path), "--json", str(tmp_path / "d.json")])
    results = json.loads((tmp_path / "d.json").read_text())["results"]
    assert [line["decoder"] for line in results] == ["default", *decoders.NETWORKS]
    assert all(0 <= line["accuracy"]["mean"] <= 1 for line in results)
    assert "cells_per_state" in capsys.readouterr().out
