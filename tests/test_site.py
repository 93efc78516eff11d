"""The documentation site: staged pages are complete, and Sphinx builds them without a warning."""

import re
import warnings
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from scripts.documentation.__main__ import build_html
from scripts.documentation.contents import read_sections
from scripts.documentation.staging import stage

import gfucb
from gfucb.cli.commands import DEFAULTS

ROOT = Path(__file__).parents[1]
# What a reader looks for first.
FIRST = (
    "how-to/install",
    "tutorials/first_agent",
    "tutorials/stores",
    "how-to/add_a_solver",
    "reference/api/gfucb.GFUCB",
)


@pytest.fixture(scope="module")
def staged(tmp_path_factory):
    out = tmp_path_factory.mktemp("site") / "source"
    stage(ROOT, out)
    return out


def links_of(page: Path) -> list[str]:
    text = re.sub(r"^`{3,}(?!\{).*?^`{3,}$", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    return re.findall(r"\]\((?!https?:|mailto:)([^)#\s]+)", text)


def test_every_document_is_a_page_and_every_link_leads_to_a_file(staged):
    pages = {path.relative_to(staged).as_posix() for path in staged.rglob("*.md")}
    documents = (ROOT / "docs").rglob("*.md")
    expected = {path.relative_to(ROOT / "docs").as_posix() for path in documents}
    assert pages >= {name.replace("README.md", "index.md") for name in expected}
    assert {"project/contributing.md", "project/changelog.md", "project/security.md"} <= pages
    for page in staged.rglob("*.md"):
        for link in links_of(page):
            assert (page.parent / link).exists(), f"{page.relative_to(staged)} links to {link}"


def test_public_names_and_commands_have_pages_that_the_reference_links_to(staged):
    reference = staged / "reference"
    linked = set(links_of(reference / "api.md")) | set(links_of(reference / "command_line.md"))
    assert {f"api/gfucb.{name}.md" for name in gfucb.__all__} <= linked
    assert {f"commands/{name}.md" for name in DEFAULTS} <= linked
    compare = (reference / "commands" / "compare.md").read_text()
    assert "`--num-rounds INT` | `400`" in compare and "{default, constant, printed-log," in compare


def test_intervals_stay_in_one_line_and_lists_stay_lists(staged):
    text = "\n".join(page.read_text() for page in (staged / "notebook").glob("*.md"))
    assert not re.search(r"\d ± \d", text) and "\n* ± is" in text


def test_what_a_reader_looks_for_first_is_on_the_first_page(staged):
    cards = re.findall(r"^:link: (\S+)$", (staged / "index.md").read_text(), flags=re.MULTILINE)
    assert set(FIRST) <= set(cards)


def test_the_sections_are_those_of_the_index(staged):
    sections = read_sections(ROOT / "docs" / "README.md")
    assert [s.directory for s in sections][:3] == ["tutorials", "examples", "how-to"]
    for section in sections:
        text = (staged / section.page).read_text()
        assert all(f"/{link}" in text for link in section.links)


def test_staging_again_keeps_files_and_removes_old_ones(staged):
    old = staged / "tutorials" / "removed.md"
    old.write_text("# Removed")
    page = staged / "tutorials" / "first_agent.md"
    before = page.stat().st_mtime_ns
    stage(ROOT, staged)
    assert not old.exists() and page.stat().st_mtime_ns == before


class Page(HTMLParser):
    """The links, anchors and images of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.without_alt: list[str] = []
        self.text = text
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        if "id" in found:
            self.anchors.add(found["id"])
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        if tag == "img" and not found.get("alt"):
            self.without_alt.append(found.get("src"))


@pytest.mark.slow
def test_the_site_builds_without_warnings_and_its_links_hold(staged, capsys):
    with warnings.catch_warnings():  # of Python; those of Sphinx are errors
        warnings.simplefilter("ignore")
        code = build_html(staged.parent)
    assert code == 0, capsys.readouterr().err
    html = staged.parent / "html"
    pages = {path: Page(path.read_text()) for path in html.rglob("*.html")}
    assert len(pages) > 100 and "gfucb" in (html / "searchindex.js").read_text()
    for path, page in pages.items():
        assert "_SupportsArray" not in page.text and "ForwardRef" not in page.text, path.name
        assert not page.without_alt, f"{path.name}: images without a description"
        for link in page.links:
            url = urlsplit(link)
            if url.scheme or not (url.path or url.fragment):
                continue
            target = (path.parent / unquote(url.path)).resolve() if url.path else path
            assert target.exists(), f"{path.relative_to(html)} links to {link}"
            if url.fragment and target in pages:
                known = pages[target].anchors
                assert unquote(url.fragment) in known, f"{path.relative_to(html)}: {link}"
