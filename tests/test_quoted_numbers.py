"""Numbers in documents: those of the committed rows."""

import importlib
import re
from pathlib import Path

import pytest

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
    for ratio, interval in (("1.57", "1.44 to 1.72"), ("3.29", "3.12 to 3.47")):
        assert re.search(rf"{ratio} .{{0,40}}{interval}", text), f"{name} quotes another ratio"
        assert re.search(rf"{ratio} \(.*{interval}\)", page), f"the page has another {ratio}"
