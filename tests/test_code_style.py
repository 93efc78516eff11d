"""Rules for the sources that a linter does not know: vocabulary, sizes, randomness, departures."""

import ast
import re
from collections.abc import Callable, Iterable
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "gfucb"
SOURCES = sorted(PACKAGE.rglob("*.py"))
PROGRAMS = [
    *SOURCES,
    *sorted((ROOT / "tests").rglob("*.py")),
    *sorted((ROOT / "benchmarks").rglob("*.py")),
    *sorted((ROOT / "examples").rglob("*.py")),
    *sorted((ROOT / "scripts").rglob("*.py")),
]
DOCUMENTS = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]

LONGEST_FILE = 350
LONGEST_FUNCTION = 60

# Words with a standard term of the field in their place. They also count as parts of names.
PRIVATE_WORDS = (
    "doors?|rooms?|menus?|promise[sd]?|hope[sd]?|hopeful|hoping|lots|surprises?|stale|told|"
    "also_told|news|belie(?:f|fs|ve|ved|ves)|unlearned|fleets?|lockstep|disband(?:ed|s)?|"
    "referees?|pieces?|signed|makers?|folders?|worlds?|waves?|guess(?:es)?|recorded|TaskRows|"
    "StageMemory|trust(?:ed|s)?|copies|entered|places?|played|entry|entries"
)
FORBIDDEN = re.compile(rf"(?<![A-Za-z])(?:{PRIVATE_WORDS}|by lot)(?![A-Za-z])", re.IGNORECASE)

# (file or folder, pattern of the allowed words, why they are the right words there).
ALLOWED: list[tuple[str, str, str]] = [
    ("src/gfucb/runs", "entry|entries", "a registry has entries"),
    ("src/gfucb/cli", "entry|entries", "a registry has entries"),
    ("src/gfucb/distributed", "world_size", "torch's name for the number of processes"),
    ("src/gfucb", "in place", "torch's term for an operation that writes to its input"),
]


def private_words(name: str, text: str) -> list[str]:
    """Words of the private vocabulary in the text of a file, with their lines."""
    allowed = [
        re.compile(pattern, re.IGNORECASE)
        for place, pattern, _ in ALLOWED
        if name.startswith(place)
    ]
    found = []
    for number, line in enumerate(text.splitlines(), start=1):
        kept = line
        for pattern in allowed:
            kept = pattern.sub("", kept)
        found += [f"{name}:{number}: {match.group()}" for match in FORBIDDEN.finditer(kept)]
    return found


def long_parts(name: str, text: str) -> list[str]:
    """The file, if it is too long, and its functions that are."""
    lengths = [(name, text.count("\n"), LONGEST_FILE)] + [
        (f"{name}: {node.name}", node.end_lineno - node.lineno + 1, LONGEST_FUNCTION)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    return [f"{what}: {lines} lines" for what, lines, longest in lengths if lines > longest]


def findings(rule: Callable[[str, str], list[str]], files: Iterable[Path]) -> list[str]:
    """What a rule finds in all files: one test for all is much faster than one for each."""
    return [
        found
        for path in files
        for found in rule(path.relative_to(ROOT).as_posix(), path.read_text())
    ]


def test_the_vocabulary_is_that_of_the_field():
    assert findings(private_words, [*SOURCES, *DOCUMENTS]) == []
    assert private_words("src/gfucb/x.py", "a\nthe Fleets in place\n") == [
        "src/gfucb/x.py:2: Fleets"
    ]


def test_every_exception_to_the_vocabulary_is_still_needed():
    for place, pattern, reason in ALLOWED:
        assert reason
        start = ROOT / place
        files = [p for p in [*SOURCES, *DOCUMENTS] if p == start or start in p.parents]
        used = any(re.search(pattern, path.read_text(), re.IGNORECASE) for path in files)
        assert used, f"no file of {place} contains {pattern!r}: remove the exception"


def test_files_and_functions_are_short():
    assert len(PROGRAMS) > 500 and findings(long_parts, PROGRAMS) == []
    function = "def f():\n" + "    pass\n" * LONGEST_FUNCTION
    assert long_parts("x.py", function) == ["x.py: f: 61 lines"]
    assert long_parts("x.py", "\n" * 351) == ["x.py: 351 lines"]


def test_no_global_randomness_and_no_pickle_in_the_package():
    forbidden = re.compile(
        r"torch\.manual_seed|np\.random\.|random\.seed\(|torch\.load\(|pickle|"
        r"torch\.(rand|randn|randint|randperm)\((?![^#\n]*generator)"
    )
    for path in SOURCES:
        # A call may span lines: join them before looking for its generator.
        text = re.sub(r"\(\s*\n\s*", "(", path.read_text())
        text = re.sub(r",\s*\n\s*", ", ", text)
        found = [m.group() for m in forbidden.finditer(text)]
        assert not found, f"{path}: {found}"


def test_module_names_are_unique_within_the_package():
    """Two modules of one name in different packages are easy to confuse in an editor."""
    parallel = {"bandits", "episodic"}  # core/validation and checks have one module for each kind
    expected_twice = {"__init__", "gfucb", "baselines", "sweep", "analysis", "plots", *parallel}
    names = [path.stem for path in SOURCES if path.stem not in expected_twice]
    twice = sorted({name for name in names if names.count(name) > 1})
    assert not twice
