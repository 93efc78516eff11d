"""The table of contents: the sections of docs/README.md, which is also the index on a code host."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Section:
    """A section of the documentation.

    Attributes:
        title: its name, such as "How-to guides".
        summary: what it is for, such as "solve one problem".
        text: what docs/README.md says below the heading, with one table of pages.
    """

    title: str
    summary: str
    text: str

    @property
    def directory(self) -> str:
        """Where its pages are, below docs/: "How-to guides" are in how-to."""
        return self.title.lower().removesuffix(" guides")

    @property
    def anchor(self) -> str:
        """The anchor of its heading in docs/README.md."""
        heading = f"{self.title}: {self.summary}".lower()
        return re.sub(r"[^a-z0-9 _-]", "", heading).replace(" ", "-")

    @property
    def page(self) -> str:
        """The page of the site, relative to docs/."""
        return f"{self.directory}/index.md"

    @property
    def links(self) -> list[str]:
        """The pages that the section links to, relative to docs/, in order."""
        return re.findall(r"^\| \[[^]]+\]\(([^)#]+\.md)\)", self.text, flags=re.MULTILINE)


def read_sections(index: Path) -> list[Section]:
    """The sections of docs/README.md."""
    parts = re.split(r"^## (.+)$", index.read_text(), flags=re.MULTILINE)[1:]
    sections = []
    for heading, text in zip(parts[::2], parts[1::2], strict=True):
        title, _, summary = heading.partition(": ")
        sections.append(Section(title, summary, text.strip()))
    return sections
