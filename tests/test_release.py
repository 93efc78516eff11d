"""What a release consists of: distributions, citation, issue forms, lock file."""

import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import gfucb

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "gfucb"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
# Builds of torch for CUDA state the exact versions of these; the build for CPUs has none.
OF_CUDA = ("nvidia-", "cuda-", "triton")


def run(*words: object, cwd: Path, path: Path | None = None) -> str:
    env = {"PYTHONPATH": str(path)} if path else None
    result = subprocess.run(
        [str(word) for word in words], cwd=cwd, env=env, capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def build(kind: str, source: Path, out: Path) -> Path:
    """Build a wheel or an sdist as a frontend does, without isolation and without a network."""
    out.mkdir(exist_ok=True)
    code = f"from setuptools.build_meta import build_{kind}; build_{kind}({str(out)!r})"
    run(sys.executable, "-W", "error::DeprecationWarning", "-c", code, cwd=source)
    (built,) = out.glob(f"*.{'whl' if kind == 'wheel' else 'tar.gz'}")
    return built


def _not_committed(directory: str, names: list[str]) -> set[str]:
    generated = shutil.ignore_patterns("__pycache__", "*.egg-info", "jobs")(directory, names)
    if Path(directory) == ROOT:  # deeper directories of such names are sources
        in_root = (".git", ".venv*", ".*_cache", ".hypothesis", "runs", "data", "build", "dist")
        generated |= shutil.ignore_patterns(*in_root)(directory, names)
    return generated


@pytest.fixture(scope="module")
def unpacked_sdist(tmp_path_factory):
    """The sources of the sdist, built from the files of this checkout."""
    directory = tmp_path_factory.mktemp("release")
    shutil.copytree(ROOT, directory / "checkout", ignore=_not_committed)
    with tarfile.open(build("sdist", directory / "checkout", directory / "sdist")) as archive:
        archive.extractall(directory, filter="data")
    return directory / f"gfucb-{gfucb.__version__}"


@pytest.mark.slow
def test_the_sdist_has_what_the_documents_link_to(unpacked_sdist):
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        there = unpacked_sdist / page.relative_to(ROOT)
        for link in re.findall(r"\]\((?!https?:)([^)#\s]+)", page.read_text()):
            assert (there.parent / link).exists(), f"{page.relative_to(ROOT)} links to {link}"


@pytest.mark.slow
def test_the_wheel_is_complete_and_works_alone(unpacked_sdist, tmp_path):
    wheel = build("wheel", unpacked_sdist, tmp_path / "wheel")
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if ".dist-info/" not in name}
        metadata = next(n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        readme = archive.read(metadata).decode()
    sources = [p for p in PACKAGE.rglob("*") if p.is_file() and "__pycache__" not in p.parts]
    assert packed == {path.relative_to(PACKAGE.parent).as_posix() for path in sources}
    assert "Description-Content-Type: text/markdown" in readme and "# gfucb" in readme
    # An index has no files that relative links could lead to.
    assert not re.search(r"\]\((?!https?:)", readme)
    assert "first agent (`docs/tutorials/first_agent.md`)" in readme

    site = tmp_path / "site"
    options = ("--no-deps", "--no-index", "--no-compile", "--disable-pip-version-check")
    install = (sys.executable, "-m", "pip", "install", *options)
    run(*install, "--target", site, wheel, cwd=tmp_path)
    assert run(site / "bin" / "gfucb", "--version", cwd=tmp_path, path=site) == (
        f"gfucb {gfucb.__version__}\n"
    )
    assert "gfucb compare" in run(site / "bin" / "gfucb", "--help", cwd=tmp_path, path=site)
    code = (
        "import gfucb; print(gfucb.__file__)\n"
        "decision = gfucb.GFUCB(2, seed=0).decide([[[0.0], [1.0]]] * 2)\n"
        "print(len(decision.actions))"
    )
    printed = run(sys.executable, "-c", code, cwd=tmp_path, path=site).splitlines()
    assert printed == [str(site / "gfucb" / "__init__.py"), "2"]


def test_the_citation_names_this_version_and_the_paper():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["cff-version"] == "1.2.0" and citation["type"] == "software"
    assert citation["version"] == gfucb.__version__
    assert citation["license"] == PROJECT["license"]
    assert citation["authors"] == PROJECT["authors"]
    assert citation["abstract"] == PROJECT["description"]
    (paper,) = citation["references"]
    readme = " ".join((ROOT / "README.md").read_text().split())
    assert paper["title"] in readme and str(paper["year"]) in readme
    assert [author["family-names"] for author in paper["authors"]] == ["Lu", "Zhao", "Du", "Huang"]
    assert paper["identifiers"][0]["value"] == "arXiv:2205.15701"
    assert PROJECT["urls"]["Paper"].endswith("/2205.15701")


FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("[!c]*.yml"))


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.stem)
def test_issue_forms_have_the_form_that_the_host_expects(path):
    form = yaml.safe_load(path.read_text())
    assert {"name", "description", "body"} <= set(form) <= {"name", "description", "labels", "body"}
    assert all(element["type"] in ("textarea", "input") for element in form["body"])
    assert all(element["attributes"]["label"] for element in form["body"])
    ids = [element["id"] for element in form["body"]]
    assert len(set(ids)) == len(ids)
    assert any(element["validations"]["required"] for element in form["body"])


def test_only_the_python_that_is_tested_is_declared():
    prefix = "Programming Language :: Python :: "
    declared = [c.removeprefix(prefix) for c in PROJECT["classifiers"] if c.startswith(prefix)]
    assert PROJECT["requires-python"] == f">={declared[0]},<3.{int(declared[-1][2:]) + 1}"
    stated = f"With Python {', '.join(declared[:-1])} or {declared[-1]} and `make`"
    for name in ("README.md", "CONTRIBUTING.md"):
        assert stated in (ROOT / name).read_text()


def test_the_lock_file_pins_all_that_is_installed_for_development():
    lines = (ROOT / "constraints.txt").read_text().split()
    pins = {canonicalize_name(line.split("==")[0]): line.split("==")[1] for line in lines}
    extras = PROJECT["optional-dependencies"]
    pending = [*PROJECT["dependencies"], *extras["experiments"], *extras["dev"], *extras["docs"]]
    pending += ["pip", "setuptools"]
    seen: set[str] = set()
    while pending:
        wanted = Requirement(pending.pop())
        name = canonicalize_name(wanted.name)
        extra = {"extra": next(iter(wanted.extras), "")}
        if wanted.marker is not None and not wanted.marker.evaluate(extra):
            continue
        if name.startswith(OF_CUDA) and name not in pins:
            continue
        assert name in pins, f"constraints.txt does not pin {name}"
        assert wanted.specifier.contains(pins[name]), f"{name}=={pins[name]} is not {wanted}"
        if name not in seen:
            seen.add(name)
            try:
                pending += [r for r in requires(name) or [] if "extra ==" not in r]
            except PackageNotFoundError:
                continue  # not installed on this machine
