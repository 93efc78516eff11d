"""The description for package indexes; all other metadata is in pyproject.toml.

The README links to files of the repository. An index shows it without them, and there is no
homepage that the links could lead to, so each becomes its text and the path in the source
distribution.
"""

import re
from pathlib import Path

from setuptools import setup

RELATIVE = r"\((?!https?:|mailto:)([^)#]*)(?:#[^)]*)?\)"


def without_links(text: str) -> str:
    """The README with paths instead of relative links, and without images."""
    text = re.sub(rf"!\[[^\]]*\]{RELATIVE}\n*", "", text)
    return re.sub(rf"\[([^\]]+)\]{RELATIVE}", _with_path, text)


def _with_path(link: re.Match[str]) -> str:
    label, path = link.groups()
    return label if label.strip("`") == path else f"{label} (`{path}`)"


setup(
    long_description=without_links(Path(__file__).with_name("README.md").read_text("utf-8")),
    long_description_content_type="text/markdown",
)
