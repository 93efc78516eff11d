"""The examples run in a small form, are short, and their pages state the committed results."""

import csv
import importlib.util
import re
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from scripts.example_pages import update

import gfucb

ROOT = Path(__file__).parents[1]
STORES = ROOT / "examples" / "stores.py"
# Comparisons of agents; the example of an agent with a log has a tutorial instead of a page.
EXAMPLES = [path for path in sorted((ROOT / "examples").glob("*.py")) if path != STORES]
LONGEST_EXAMPLE = 100
NEEDS_DATA = {"jester", "mushroom", "school"}


def load(path: Path, monkeypatch):
    spec = importlib.util.spec_from_file_location(f"{path.stem}_example", path)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    """Small files in the formats of the real ones."""
    directory, draws = tmp_path_factory.mktemp("data"), np.random.default_rng(0)
    for name in ("jester5k", "mushroom", "school"):
        (directory / name).mkdir()
    ratings = draws.uniform(-10, 10, (30, 100))
    ratings[::5, 3] = np.nan
    np.savez(directory / "jester5k" / "jester5k.npz", ratings=ratings)
    tasks = np.repeat(np.arange(3), 12)
    pupils = {"X": draws.random((36, 28)), "y": draws.integers(0, 70, 36), "task": tasks}
    np.savez(directory / "school" / "school.npz", **pupils)
    letters = draws.choice(list("abc?"), (40, 22))
    rows = [",".join([draws.choice(["e", "p"]), *row]) for row in letters]
    (directory / "mushroom" / "agaricus-lepiota.data").write_text("\n".join(rows))
    return directory


@pytest.mark.slow
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_run_in_a_small_form(path, data, tmp_path, monkeypatch, capsys):
    module = load(path, monkeypatch)
    words = ["--rounds", "2", "--seeds", "1", "--out", str(tmp_path)]
    words += ["--runs", str(tmp_path / "runs")]
    if path.stem in NEEDS_DATA:
        words += ["--data", str(data)]
    module.main([*words, "--users", "10"] if path.stem == "jester" else words)
    with (tmp_path / "summary.csv").open() as file:
        assert {row["agent"] for row in csv.DictReader(file)} == set(module.AGENTS)
    assert list(tmp_path.glob("re*.png")) and (tmp_path / "provenance.json").is_file()
    assert "1 seed\n" in capsys.readouterr().out


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_are_one_short_file_with_a_page(path):
    assert path.read_text().count("\n") < LONGEST_EXAMPLE
    page = (ROOT / "docs" / "examples" / f"{path.stem}.md").read_text()
    assert f"python examples/{path.name}" in page
    assert re.search(rf"!\[.+\]\(\.\./\.\./examples/results/{path.stem}/\w+\.png\)", page)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_page_of_an_example_states_the_committed_results(path):
    page = (ROOT / "docs" / "examples" / f"{path.stem}.md").read_text()
    with (ROOT / "examples" / "results" / path.stem / "summary.csv").open() as file:
        lines = list(csv.DictReader(file))
    name = "regret" if "regret" in lines[0] else "reward"
    for line in lines:
        mean, spread = float(line[name]), float(line[f"{name}_half_width"])
        agent = "**GFUCB**" if line["agent"] == "gfucb" else line["agent"]
        row = re.escape(f"| {agent} | {mean:.2f} ± {spread:.2f} |")
        assert re.search(row, page), f"the page has no line {row}"
        assert f"{line['seeds']} seeds" in page


def test_the_tutorial_goes_from_a_file_to_an_agent_in_ten_lines():
    page = (ROOT / "docs" / "tutorials" / "stores.md").read_text()
    block = page.split("## Ten lines")[1].split("```python\n")[1].split("```")[0]
    lines = [line for line in block.splitlines() if line]
    assert len(lines) <= 10
    assert not re.search("numpy|torch|pandas", block)
    assert all(f".{call}(" in block for call in ("learn_table", "decide_table", "observe"))


class TestStores:
    """From a CSV file to a running, restarted agent."""

    def test_it_is_short_and_has_a_tutorial(self):
        assert STORES.read_text().count("\n") < LONGEST_EXAMPLE
        assert "examples/stores.py" in (ROOT / "docs" / "tutorials" / "stores.md").read_text()

    @pytest.mark.slow
    @pytest.mark.filterwarnings("ignore:the effective sample size")  # of four days
    def test_it_runs_and_its_agent_can_be_rebuilt(self, tmp_path, monkeypatch, capsys):
        module = load(STORES, monkeypatch)
        module.main(["--days", "4", "--out", str(tmp_path)])
        text = capsys.readouterr().out
        assert "learned 80 rows" in text
        assert "5 tasks, 98 rewards" in text and "'Bodo')" in text
        assert "action bundle" in text and "chosen" in text
        assert [f"always {name}: " in text for name in module.PROMOTIONS] == [True] * 3
        with gfucb.DecisionLog(tmp_path / "agent.log", read_only=True) as log:
            assert log.last_decision() == 4


def test_pages_are_written_from_results(tmp_path):
    for part in ("docs/examples", "examples/results"):
        shutil.copytree(ROOT / part, tmp_path / part)
    page = tmp_path / "docs" / "examples" / "school.md"
    written = page.read_text()
    page.write_text(re.sub(r"\| \*\*GFUCB\*\* \| [\d.]+", "| **GFUCB** | 99.99", written))
    (tmp_path / "examples" / "results" / "school" / "provenance.json").write_text("{}")
    update("school", ROOT / "examples" / "results" / "school", tmp_path)
    assert page.read_text() == written
    assert (tmp_path / "examples/results/school/provenance.json").read_text() != "{}"
