"""Numbers in documents: those of the committed rows."""

import importlib
import json
import re
from pathlib import Path

import pytest
from benchmarks.episodic.table import overview_markdown

from gfucb.runs.text_files import read_csv

ROOT = Path(__file__).parents[1]


def test_the_regret_ratios_on_digits_are_those_of_the_committed_rows(capsys, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    regret = importlib.import_module("regret")
    regret.print_tables(read_csv(ROOT / "benchmarks" / "regret.csv"))
    measured = re.findall(
        r"\| (M=\S+ T=\d+): .*? \| ([\d.]+ \| [\d.]+ to [\d.]+) \|", capsys.readouterr().out
    )
    text = (ROOT / "docs" / "explanation" / "default_agent.md").read_text()
    quoted = re.findall(r"\| (M=\S+ T=\d+): .*? \| ([\d.]+ \| [\d.]+ to [\d.]+) \|", text)
    assert len(quoted) == 10 and sorted(quoted) == sorted(measured)


@pytest.mark.parametrize("name", ["README.md", "CHANGELOG.md", "docs/explanation/default_agent.md"])
def test_the_regret_ratios_on_mnist_are_those_of_the_reproduction(name):
    text = " ".join((ROOT / name).read_text().split())
    page = (ROOT / "docs" / "reproduction.md").read_text()
    claim = r"GFUCB with M = 1 has more regret .* = (\S+) \(95% CI (\S+ to \S+)\)"
    ratios = re.findall(claim, page)
    assert len(ratios) == 2  # to M = 10 and to M = 100
    for ratio, interval in ratios:
        assert re.search(rf"{ratio} .{{0,60}}{interval}", text), f"{name} quotes another ratio"


def measured(name):
    return json.loads((ROOT / "benchmarks" / f"{name}.json").read_text())


def ratio(row):
    """A pattern: a few words may come before the interval."""
    return rf"{row['ratio']:.2f} [^;]{{0,60}}\({row['low']:.2f} to {row['high']:.2f}"


def test_the_life_cycle_in_the_changelog_is_that_of_the_committed_measurements():
    text = " ".join((ROOT / "CHANGELOG.md").read_text().split())
    latency = measured("serving_latency")
    longest = max(run["largest"] for run in latency["runs"] if run["refit"] == "background")
    expected = [
        f"at most {latency['p99_during_fits']:.1f} ms, longest call {longest:.0f} ms",
        *(ratio(row) for row in latency["regret_ratio_by_rate"].values()),
    ]
    joined = measured("joining_tasks")["tables"]["joining tasks"]
    expected += [ratio(row) for row in joined if row["problem"] == "digits"]
    changed = measured("forgetting")["tables"]["after a change to fresh"]
    expected += [
        ratio(row) if row["problem"] == "digits" else f"{row['ratio']:.2f}"
        for row in changed
        if row["setting"] == "auto"
    ]
    (weak,) = (
        row
        for row in measured("shard_scaling")["rows"]
        if (row["kind"], row["shards"]) == ("weak", 16)
    )
    fit, per_round = weak["fit_efficiency"], weak["round_efficiency"]
    expected += [f"{fit:.2f} for a fit and {per_round:.2f} for a round"]
    assert [pattern for pattern in expected if not re.search(pattern, text)] == []


def test_the_overview_of_exploration_problems_is_that_of_the_committed_results():
    stored = ROOT / "benchmarks" / "episodic" / "results" / "finite" / "table.json"
    overview = overview_markdown(json.loads(stored.read_text())["results"])
    page = ROOT / "docs" / "how-to" / "run_the_exploration_benchmarks.md"
    assert overview in page.read_text()
