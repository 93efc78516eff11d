"""Documents: their code runs, their commands parse and run, their links and names exist."""

import gzip
import hashlib
import importlib
import inspect
import re
import shlex
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.distributed.run import get_args_parser

import gfucb
from gfucb.cli.commands import DEFAULTS, parse
from gfucb.cli.main import main
from gfucb.environments import images
from gfucb.estimation import variable_projection
from gfucb.paper import REPRODUCTIONS
from gfucb.runs import AGENTS, ENVIRONMENTS

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "gfucb"
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
NAMES = {path: path.relative_to(ROOT).as_posix() for path in DOCUMENTS}
SLOW_CODE = {
    f"docs/{name}.md"
    for name in (
        "explanation/cost explanation/theory how-to/add_a_fit how-to/choose_inputs "
        "how-to/compare_agents how-to/evaluate_a_policy_from_a_log "
        "tutorials/episodes tutorials/first_agent tutorials/stores"
    ).split()
}

# Flags that make a command small. Later flags override earlier ones.
SMALL = {
    "run": ["--num-rounds", "2"],
    "compare": ["--num-rounds", "2", "--seeds", "0", "--processes", "1"],
    "reproduce": ["--quick"],
    "reproduce all": ["--quick", "--only", "[Ms][=i]*"],  # the jobs of one figure, fig3
    "bench": ["--quick"],
}
LOG = "store,action,probability,reward\n" + 30 * "Oslo,none,0.5,0\nLima,coupon,0.5,1\n"
# What a fenced block may hold: `python` runs, `sh` and `console` are commands, others are figures.
FENCES = {"python", "sh", "console", "mermaid"}


def code_blocks(path: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", path.read_text(), flags=re.DOTALL | re.M)


def commands_of(path: Path) -> list[list[str]]:
    """The commands in the shell blocks of a document, without comments, as words."""
    text = "\n".join(block for kind in ("sh", "console") for block in code_blocks(path, kind))
    lines = text.replace("\\\n", " ").splitlines()
    found = [shlex.split(line.removeprefix("$ "), comments=True) for line in lines]
    return [words for words in found if words]


def write_named_files(path: Path, directory: Path) -> None:
    """Write the Python blocks that start with a comment `# name.py` to files of that name."""
    for block in code_blocks(path, "python"):
        if name := re.match(r"# (\w+\.py)\n", block):
            (directory / name.group(1)).write_text(block)


# The code of a document also runs as a plugin of its commands.
pytestmark = pytest.mark.usefixtures("restored_registries")


def params(paths, slow=frozenset()):
    marks = {True: [pytest.mark.slow], False: []}
    return [pytest.param(p, id=NAMES[p], marks=marks[NAMES[p] in slow]) for p in paths]


WITH_CODE = [path for path in DOCUMENTS if code_blocks(path, "python")]
WITH_COMMANDS = [path for path in DOCUMENTS if commands_of(path)]


@pytest.mark.parametrize("path", params(WITH_CODE, SLOW_CODE))
def test_python_blocks_run_in_order(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_named_files(path, tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    names: dict = {"__name__": "document"}
    for block in code_blocks(path, "python"):
        exec(compile(block, NAMES[path], "exec"), names)


@pytest.mark.parametrize("path", params(WITH_COMMANDS))
def test_commands_are_accepted(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_named_files(path, tmp_path)
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.M)
    extras = (ROOT / "pyproject.toml").read_text()
    for words in commands_of(path):
        program, rest = words[0], words[1:]
        if program == "gfucb":
            if not {"-h", "--help", "--version"} & set(rest):
                parse(rest)
        elif program == "make":
            assert all(target in targets for target in rest), words
        elif words[:2] == ["python", "-m"] and rest[1].startswith("benchmarks."):
            main_module = ".__main__" * (ROOT / rest[1].replace(".", "/")).is_dir()
            importlib.import_module(rest[1] + main_module).parser().parse_args(rest[2:])
        elif program == "python":
            assert (ROOT / rest[0]).is_file(), words
        elif program == "torchrun":
            script = get_args_parser().parse_args(rest).training_script
            assert (tmp_path / script).is_file(), words
        elif program == "ray":
            scripts = pytest.importorskip("ray.scripts.scripts", reason="Ray is not installed")
            scripts.cli.commands[rest[0]].make_context(rest[0], rest[1:])
        elif program == "pip":
            for extra in ",".join(re.findall(r"\[(.+)\]", words[-1])).split(","):
                assert not extra or f"\n{extra} = [" in extras, words
        else:
            pytest.fail(f"{NAMES[path]} has a command that no test understands: {words}")


def write_small_mnist(directory: Path) -> dict[str, str]:
    """Write 300 random images and labels in the format of MNIST; return the checksums."""
    directory.mkdir(parents=True)
    draws, sums = np.random.default_rng(0), {}
    for name in images.MNIST_FILES:
        shape = (300, 28, 28) if "images" in name else (300,)
        numbers = draws.integers(256 if "images" in name else 10, size=shape).astype(np.uint8)
        header = np.array([0x0800 + len(shape), *shape], dtype=">u4").tobytes()
        content = gzip.compress(header + numbers.tobytes(), mtime=0)
        (directory / f"{name}.gz").write_bytes(content)
        sums[name] = hashlib.sha256(content).hexdigest()
    return sums


@pytest.fixture(scope="module")
def working_directory(tmp_path_factory):
    """One working directory for all documents: runs that several documents name run once."""
    directory = tmp_path_factory.mktemp("documents")
    (directory / "runs").mkdir()
    (directory / "log.csv").write_text(LOG)
    return directory, write_small_mnist(directory / "data" / "mnist")


@pytest.fixture
def run_small(working_directory, monkeypatch):
    """A function that runs a command of a document in a small version."""
    directory, sums = working_directory
    monkeypatch.chdir(directory)
    monkeypatch.setattr(images, "MNIST_FILES", sums)  # nothing is downloaded
    for name in ("STEPS", "STEPS_WITH_CONVOLUTIONS"):
        monkeypatch.setattr(variable_projection, name, 4)

    def run(words: list[str]) -> None:
        if not torch.cuda.is_available():
            words = ["cpu" if word == "cuda" else word for word in words]
        # Without a cluster; tests/runs/test_ray_engine.py has one.
        for flag in {"--engine", "--address"} & set(words):
            at = words.index(flag)
            words = words[:at] + words[at + 2 :]
        small = SMALL.get(" ".join(words[:2]), SMALL.get(words[0], []))
        main([*words, *small])

    return run


@pytest.mark.slow
@pytest.mark.parametrize("path", params(WITH_COMMANDS))
def test_commands_run_in_a_small_version(path, run_small):
    write_named_files(path, Path.cwd())
    for words in commands_of(path):
        if words[0] == "gfucb":
            run_small(words[1:])


@pytest.mark.slow
def test_the_demo_runs_in_a_small_version(run_small):
    recipe = re.search(r"^demo:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), flags=re.M)
    commands = [shlex.split(line) for line in recipe.group(1).splitlines()]
    assert {words[0] for words in commands} == {"$(BIN)/gfucb"}
    for words in commands:
        run_small(words[1:])


@pytest.mark.parametrize("path", params(DOCUMENTS))
def test_every_block_is_of_a_kind_that_is_tested(path):
    fences = re.findall(r"^ *```.*$", path.read_text(), flags=re.M)
    kinds = [fence.removeprefix("```") for fence in fences[::2]]
    assert set(fences[1::2]) <= {"```"} and set(kinds) <= FENCES, kinds


@pytest.mark.parametrize("path", params(DOCUMENTS))
def test_commands_in_the_text_are_accepted(path):
    """Words in capitals stand for any name; a command without flags may be incomplete."""
    prose = re.sub(r"^```.*?^```", "", path.read_text(), flags=re.DOTALL | re.M)
    for command in re.findall(r"`gfucb ([a-z][^`]*)`", prose):
        name, *rest = shlex.split(command)
        assert name in DEFAULTS, command
        if name == "reproduce" and rest and not rest[0].isupper():
            assert rest[0] in (*REPRODUCTIONS, "all"), command
        if any(word.startswith("--") for word in rest) and "--help" not in rest:
            parse([name, *rest])


def anchors_of(path: Path) -> set[str]:
    """The anchors of the headings of a document."""
    headings = re.findall(r"^#+ (.+)$", path.read_text(), flags=re.M)
    return {re.sub(r"[^a-z0-9 _-]", "", h.lower()).replace(" ", "-") for h in headings}


@pytest.mark.parametrize("path", params(DOCUMENTS))
def test_links_lead_to_files_and_headings(path):
    for link, anchor in re.findall(r"\]\((?!https?:)([^)#\s]*)#?([^)\s]*)\)", path.read_text()):
        target = (path.parent / link).resolve() if link else path
        assert target.exists(), f"{NAMES[path]} links to {link}, which does not exist"
        if anchor:
            assert anchor in anchors_of(target), f"{NAMES[path]}: {link} has no heading #{anchor}"


def test_every_document_is_linked_from_an_index():
    linked = set()
    for index in (
        ROOT / "README.md",
        ROOT / "docs" / "README.md",
        ROOT / "docs/notebook/README.md",
    ):
        for link in re.findall(r"\]\(([^)#]+\.md)", index.read_text()):
            linked.add((index.parent / link).resolve())
    missing = [NAMES[path] for path in DOCUMENTS if path.parent != ROOT and path not in linked]
    assert not missing


@pytest.mark.parametrize("path", params(DOCUMENTS))
def test_modules_and_functions_named_in_documents_exist(path):
    text = path.read_text()
    for module in re.findall(r"`([a-z_0-9/]+/[a-z_0-9]+\.py)(?:::|`)", text):
        assert (PACKAGE / module).exists() or (ROOT / module).exists(), module
    for module, attribute in re.findall(r"`([a-z_0-9/]+)\.py::([A-Za-z_.0-9]+)`", text):
        found = importlib.import_module(f"gfucb.{module.replace('/', '.')}")
        for part in attribute.split("."):
            fields = getattr(found, "__dataclass_fields__", {})
            assert hasattr(found, part) or part in fields, f"{module}.py::{attribute}"
            found = getattr(found, part, None)


FOREIGN_NAMES = {"DataFrame", "Categorical", "broadcast_to"}


@pytest.fixture(scope="module")
def known_words() -> set[str]:
    """All words of the programs and of the Python blocks of documents."""
    programs = [
        path.read_text()
        for directory in ("src", "benchmarks")
        for path in sorted((ROOT / directory).rglob("*"))
        if path.suffix in (".py", ".json")
    ]
    blocks = [block for path in DOCUMENTS for block in code_blocks(path, "python")]
    return {word for text in (*programs, *blocks) for word in re.findall(r"\w+", text)}


@pytest.mark.parametrize("path", params(DOCUMENTS))
def test_identifiers_in_documents_exist(path, known_words):
    prose = re.sub(r"^```.*?^```", "", path.read_text(), flags=re.DOTALL | re.M)
    words = set(re.findall(r"`([A-Za-z_]+)(?:\(.*?\))?`", prose))
    identifiers = {w for w in words if "_" in w or re.search(r"[a-z][A-Z]", w)}
    assert not identifiers - FOREIGN_NAMES - known_words


def test_the_map_of_the_paper_names_functions():
    text = (ROOT / "docs" / "explanation" / "algorithm.md").read_text()
    assert len(re.findall(r"\.py::", text)) > 20


def test_every_departure_from_the_paper_is_listed_with_its_file():
    text = (ROOT / "docs" / "explanation" / "algorithm.md").read_text()
    table = text[text.index("## Departures") :]
    for path in sorted(PACKAGE.rglob("*.py")):
        marks = len(re.findall(r"# Paper:", path.read_text()))
        name = path.relative_to(PACKAGE).as_posix()
        rows = len(re.findall(rf"^\| `{re.escape(name)}`", table, flags=re.M))
        assert rows == marks, f"{name} has {marks} `# Paper:` comments, the table {rows} rows"


def test_the_readme_is_short_and_shows_the_two_commands():
    text = (ROOT / "README.md").read_text()
    assert text.count("\n") <= 80
    assert "make demo" in text and "make test" in text


def table_rows(text: str, heading: str) -> list[list[str]]:
    """The cells of the first table below a heading, without its head."""
    section = text[text.index(heading) :]
    table = re.search(r"^\|.*?\n(?!\|)", section, flags=re.DOTALL | re.M)
    assert table, f"there is no table below {heading}"
    lines = table.group().strip().splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def test_the_api_page_lists_every_public_name_with_its_arguments():
    text = (ROOT / "docs" / "reference" / "api.md").read_text()
    public = text[: text.index("## To extend")]
    listed = dict(re.findall(r"^\| `([A-Za-z_]+)(?:\(([^)]*)\))?` \|", public, flags=re.M))
    missing = set(gfucb.__all__) - set(listed)
    assert not missing, f"the page does not list {sorted(missing)}"
    for name in gfucb.__all__:
        thing = getattr(gfucb, name)
        if not (isinstance(thing, type) and issubclass(thing, Exception)):
            arguments = ", ".join(inspect.signature(thing).parameters)
            assert listed[name] == arguments, f"the arguments of {name} are: {arguments}"


CONFIGS = {entry.config for entry in (*ENVIRONMENTS.values(), *AGENTS.values())}


@pytest.mark.parametrize("config", sorted(CONFIGS, key=lambda config: config.__name__))
def test_the_settings_page_lists_every_setting_with_its_default(config):
    text = (ROOT / "docs" / "reference" / "settings.md").read_text()
    listed = {
        row[0].strip("`"): row[1].strip("`") for row in table_rows(text, f"`{config.__name__}`")
    }
    expected = {field.name: str(field.default) for field in fields(config)}
    assert listed == {name: "none" if d == "None" else d for name, d in expected.items()}


def test_the_command_line_page_lists_every_command(capsys):
    text = (ROOT / "docs" / "reference" / "command_line.md").read_text()
    main([])
    commands = set(re.findall(r"^  gfucb ([a-z-]+) ", capsys.readouterr().out, flags=re.M))
    assert commands
    listed = {row[0].strip("`").removeprefix("gfucb ") for row in table_rows(text, "| command")}
    assert listed == commands


def test_the_architecture_page_lists_every_package():
    text = (ROOT / "docs" / "architecture.md").read_text()
    listed = {row[1].strip("`") for row in table_rows(text, "## Packages")}
    assert listed == {path.parent.name for path in PACKAGE.glob("*/__init__.py")}


def test_walkthroughs_are_ordered_lists_that_name_each_file_once():
    text = (ROOT / "docs" / "architecture.md").read_text()
    walkthroughs = re.findall(r"^## Walkthrough: .*?(?=^## )", text, flags=re.DOTALL | re.M)
    assert len(walkthroughs) == 4
    for walkthrough in walkthroughs:
        files = re.findall(r"^\d+\. `([a-z_0-9/]+\.py)`:", walkthrough, flags=re.M)
        assert len(files) > 5 and len(set(files)) == len(files)
        assert len(files) == len(re.findall(r"^\d+\. ", walkthrough, flags=re.M))
