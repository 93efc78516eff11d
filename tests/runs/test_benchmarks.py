from dataclasses import replace
from pathlib import Path

import pytest
import torch

import gfucb
from gfucb.cli.main import main
from gfucb.core.errors import InvalidInputError, RunDirectoryError
from gfucb.environments import ImageBandit, load_digits
from gfucb.runs import benchmarks as bench
from gfucb.runs import load_rows, play, store
from gfucb.runs.benchmark_results import Ratio, Setting
from gfucb.runs.benchmark_sizes import QUICK_SIZES, BenchSizes
from gfucb.runs.summary import find_runs
from gfucb.runs.text_files import csv_text, parse_csv

TINY = replace(
    QUICK_SIZES, num_tasks=2, num_actions=2, stored_images=6, many_tasks=4, task_rounds=2
)


def test_a_ratio_is_held_against_its_target_in_the_direction_of_its_bound():
    fast = Ratio("", "", "", above=3.0, below=2.0, target=1.5)
    assert fast.value == 1.5 and fast.holds
    assert not replace(fast, above=2.9).holds
    flat = replace(fast, bound="at most")
    assert flat.holds and replace(flat, above=2.9).holds and not replace(flat, above=3.1).holds
    assert replace(fast, target=None).holds is None
    assert fast.row()["holds"] == "True" and fast.row()["value"] == 1.5


@pytest.mark.parametrize("target", [None, 1.5])
def test_a_ratio_is_read_back_from_its_row(target):
    ratio = Ratio("a, b", "x", "y", 1 / 3, 1e-9, "bytes", target, "at most", {"tasks": 3}, "r")
    (row,) = parse_csv(csv_text([ratio.row()]))
    assert Ratio.from_row(row) == ratio


class FakeClock:
    """Time that passes only when told to."""

    def __init__(self, monkeypatch) -> None:
        self.time = 0.0
        monkeypatch.setattr(Setting, "now", lambda setting: self.time)

    def costing(self, method, cost):
        """`method`, taking cost(its first argument) seconds."""

        def timed(subject, *arguments, **options):
            self.time += cost(subject)
            return method(subject, *arguments, **options)

        return timed


@pytest.mark.slow
def test_the_literal_procedure_is_extrapolated_to_200_iterations_without_its_fixed_cost(
    monkeypatch,
):
    clock = FakeClock(monkeypatch)
    fine_tuning = clock.costing(
        gfucb.exploration.FineTuning.__call__, lambda tuning: 50 + tuning.iterations
    )
    monkeypatch.setattr(gfucb.exploration.FineTuning, "__call__", fine_tuning)
    monkeypatch.setattr(
        bench.GFUCB, "decide", clock.costing(gfucb.GFUCB.decide, lambda agent: 0.125)
    )
    for ratio in bench.decision(Setting(TINY)):
        assert ratio.above == pytest.approx(250.0) and ratio.below == 0.125
        assert ratio.value == pytest.approx(2000.0) and ratio.holds
        assert "3 iterations timed" in ratio.remark


def test_growth_compares_the_rounds_it_names(monkeypatch):
    clock = FakeClock(monkeypatch)
    num_rounds = {"decided": 0}

    def cost(agent) -> float:
        if agent.network_learner.fit is not bench.SHORT_FIT:
            num_rounds["decided"] += 1
        return float(num_rounds["decided"])

    monkeypatch.setattr(bench.GFUCB, "decide", clock.costing(gfucb.GFUCB.decide, cost))
    sizes = replace(TINY, early_rounds=(2, 4), late_rounds=(5, 7))
    for ratio in bench.growth(Setting(sizes)):
        assert ratio.below == 3.0 and ratio.above == 6.0
        assert not ratio.holds


def test_the_time_of_single_runs_is_extrapolated_from_those_that_were_timed(monkeypatch):
    clock = FakeClock(monkeypatch)
    observe, together = gfucb.GFUCB.observe, bench.BatchedAgents.observe
    monkeypatch.setattr(bench.GFUCB, "observe", clock.costing(observe, lambda agent: 3.0))
    monkeypatch.setattr(
        bench.BatchedAgents, "observe", clock.costing(together, lambda batched: 2.0)
    )
    (ratio,) = bench.batched(Setting(replace(TINY, batched_replicas=3, batched_rounds=1)))
    assert ratio.above == 9.0 and ratio.below == 2.0
    assert "1 runs timed, 3 extrapolated" in ratio.remark


def test_the_memory_of_an_agent_is_what_the_formula_says():
    """n (input + 16) + 8 M (k^2 + 2 k) + weights + 8 scores + pool, in bytes; see the documents."""
    num_rounds, agent = 5, gfucb.GFUCB(4, fit=bench.SHORT_FIT)
    list(play(agent, ImageBandit(load_digits(), num_tasks=4), num_rounds=num_rounds))
    samples, features = 4 * num_rounds, 128
    state = agent.state()
    weights = sum(
        t.nbytes for name, t in state.items() if name.startswith("representation.module.")
    )
    names = ("counters", "monitor", "calibration.counts", "candidates.check")
    counters = sum(state[name].nbytes for name in names)
    expected = samples * (64 + 16) + 8 * 4 * (features**2 + 2 * features) + weights
    offered = 64 * len(state["candidates.inputs"])
    assert samples < len(state["candidates.inputs"]) <= 10 * samples
    assert sum(t.nbytes for t in state.values()) - counters == expected + 8 * samples + offered


@pytest.mark.slow
def test_the_command_stores_each_measurement_in_a_run_directory(tmp_path, monkeypatch, capsys):
    monkeypatch.delenv("GFUCB_DATA_DIR", raising=False)
    small = ["--num-tasks", "2", "--num-actions", "2", "--task-rounds", "2", "--many-tasks", "4"]
    words = ["bench", "--quick", *small, "--late-rounds", "5", "5", "--out", str(tmp_path)]
    main(words)
    printed = capsys.readouterr().out
    found = [(path.name, row) for path in find_runs(tmp_path) for row in store.read_rows(path)]
    assert {name for name, _ in found} == set(bench.MEASURES)
    assert len({row["name"] for _, row in found}) == len(found)
    for name, row in found:
        ratio = Ratio.from_row(row)
        assert row["name"].split(",")[0] == name and row["name"].split()[0] in printed
        assert ratio.above > 0 and ratio.below > 0
        assert float(row["value"]) == ratio.value
        assert ratio.target is None and row["holds"] == ""  # tiny problems say nothing
    for name in bench.MEASURES:
        provenance = store.read_provenance(tmp_path / name)
        assert provenance["threads"] == 1 and provenance["finished"]
        # The version of the package may lack the name of the build, such as +cu130.
        assert provenance["device"] and torch.__version__.startswith(
            provenance["versions"]["torch"]
        )
        config = store.read_config(tmp_path / name)
        assert config["sizes"]["num_tasks"] == 2 and config["images"] == "random bytes"


def take_nothing(setting):
    raise AssertionError("a finished measurement is not taken again")


def test_finished_measurements_are_not_repeated_and_others_are_refused(
    tmp_path, monkeypatch, capsys
):
    small = ["--num-tasks", "2", "--num-actions", "2", "--catalogue-tasks", "3"]
    words = ["bench", "--quick", *small, "--only", "catalogue", "--out", str(tmp_path)]
    main(words)
    first = capsys.readouterr().out
    monkeypatch.setattr(bench, "MEASURES", {**bench.MEASURES, "catalogue": take_nothing})
    main(words)
    assert f"measured catalogue\n{capsys.readouterr().out}" == first
    with pytest.raises(SystemExit):
        main([*words, "--num-tasks", "3"])
    assert "sizes.num_tasks = 2, not 3" in " ".join(capsys.readouterr().err.split())
    with pytest.raises(RunDirectoryError, match="no run of an agent"):
        load_rows(tmp_path)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--only", "speed"], "unknown measurement 'speed'; the known ones are: batched"),
        (["--device", "abacus"], "device 'abacus' is not available"),
        (["--num-tasks", "0"], "num_tasks must be at least 1"),
        (["--early-rounds", "5", "3"], "early_rounds must be (first, last)"),
        (["--literal-iterations", "1"], "between 2 and 200"),
        (["--preset", "demo"], "Unrecognized options: --preset"),
    ],
)
def test_mistakes_get_a_sentence(words, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as stop:
        main(["bench", "--quick", "--out", "bench", *words])
    assert stop.value.code == 2
    assert message in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_sizes_are_checked_before_anything_is_measured():
    with pytest.raises(InvalidInputError, match="stored_images"):
        BenchSizes(stored_images=0)


ROOT = Path(__file__).parents[2]
COMMITTED = [path for name in ("cpu", "gpu") for path in find_runs(ROOT / "benchmarks" / name)]


@pytest.mark.parametrize("path", COMMITTED, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_the_documents_quote_the_committed_figures(path):
    documents = "".join(document.read_text() for document in (ROOT / "docs").rglob("*.md"))
    for row in store.read_rows(path):
        value = Ratio.from_row(row).value
        shown = f"{value:.3g}" if value < 1000 else f"{value:.0f}"
        assert f"| {row['name']} | {shown} |" in documents


def test_the_committed_figures_are_of_committed_code_at_full_size():
    assert {path.name for path in COMMITTED} == set(bench.MEASURES)
    for path in COMMITTED:
        assert not store.read_provenance(path)["uncommitted_changes"]
        config = store.read_config(path)
        assert config["images"] == "MNIST" and not config["quick"]
        sizes = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in config["sizes"].items()
        }
        own = BenchSizes(**sizes)
        free = {"batched_replicas": None, "batched_rounds": None, "batched_alone": 2}
        assert replace(own, **free) == BenchSizes()


def test_a_committed_measurement_is_accepted_as_it_is(tmp_path):
    for path in COMMITTED:
        config = store.read_config(path)
        if path.parent.name == "cpu":  # the other needs a GPU to be built
            setting = Setting(BenchSizes(), config["device"], data_dir="files of MNIST")
            assert bench.bench_job(path.name, setting).directory(path.parent).is_finished()


def test_the_committed_batch_on_a_gpu_has_the_sizes_of_the_claim():
    (row,) = store.read_rows(ROOT / "benchmarks" / "gpu" / "batched")
    assert Ratio.from_row(row).sizes == {"replicas": 20, "tasks": 10, "rounds": 600}
