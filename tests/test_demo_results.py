"""The results in the README are those that `make demo` wrote."""

import re
from pathlib import Path

from gfucb.runs import PRESETS
from gfucb.runs.summary import interval
from gfucb.runs.text_files import read_csv

ROOT = Path(__file__).parents[1]
SHOWN = ("oracle-ucb", "gfucb", "multitask-greedy", "fourier-task", "linucb")


def test_the_table_of_the_readme_is_the_summary_of_the_demo():
    """benchmarks/demo has the summary of a run of the preset, and its provenance."""
    rows = {row["agent"]: row for row in read_csv(ROOT / "benchmarks" / "demo" / "summary.csv")}
    preset = PRESETS["demo"]
    assert set(rows) == set(preset.agents)
    assert {row["seeds"] for row in rows.values()} == {str(len(preset.seeds))}
    readme = (ROOT / "README.md").read_text()
    results = readme[readme.index("## Results") :]
    lines = re.findall(r"^\| (.+) \| (.* ± .*?) \| ?(.*?) ?\|$", results, flags=re.MULTILINE)
    assert len(lines) == len(SHOWN)
    for agent, (_, regret, difference) in zip(SHOWN, lines, strict=True):
        row = {name: float(value) for name, value in rows[agent].items() if name != "agent"}
        assert regret.strip("*") == interval(row["regret"], row["regret_half_width"])
        mean, spread = row["versus_reference"], row["versus_reference_half_width"]
        if agent != "gfucb":
            caveat = ", not significant" if abs(mean) < spread else ""
            assert difference == interval(mean, spread, sign=True) + caveat
