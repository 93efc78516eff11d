"""A built-in agent or figure needs only its own file: nothing lists the modules of a package."""

import sys
from pathlib import Path

import pytest

from gfucb.paper import PAPER, REPRODUCTIONS, reproductions
from gfucb.runs import AGENTS, agents
from gfucb.runs.plugins import import_submodules

AGENT = """
from gfucb.bandits import Uniform
from gfucb.runs.registry import register_agent

@register_agent("added-later", description="Uniform actions.")
def added_later(config, environment, seed):
    return Uniform(environment.num_tasks, seed=seed)
"""
FIGURE = """
from gfucb.paper.common import Reproduction
from gfucb.paper.figure_registry import register_reproduction

register_reproduction("{name}", Reproduction("claim", list, lambda rows: None, list, {more}))
"""
pytestmark = pytest.mark.usefixtures("restored_registries")


@pytest.fixture(autouse=True)
def forget_modules():
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        del sys.modules[name]


def test_an_agent_is_found_in_its_own_module(tmp_path, monkeypatch):
    (tmp_path / "added_later.py").write_text(AGENT)
    monkeypatch.setattr(agents, "__path__", [*agents.__path__, str(tmp_path)])
    source = Path(agents.__file__).read_text()
    exec(source, {"__name__": agents.__name__, "__path__": agents.__path__})
    assert "added-later" in AGENTS
    assert AGENTS.module_of("added-later") == "gfucb.runs.agents.added_later"


def test_a_figure_is_found_in_its_own_package_and_has_its_place(tmp_path, monkeypatch):
    package = sys.modules["gfucb.paper"]
    for name, more in (("early", "order=-1, in_paper=True"), ("late", "")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(FIGURE.format(name=name, more=more))
    (tmp_path / "no_figure.py").write_text("raise AssertionError('only packages are figures')")
    monkeypatch.setattr(package, "__path__", [*package.__path__, str(tmp_path)])
    import_submodules("gfucb.paper", [str(tmp_path)], only_packages=True)
    first, *_, last = REPRODUCTIONS
    assert (first, last) == ("early", "late")
    found: dict[str, object] = {"__file__": reproductions.__file__}
    exec(Path(reproductions.__file__).read_text(), found)
    assert found["PAPER"] == ("early", *PAPER)


def test_the_order_of_the_page_and_of_all_figures():
    assert PAPER == ("fig1", "fig2a", "fig2b", "fig3", "probe")
    assert list(REPRODUCTIONS) == [*PAPER, "lock", "linear-mdp"]
