"""The predictions of `benchmarks/shard_plan.py`."""

import json
import sys

import pytest
from benchmarks import repeated_rows, shard_plan, shard_scaling


def measured(kind, shards, tasks, fit, play, sums=0.0, latency=0.0, work=1.0):
    return {
        "kind": kind,
        "shards": shards,
        "tasks": tasks,
        "batch_size": 1024,
        "fits_seconds": fit,
        "rounds_seconds": play,
        "sums_seconds": sums,
        "latencies_seconds": latency,
        "work_seconds": work,
        "round_exchanges": 20,
        "gradient_bytes": 1000,
        "fit_bytes": 80_400,
    }


ROWS = [
    measured("weak", 1, 1000, 4.0, 0.5),
    measured("weak", 4, 1000, 5.2, 0.56, sums=0.01, latency=0.0005, work=1.1),
    measured("strong", 1, 4000, 16.0, 2.0),
    measured("strong", 4, 1000, 4.8, 0.51, sums=0.01, latency=0.0005),
]


def test_small_cases_are_predicted_from_one_shard_and_single_exchanges(tmp_path, monkeypatch):
    scaling, result = tmp_path / "scaling.json", tmp_path / "plan.json"
    scaling.write_text(json.dumps({"provenance": {}, "rows": ROWS}))
    words = ["shard_plan", "--scaling", str(scaling), "--json", str(result)]
    monkeypatch.setattr(sys, "argv", words)
    shard_plan.main()
    found = json.loads(result.read_text())
    weak, strong = found["small"][1], found["small"][3]
    assert weak["fit_predicted"] == pytest.approx(1.1 * 4.0 + 80 * 0.01)
    assert weak["round_predicted"] == pytest.approx(1.1 * 0.5 + 20 * 0.0005)
    assert strong["fit_predicted"] == pytest.approx(4.0 + 80 * 0.01)
    assert all(abs(row["fit_error"]) < shard_plan.TOLERANCE for row in found["small"])
    small, large = found["large"]
    assert small["tasks"] == 10**6 and large["shards"] > small["shards"]
    assert "joint choices a second" in large["breaks"]


def test_steps_take_some_time_with_any_batch():
    rows = [measured("weak", 1, 1000, 1.3, 0.2), measured("strong", 1, 4000, 4.3, 0.8)]
    assert shard_plan.fixed_seconds(rows, "fits_seconds") == pytest.approx(0.3)
    assert shard_plan.fixed_seconds(rows, "rounds_seconds") == 0
    assert shard_plan.fixed_seconds(rows[:1], "fits_seconds") == 0
    found = shard_plan.predicted(measured("strong", 4, 1000, 1.3, 0.2), rows[1], rows, 80)
    assert found["fit_predicted"] == pytest.approx(1.3)


def test_a_sum_over_shards_takes_the_faster_way():
    machine = shard_plan.Machine(latency=1.0, bandwidth=1.0)
    assert shard_plan.sum_seconds(8.0, 1, machine) == 0
    assert shard_plan.sum_seconds(0.0, 16, machine) == 2 * 4  # a tree
    assert shard_plan.sum_seconds(1e6, 4, machine) == pytest.approx(2 * 3 * (1 + 2.5e5))  # a ring


def test_efficiency_is_relative_to_one_shard():
    rows = shard_scaling.with_efficiency([dict(row) for row in ROWS])
    assert rows[1]["fit_efficiency"] == pytest.approx(4.0 / 5.2)
    assert rows[3]["round_efficiency"] == pytest.approx(2.0 / 0.51 / 4)
    assert rows[1]["work_efficiency"] == ROWS[0]["work_seconds"] / ROWS[1]["work_seconds"]
    backwards = shard_scaling.with_efficiency([dict(row) for row in reversed(ROWS)])
    assert backwards[::-1] == rows
    cases = shard_scaling.cases(["weak", "strong"], [1, 4], 1000, 4000, 2)
    assert [case.batch_size for case in cases] == [1024, 4096, 4096, 4096]
    assert [case.tasks for case in cases] == [1000, 1000, 4000, 1000]


def test_shards_are_compared_with_independent_agents_under_equal_load():
    agents = {**ROWS[1], "kind": "independent", "fits_seconds": 5.0, "rounds_seconds": 0.9}
    rows = shard_scaling.with_efficiency([dict(row) for row in (*ROWS, agents)])
    assert rows[1]["fit_equal_load"] == pytest.approx(5.0 / ROWS[1]["fits_seconds"])
    assert rows[1]["round_equal_load"] == pytest.approx(0.9 / ROWS[1]["rounds_seconds"])
    assert "fit_equal_load" not in rows[0] and "fit_equal_load" not in rows[3]
    (case,) = shard_scaling.cases(["independent"], [16], 1000, 4000, 2)
    assert (case.tasks, case.batch_size) == (1000, 1024)


def test_repeated_measurements_are_compared_by_medians_of_the_last_shard():
    def files(condition, repetition, *shards):
        rows = [{"fits": fits, "fit_page_faults": 2.0} if fits else {} for fits in shards]
        known = {"condition": condition, "repetition": repetition}
        return [known | row for row in rows]

    measured = [
        files("weak one", 0, [1.0, 3.0, 2.0], None),
        files("weak all", 0, [2.0, 2.0, 4.0], [5.0, 1.0, 3.0]),
        files("weak one", 1, [4.0], None),
        files("weak all", 1, [6.0], [8.0]),
    ]
    rows = repeated_rows.together([list(part) for part in zip(*measured, strict=True)])
    assert [row["fits"] for row in rows] == [2.0, 4.0, 4.0, 8.0]
    assert rows[1]["fits_of_shards"] == [2.0, 3.0] and rows[1]["fit_page_faults"] == 2.0
    assert repeated_rows.efficiencies(rows, 2) == {"weak all": {"fits": 3.0 / 6.0}}
    together = [*rows, {"condition": "weak independent", "repetition": 0, "fits": 4.5}]
    assert repeated_rows.equal_load(together) == {"weak all": {"fits": 4.5 / 6.0}}
