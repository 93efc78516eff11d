"""What imports load: public names at first use, and heavy packages only where they are used."""

import ast
import importlib
import logging
import subprocess
import sys
from pathlib import Path

import pytest

import gfucb
from gfucb.cli.commands import DEFAULTS
from gfucb.cli.main import main

PACKAGE = Path(gfucb.__file__).parent
OPTIONAL = (
    "{'pandas', 'matplotlib', 'sklearn', 'tyro', 'rich', 'jinja2', 'narwhals', 'gymnasium', 'ray'}"
)


def run(code: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)


def test_the_overview_and_the_version_need_no_other_package():
    result = run(
        "import sys\n"
        "for name in ('torch', 'numpy', 'scipy', 'pandas', 'matplotlib', 'tyro', 'rich'):\n"
        "    sys.modules[name] = None\n"  # an import of it fails
        "from gfucb.cli.main import main\n"
        "main(['--help'])\n"
        "main(['--version'])\n"
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("gfucb: multitask bandits")
    assert result.stdout.endswith(f"gfucb {gfucb.__version__}\n")


@pytest.mark.parametrize(
    "words",
    [
        [["run", "--help"], ["compare", "--preset", "lock", "--help"], ["report", "--help"]],
        [["reproduce", "--help"], ["page", "--help"], ["bench", "--help"], ["bench", "--quick"]],
        [["evaluate", "--help"], ["log", "--help"], ["fetch-mnist", "--help"]],
        [["theory", "--help"], ["audit", "--help"], ["presets", "--help"]],
        [["compare", "--agents", "gfucp"], ["run", "--num-round", "3", "--out", "x"], ["runs"]],
    ],
    ids=lambda words: " ".join(own[0] for own in words),
)
def test_help_and_wrong_options_come_without_torch(words):
    result = run(
        "import sys\n"
        "from gfucb.cli.main import main\n"
        f"for words in {words}:\n"
        "    try:\n"
        "        main(words)\n"
        "    except SystemExit as end:\n"
        "        assert bool(end.code) != ('--help' in words), (words, end.code)\n"
        "    else:\n"
        "        raise AssertionError(words)\n"
        "    heavy = {'torch', 'numpy', 'scipy', 'pandas', 'matplotlib', 'sqlite3'}\n"
        "    assert not heavy & set(sys.modules), (words, heavy & set(sys.modules))\n"
    )
    assert result.returncode == 0, result.stderr


def test_every_command_is_among_those_whose_help_is_tested():
    (mark,) = test_help_and_wrong_options_come_without_torch.pytestmark
    tested = {words[0] for group in mark.args[1] for words in group if "--help" in words}
    assert tested == set(DEFAULTS)


@pytest.mark.parametrize("name", ["evaluation", "theory"])
def test_packages_load_their_names_at_first_use(name):
    package = importlib.import_module(f"gfucb.{name}")
    tree = ast.parse((PACKAGE / name / "__init__.py").read_text())
    (block,) = [node for node in tree.body if isinstance(node, ast.If)]
    typed = {a.name: node.module for node in block.body for a in node.names}
    assert set(typed) == set(package.__all__) <= set(dir(package))
    for attribute, module in typed.items():
        assert getattr(package, attribute) is getattr(importlib.import_module(module), attribute)
    with pytest.raises(AttributeError, match=f"'gfucb.{name}' has no attribute 'evalute'"):
        _ = package.evalute


@pytest.mark.parametrize("name", ["tyro", "rich"])
def test_a_command_without_its_packages_names_the_cure(name):
    result = run(
        "import sys\n"
        f"sys.modules['{name}'] = None\n"
        "from gfucb.cli.main import main\n"
        "main(['presets'])\n"
    )
    assert result.returncode == 1
    assert result.stderr == f"gfucb's command line needs {name}: pip install 'gfucb[experiments]'\n"


def test_a_command_that_needs_a_package_only_when_it_runs_names_the_cure(monkeypatch):
    monkeypatch.delitem(sys.modules, "gfucb.runs.report", raising=False)
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(SystemExit, match=r"command line needs jinja2: pip install 'gfucb\[exp"):
        main(["report", "runs"])


@pytest.mark.slow
def test_an_agent_and_a_run_load_only_what_they_use():
    result = run(
        "import sys, gfucb\n"
        f"optional = {OPTIONAL} | {{'sqlite3', 'scipy.optimize', 'scipy.stats'}}\n"
        "agent = gfucb.GFUCB(2, seed=0)\n"
        "gfucb.EpisodicGFUCB, gfucb.tables.Schema, gfucb.save\n"
        "print(sorted(optional & set(sys.modules)))\n"
        "import numpy, torch\n"
        "torch.set_num_threads(1)\n"
        "images = numpy.random.default_rng(0).random((24, 8, 8), dtype=numpy.float32)\n"
        "agent.learn([0, 1] * 12, images, images[:, 0, 0])\n"
        "assert agent.learner.num_fits > 0\n"
        "print('torch._dynamo' in sys.modules)\n"  # the compiler takes 1.5 seconds
        "gfucb.Agent\n"
        "print(sorted(optional & set(sys.modules)))\n"
        "import gfucb.runs\n"
        "print(sorted(optional & set(sys.modules)))\n"
        "from gfucb.cli.commands import DEFAULTS\n"
        "DEFAULTS['compare']([])\n"  # all that `gfucb compare --help` needs
        "print(sorted(optional & set(sys.modules)))\n"
    )
    expected = "[]\nFalse\n['sqlite3']\n['sqlite3']\n['rich', 'sqlite3', 'tyro']\n"
    assert result.stdout == expected, result.stderr


@pytest.mark.slow
def test_workers_are_forks_of_a_server_that_has_imported_what_factories_import():
    result = run(
        "import importlib, sys\n"
        "from gfucb.runs.pool import PRELOADED\n"
        "for name in PRELOADED:\n"
        "    importlib.import_module(name)\n"
        "loaded = set(sys.modules)\n"
        "from gfucb.runs import AGENTS, ENVIRONMENTS\n"
        "known = {'bandit': 'digits', 'episodic': 'linear-mdp'}\n"
        "for agent in AGENTS.values():\n"
        "    entry = ENVIRONMENTS[known[agent.kind]]\n"
        "    environment = entry.factory(entry.config(name=entry.name), 0)\n"
        "    try:\n"
        "        agent.factory(agent.config(name=agent.name), environment, 0)\n"
        "    except ValueError as error:\n"
        "        assert 'does not state it' in str(error)\n"
        "print(sorted(name for name in set(sys.modules) - loaded if name.startswith('gfucb')))\n"
    )
    assert result.stdout == "[]\n", result.stderr


def test_names_that_runs_load_at_first_use():
    from gfucb import runs
    from gfucb.runs import api, summary

    assert runs.compare is api.compare and runs.ComparisonResult is api.ComparisonResult
    assert runs.summarise is summary.summarise and runs.load_rows is summary.load_rows
    assert set(runs.__all__) <= set(dir(runs))
    with pytest.raises(AttributeError, match=r"'gfucb\.runs' has no attribute 'summarize'"):
        _ = runs.summarize


def typed_names() -> tuple[dict[str, str], set[str]]:
    """What `gfucb/__init__.py` tells type checkers: names with their modules, and subpackages."""
    tree = ast.parse((PACKAGE / "__init__.py").read_text())
    (block,) = [node for node in tree.body if isinstance(node, ast.If)]
    imports = [node for node in block.body if isinstance(node, ast.ImportFrom)]
    names = {a.name: node.module for node in imports if not node.level for a in node.names}
    return names, {a.name for node in imports if node.level for a in node.names}


def test_the_names_are_loaded_from_where_type_checkers_find_them():
    names, subpackages = typed_names()
    assert names == gfucb._MODULE_OF
    assert subpackages == gfucb._SUBPACKAGES
    assert set(names) == set(gfucb.__all__)
    for name, module in names.items():
        assert getattr(gfucb, name) is getattr(importlib.import_module(module), name)


def test_subpackages_need_no_import_of_their_own():
    for name in gfucb._SUBPACKAGES:
        assert getattr(gfucb, name) is importlib.import_module(f"gfucb.{name}")
    assert {*gfucb.__all__, *gfucb._SUBPACKAGES, "__version__"} <= set(dir(gfucb))


@pytest.mark.parametrize("name", ["no_such_name", "GFUCBs", "__wrapped__", ""])
def test_an_unknown_name_is_an_attribute_error(name):
    with pytest.raises(AttributeError, match=f"module 'gfucb' has no attribute '{name}'"):
        getattr(gfucb, name)
    assert not hasattr(gfucb, name)


def test_comparing_without_pandas_names_the_cure(monkeypatch):
    monkeypatch.delitem(vars(gfucb), "compare", raising=False)
    monkeypatch.delitem(sys.modules, "gfucb.runs.api", raising=False)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ModuleNotFoundError, match=r"needs pandas: pip install 'gfucb\[exp"):
        _ = gfucb.compare


def test_the_library_leaves_logging_to_the_program():
    logger = logging.getLogger("gfucb")
    assert any(isinstance(handler, logging.NullHandler) for handler in logger.handlers)
    assert logger.level == logging.NOTSET and logger.propagate
