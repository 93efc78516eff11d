"""Pages of the command line: one for each command, from the same texts as its `--help`."""

from __future__ import annotations

import argparse
import re
import warnings
from typing import cast

import tyro

from gfucb.cli.commands import DEFAULTS
from gfucb.cli.help_texts import reflow_help

OTHER_DEFAULTS = """\
Defaults are those without a preset, environment or agent named;
`gfucb {name} --preset NAME --help` shows others.
"""


def command_pages() -> dict[str, str]:
    """The text of each page by its file name."""
    return {f"{name}.md": _page(name, _parser(name)) for name in DEFAULTS}


def link_commands(text: str, pages: dict[str, str]) -> str:
    """Let the names of commands in a table lead to their pages."""

    def link(match: re.Match[str]) -> str:
        page = f"{match.group(2)}.md"
        return f"| [{match.group(1)}](commands/{page})" if page in pages else match.group()

    return re.sub(r"^\| (`gfucb ([a-z-]+)`)(?= \|)", link, text, flags=re.MULTILINE)


def _parser(name: str) -> argparse.ArgumentParser:
    default = DEFAULTS[name]([])
    reflow_help(default)
    with warnings.catch_warnings():
        # tyro is pinned; it has no other way to list arguments.
        warnings.simplefilter("ignore", DeprecationWarning)
        parser = tyro.extras.get_parser(type(default), default=default, prog=f"gfucb {name}")
    return cast(argparse.ArgumentParser, parser)


def _page(name: str, parser: argparse.ArgumentParser) -> str:
    parts = [f"# gfucb {name}", _escaped(parser.description or "")]
    groups = {g.title: g for g in parser._action_groups}
    if any(title and title.endswith(" options") for title in groups):
        parts.append(OTHER_DEFAULTS.format(name=name))
    for title, group in groups.items():
        actions = [action for action in group._group_actions if action.dest != "help"]
        if actions:
            parts.append(f"## {(title or 'options').capitalize()}")
            parts += [_escaped(group.description)] if group.description else []
            parts.append("\n".join([*_HEAD, *map(_row, actions)]))
    return "\n\n".join(parts) + "\n"


_HEAD = ("| argument | default | meaning |", "|---|---|---|")


def _row(action: argparse.Action) -> str:
    meaning, default = action.help or "", ""
    if found := re.search(r" ?\((required|default: (.*))\)$", meaning, flags=re.DOTALL):
        meaning = meaning[: found.start()]
        default = "required" if found.group(1) == "required" else _code(found.group(2))
    values = f" {_plain(action)}" if action.nargs != 0 else ""
    argument = "`, `".join(action.option_strings) + values
    argument = f"`{argument.strip()}`".replace("|", r"\|")
    return f"| {argument} | {default} | {_escaped(meaning).replace('|', chr(92) + '|')} |"


def _plain(action: argparse.Action) -> str:
    """The values as a word: `INT ...` instead of `[INT [INT ...]]`."""
    values = str(action.metavar or action.dest)
    if several := re.fullmatch(r"\[(.+?) \[.*\]\]", values):
        return f"{several.group(1)} ..."
    return values.removeprefix("{None}|")


def _code(value: str) -> str:
    return f"`{value}`".replace("|", r"\|") if value.strip() not in ("", "None") else "none"


def _escaped(text: str) -> str:
    """Text of the help as Markdown: brackets and stars are meant literally."""
    return re.sub(r"([*<>\[\]])", r"\\\1", text)
