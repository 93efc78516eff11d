"""Staging: the documents of the repository as pages of the site.

Documents stay where a code host shows them, with relative links. Here each gets a place in the
site, and its links are rewritten: to other pages, to pages with the source of a program, or to
copies of images. Files are written only if they changed, so that Sphinx builds only these again.
"""

from __future__ import annotations

import os
import re
import shutil
import tomllib
from collections.abc import Callable
from pathlib import Path, PurePosixPath

from scripts.documentation.api_pages import api_pages, link_names
from scripts.documentation.command_pages import command_pages, link_commands
from scripts.documentation.contents import Section, read_sections

HERE = Path(__file__).parent
# Documents outside docs/ that are pages, and where.
PROJECT_PAGES = {
    "CONTRIBUTING.md": "project/contributing.md",
    "SECURITY.md": "project/security.md",
    "CHANGELOG.md": "project/changelog.md",
    "docs/architecture.md": "architecture.md",
}
IMAGES = {".png", ".svg"}
LINK = re.compile(r"(?<=\]\()(?!https?:|mailto:)([^)#\s]*)(#[^)\s]*)?(?=\))")


class Stage:
    """A directory of pages that is being written.

    Attributes:
        root: the repository.
        out: the directory.
        sections: those of docs/README.md.
    """

    def __init__(self, root: Path, out: Path) -> None:
        self.root, self.out = root, out
        self.sections = read_sections(root / "docs" / "README.md")
        self._written: set[Path] = set()

    def write(self, page: str, text: str) -> None:
        """Write a page; one that has this text already stays as it is."""
        path = self.out / page
        self._written.add(path)
        if not path.exists() or path.read_text() != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def add_document(self, name: str, page: str, change: Callable[[str], str] = str) -> None:
        """Write a document of the repository as a page; `change` is applied to its text."""
        text = (self.root / name).read_text()
        self.write(page, change(self.rewrite_links(text, name, page)))

    def rewrite_links(self, text: str, name: str, page: str) -> str:
        """Rewrite the relative links of a document so that they hold for its page."""
        parent = PurePosixPath(name).parent

        def rewrite(match: re.Match[str]) -> str:
            link, anchor = match.group(1), match.group(2) or ""
            if not link:
                return anchor
            target = os.path.normpath(parent / link)
            place, anchor = self._place(target, anchor)
            return os.path.relpath(place, PurePosixPath(page).parent) + anchor

        text = re.sub(r"(?<=\d) ± ", "\u00a0±\u00a0", text)  # an interval is not broken into lines
        parts = re.split(r"(^```.*?^```$)", text, flags=re.DOTALL | re.MULTILINE)
        return "".join(p if p.startswith("```") else LINK.sub(rewrite, p) for p in parts)

    def _place(self, target: str, anchor: str) -> tuple[str, str]:
        """Where a file of the repository is in the site, and the anchor there."""
        if target == "README.md":
            return "index.md", ""
        if target == "docs/README.md":
            pages = {f"#{section.anchor}": section.page for section in self.sections}
            return pages.get(anchor, "index.md"), ""
        if target in PROJECT_PAGES:
            return PROJECT_PAGES[target], anchor
        if target.startswith("docs/") and target.endswith(".md"):
            page = target.removeprefix("docs/")
            return page.replace("README.md", "index.md"), anchor
        place = f"repository/{target}"
        if PurePosixPath(target).suffix in IMAGES:
            self._copy(target, place)
            return place, anchor
        return self._source_page(target, place), anchor

    def _copy(self, name: str, place: str) -> None:
        path = self.out / place
        self._written.add(path)
        if not path.exists() or path.read_bytes() != (self.root / name).read_bytes():
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(self.root / name, path)

    def _source_page(self, name: str, place: str) -> str:
        """A page with the text of a file, such as a program in `examples`."""
        text = (self.root / name).read_text()
        if name.endswith(".md"):
            self.write(place, "---\norphan: true\n---\n" + self.rewrite_links(text, name, place))
            return place
        language = "python" if name.endswith(".py") else "text"
        block = f"---\norphan: true\n---\n# `{name}`\n\n`````{language}\n{text.rstrip()}\n`````\n"
        self.write(f"{place}.md", block)
        return f"{place}.md"

    def remove_others(self) -> None:
        """Remove pages of an earlier build that no longer exist."""
        for path in self.out.rglob("*"):
            if path.is_file() and path not in self._written:
                path.unlink()


def toctree(pages: list[str], *options: str) -> str:
    """A hidden table of contents, which makes the navigation."""
    return "\n".join(["", "```{toctree}", ":hidden:", *options, "", *pages, "```", ""])


def stage(root: Path, out: Path) -> None:
    """Write all pages of the site to `out`."""
    to = Stage(root, out)
    api, commands = api_pages(), command_pages()
    changes: dict[str, Callable[[str], str]] = {
        "reference/api.md": lambda text: link_names(text, api) + toctree(_below("api", api)),
        "reference/command_line.md": lambda text: (
            link_commands(text, commands) + toctree(_below("commands", commands))
        ),
        "architecture.md": lambda text: _draw_layers(text, root),
    }
    for path in sorted((root / "docs").rglob("*.md")):
        page = path.relative_to(root / "docs").as_posix()
        if page not in ("README.md", "notebook/README.md"):
            to.add_document(f"docs/{page}", page, changes.get(page, str))
    for directory, pages in (("api", api), ("commands", commands)):
        for name, text in pages.items():
            to.write(f"reference/{directory}/{name}", text)
    for section in to.sections:
        _add_section(to, section)
    for name, page in PROJECT_PAGES.items():
        if page.startswith("project/"):
            to.add_document(name, page)
    front = _front_page(to)
    to.write("index.md", to.rewrite_links(front, "README.md", "index.md"))
    project = [page.removeprefix("project/") for page in PROJECT_PAGES.values() if "/" in page]
    text = (HERE / "project.md").read_text()
    to.write("project/index.md", text + toctree(project))
    to.remove_others()


def _below(directory: str, pages: dict[str, str]) -> list[str]:
    return [f"{directory}/{name}" for name in pages]


def _add_section(to: Stage, section: Section) -> None:
    """The first page of a section: the table of docs/README.md, and the navigation."""
    if section.directory == "notebook":
        notebook = to.root / "docs" / "notebook"
        pages = re.findall(r"\]\(([^/)#]+\.md)\)", (notebook / "README.md").read_text())
        change = _appending(toctree(pages, ":maxdepth: 1"))
        to.add_document("docs/notebook/README.md", section.page, change)
        return
    body = to.rewrite_links(section.text, "docs/README.md", section.page)
    summary = section.summary[:1].upper() + section.summary[1:]
    pages = [f"/{link}" for link in section.links]
    text = f"# {section.title}\n\n{summary}.\n\n{body}\n"
    to.write(section.page, text + toctree(pages, ":maxdepth: 1"))


def _appending(end: str) -> Callable[[str], str]:
    return lambda text: text + end


def _front_page(to: Stage) -> str:
    """The first page: its template, filled with parts of README.md."""
    readme = (to.root / "README.md").read_text()
    parts = dict(re.findall(r"^## (.+?)\n(.+?)(?=^## |\Z)", readme, flags=re.DOTALL | re.MULTILINE))
    lead = readme[readme.index("**") : readme.index("## ")]
    example = next(text for title, text in parts.items() if title.startswith("First example"))
    template = (HERE / "index.md").read_text()
    cards = "\n".join(
        f":::{{grid-item-card}} {s.title}\n:link: {s.page.removesuffix('.md')}\n:link-type: doc\n\n"
        f"{s.summary[:1].upper() + s.summary[1:]}.\n:::\n"
        for s in to.sections
    )
    filled = template.replace("{lead}", lead.strip()).replace("{example}", example.strip())
    filled = filled.replace("{results}", parts["Results"].strip()).replace("{sections}", cards)
    pages = [*(section.page for section in to.sections), "project/index.md"]
    return filled + toctree(pages, ":maxdepth: 2")


def _draw_layers(text: str, root: Path) -> str:
    """The layers of the packages as boxes, instead of the diagram that a code host draws."""
    project = tomllib.loads((root / "pyproject.toml").read_text())
    layers = project["tool"]["importlinter"]["contracts"][0]["layers"]
    rows = "".join(
        '<div class="layer">'
        + "".join(f"<code>{name.strip()}</code>" for name in layer.split("|"))
        + "</div>"
        for layer in layers
    )
    html = f'<div class="layers" role="img" aria-label="Layers of packages">{rows}</div>'
    return re.sub(r"^```mermaid\n.*?^```$", html, text, flags=re.DOTALL | re.MULTILINE)
