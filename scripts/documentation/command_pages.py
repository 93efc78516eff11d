"""Pages of the command line: one for each command, from the text of its `--help`."""

from __future__ import annotations

import contextlib
import io
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from unittest import mock

from gfucb.cli.commands import DEFAULTS
from gfucb.cli.main import main

OTHER_DEFAULTS = """\
Defaults are those without a preset, environment or agent named;
`gfucb {name} --preset NAME --help` shows others.
"""
# So wide that the help of an argument is one line.
WIDTH = 4000


@dataclass
class Box:
    """A box of the help: its title, its text, and arguments with their help."""

    title: str
    description: str = ""
    arguments: list[tuple[str, str]] = field(default_factory=list)


def command_pages() -> dict[str, str]:
    """The text of each page by its file name."""
    return {f"{name}.md": _page(name, _help(name)) for name in DEFAULTS}


def link_commands(text: str, pages: dict[str, str]) -> str:
    """Let the names of commands in a table lead to their pages."""

    def link(match: re.Match[str]) -> str:
        page = f"{match.group(2)}.md"
        return f"| [{match.group(1)}](commands/{page})" if page in pages else match.group()

    return re.sub(r"^\| (`gfucb ([a-z-]+)`)(?= \|)", link, text, flags=re.MULTILINE)


def _help(name: str) -> str:
    printed = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")  # boxes depend on the encoding
    variables = {"COLUMNS": str(WIDTH), "NO_COLOR": "1"}
    with (
        mock.patch.dict(os.environ, variables),
        contextlib.redirect_stdout(printed),
        contextlib.suppress(SystemExit),
    ):
        main([name, "--help"])
    printed.seek(0)
    return printed.read()


def _page(name: str, text: str) -> str:
    head, *_ = text.split("╭")
    _usage, _, description = head.partition("\n\n")
    parts = [f"# gfucb {name}", _escaped(description.strip())]
    boxes = list(_boxes(text))
    if any(box.title.endswith(" options") for box in boxes):
        parts.append(OTHER_DEFAULTS.format(name=name))
    for box in boxes:
        rows = [_row(*pair) for pair in box.arguments if pair[0] != "-h, --help"]
        if rows:
            parts.append(f"## {box.title.capitalize()}")
            parts += [_escaped(box.description)] if box.description else []
            parts.append("\n".join([*_HEAD, *rows]))
    return "\n\n".join(parts) + "\n"


def _boxes(text: str) -> Iterator[Box]:
    """Read the boxes: an argument starts a line, its help follows there or on the next lines."""
    box = Box("")
    for line in text.splitlines():
        if title := re.match(r"╭─ (.+?) ─+╮", line):
            box = Box(title.group(1))
            yield box
        elif (inside := re.match(r"│ (.*) │$", line)) and not set(inside.group(1)) <= set("─ "):
            content = inside.group(1).rstrip()
            argument, _, meaning = content.partition("  ")
            if content.startswith(" "):
                known, before = box.arguments.pop()
                box.arguments.append((known, f"{before} {content.strip()}".strip()))
            elif argument.startswith(("-", "[")) or argument.isupper():
                box.arguments.append((argument, meaning.strip()))
            else:
                box.description = f"{box.description} {content}".strip()


_HEAD = ("| argument | default | meaning |", "|---|---|---|")


def _row(argument: str, meaning: str) -> str:
    default = ""
    if found := re.search(r" ?\((required|default: (.*))\)$", meaning):
        meaning = meaning[: found.start()]
        default = "required" if found.group(1) == "required" else _code(found.group(2))
    names = f"`{_plain(argument)}`".replace("|", r"\|")
    return f"| {names} | {default} | {_escaped(meaning).replace('|', chr(92) + '|')} |"


def _plain(argument: str) -> str:
    """The values as a word: `INT ...` instead of `[INT [INT ...]]`."""
    plain = re.sub(r"\[([^\[\]]+?) \[.*\]\]", r"\1 ...", argument)
    plain = re.sub(r"\{([^{},|]+ \.\.\.)\}", r"\1", plain)
    plain = plain.replace("{None}|", "").replace(", -", "`, `-")
    return re.sub(r",(?=\S)", ", ", plain)  # long choices are broken into lines


def _code(value: str) -> str:
    return f"`{value}`".replace("|", r"\|") if value.strip() not in ("", "None") else "none"


def _escaped(text: str) -> str:
    """Text of the help as Markdown: brackets and stars are meant literally."""
    return re.sub(r"([*<>\[\]])", r"\\\1", text)
