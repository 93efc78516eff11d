"""Promises the whole project makes: randomness by name, documents that are true."""

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import pytest
import torch

import gfucb
from gfucb.core.random import global_randomness_from, random_stream

ROOT = Path(__file__).parents[1]
DOCUMENTS = [
    "README.md",
    "docs/algorithm.md",
    "docs/engine_cost.md",
    "docs/extending.md",
    "docs/mdp.md",
    "docs/theory.md",
]
SOURCES = sorted((ROOT / "src").rglob("*.py"))


def test_streams_are_independent_of_each_other_and_of_the_global_generator():
    draws = {
        name: torch.rand(3, generator=random_stream(0, *name)).tolist()
        for name in [("a",), ("b",), ("a", 1), ("a", 2), (1, "a")]
    }
    assert len({tuple(d) for d in draws.values()}) == len(draws)
    torch.rand(5)
    assert torch.rand(3, generator=random_stream(0, "a")).tolist() == draws[("a",)]


def test_lending_a_generator_to_global_code_leaves_the_global_one_alone():
    before = torch.random.get_rng_state()
    values = []
    for _ in range(2):
        generator = random_stream(3, "lent")
        with global_randomness_from(generator):
            values.append(torch.nn.Linear(3, 3).weight.detach().clone())
        assert torch.equal(before, torch.random.get_rng_state())
    assert torch.equal(values[0], values[1])


def test_what_is_lent_is_independent_of_what_the_lender_goes_on_to_give():
    generator = random_stream(3, "lent")
    with global_randomness_from(generator):
        lent, own = torch.rand(4), torch.rand(4, generator=generator)
    assert not torch.equal(lent, own)


def modules() -> list[str]:
    names = [m.name for m in pkgutil.walk_packages(gfucb.__path__, "gfucb.")]
    return ["gfucb", *names]


@pytest.mark.parametrize("name", modules())
def test_doctests(name):
    result = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert result.failed == 0


def python_blocks(path: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", path.read_text(), flags=re.DOTALL)


@pytest.mark.parametrize("document", DOCUMENTS)
def test_the_code_of_the_documents_runs(document):
    blocks = python_blocks(ROOT / document)
    assert blocks
    names: dict = {}
    for block in blocks:
        exec(compile(block, document, "exec"), names)


def test_the_readme_shows_the_five_lines():
    text = (ROOT / "README.md").read_text()
    for line in (
        "gfucb.GFUCB(num_tasks=30, representation=net, seed=0)",
        "agent.decide(candidates",
    ):
        assert line in text
    assert "make demo" in text and "make test" in text


@pytest.mark.parametrize("document", DOCUMENTS)
def test_links_and_files_named_in_the_documents_exist(document):
    path = ROOT / document
    text = path.read_text()
    for link in re.findall(r"\]\((?!http)([^)#]+)", text):
        assert (path.parent / link).stat().st_size > 500, link
    assert not re.search(r"^[A-Z]+_[A-Z]+$|^MEASUREMENTS$", text, flags=re.MULTILINE)
    for name in re.findall(r"`([a-z_]+/[a-z_]+\.py)(?:::|`)", text):
        assert (ROOT / "src" / "gfucb" / name).exists(), name


def test_functions_named_in_the_map_of_the_paper_exist():
    text = (ROOT / "docs" / "algorithm.md").read_text()
    named = re.findall(r"`([a-z_/]+)\.py::([A-Za-z_.]+)`", text)
    assert len(named) > 15
    for module, attribute in named:
        found = importlib.import_module(f"gfucb.{module.replace('/', '.')}")
        for part in attribute.split("."):
            found = getattr(found, part)


def test_every_departure_from_the_paper_is_listed_with_its_file():
    text = (ROOT / "docs" / "algorithm.md").read_text()
    table = text[text.index("## Departures") :]
    for path in SOURCES:
        marks = len(re.findall(r"# Paper:", path.read_text()))
        name = path.relative_to(ROOT / "src" / "gfucb").as_posix()
        rows = len(re.findall(rf"^\| `{re.escape(name)}`", table, flags=re.MULTILINE))
        assert rows == marks, f"{name} has {marks} `# Paper:` comments, the table {rows} rows"


def test_the_decision_of_gfucb_reads_like_the_algorithm():
    import inspect

    source = inspect.getsource(gfucb.GFUCB.decide)
    body = source[source.rindex('"""') :].strip().splitlines()[1:]
    assert len(body) <= 12


def test_the_version_is_stated_once():
    declared = re.search(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert declared and declared.group(1) == gfucb.__version__
