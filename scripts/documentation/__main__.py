"""Build the documentation site.

    python -m scripts.documentation [--out DIRECTORY]

The pages are staged in OUT/source, the site is OUT/html. A warning of Sphinx, such as a link that
leads nowhere, is an error.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from scripts.documentation.staging import stage
from sphinx.cmd.build import main as sphinx_build

HERE = Path(__file__).parent
ROOT = HERE.parents[1]


def build(out: Path) -> int:
    """Stage all pages and build the site; return the exit code of Sphinx."""
    stage(ROOT, out / "source")
    return build_html(out)


def build_html(out: Path) -> int:
    """Build the site from the pages that are staged in OUT/source."""
    source, html = out / "source", out / "html"
    options = ["--quiet", "--fail-on-warning", "--keep-going", "--conf-dir", str(HERE)]
    return sphinx_build([*options, "--doctree-dir", str(out / "doctrees"), str(source), str(html)])


def main() -> None:
    """Build the site and say where it is."""
    parser = argparse.ArgumentParser(prog="python -m scripts.documentation", description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "site")
    out = parser.parse_args().out.resolve()
    code = build(out)
    print(f"The site is {out / 'html' / 'index.html'}" if code == 0 else "The site has warnings.")
    raise SystemExit(code)


if __name__ == "__main__":
    main()
