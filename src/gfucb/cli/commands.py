"""All commands: from the words typed to a command with its settings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import tyro
from rich.console import Console

from gfucb.cli.help_texts import reflow_help
from gfucb.core.errors import lookup

Words = list[str]


class Command(Protocol):
    """A dataclass whose fields are the settings of a command."""

    def __call__(self, console: Console) -> None:
        """Carry it out."""


# Commands are imported when they are called: each needs some of the large packages only.


def _run(words: Words) -> Command:
    from gfucb.cli.command_defaults import Choices
    from gfucb.cli.runs import RunCommand

    return RunCommand(tyro.MISSING, **Choices.read(words).run_defaults())


def _compare(words: Words) -> Command:
    from gfucb.cli.command_defaults import Choices
    from gfucb.cli.runs import CompareCommand

    return CompareCommand(tyro.MISSING, **Choices.read(words).compare_defaults())


def _report(words: Words) -> Command:
    from gfucb.cli.runs import ReportCommand

    return ReportCommand(tyro.MISSING)


def _reproduce(words: Words) -> Command:
    from gfucb.cli.reproduce import ReproduceCommand

    return ReproduceCommand(tyro.MISSING, tyro.MISSING)


def _page(words: Words) -> Command:
    from gfucb.cli.reproduce import PageCommand

    return PageCommand()


def _evaluate(words: Words) -> Command:
    from gfucb.cli.evaluate import EvaluateCommand

    return EvaluateCommand(tyro.MISSING)


def _log(words: Words) -> Command:
    from gfucb.cli.log_command import LogCommand

    return LogCommand(tyro.MISSING)


def _theory(words: Words) -> Command:
    from gfucb.cli.theory import TheoryCommand

    return TheoryCommand()


def _audit(words: Words) -> Command:
    from gfucb.cli.theory import AuditCommand

    return AuditCommand(tyro.MISSING)


def _bench(words: Words) -> Command:
    from gfucb.cli.tools import BenchCommand
    from gfucb.runs.benchmark_sizes import QUICK_SIZES, BenchSizes

    return BenchCommand(tyro.MISSING, sizes=QUICK_SIZES if "--quick" in words else BenchSizes())


def _fetch_mnist(words: Words) -> Command:
    from gfucb.cli.tools import FetchCommand

    return FetchCommand(tyro.MISSING)


def _presets(words: Words) -> Command:
    from gfucb.cli.tools import PresetsCommand

    return PresetsCommand()


# From the words after the name of a command to its defaults.
DEFAULTS: dict[str, Callable[[Words], Command]] = {
    "run": _run,
    "compare": _compare,
    "report": _report,
    "reproduce": _reproduce,
    "page": _page,
    "evaluate": _evaluate,
    "log": _log,
    "theory": _theory,
    "audit": _audit,
    "bench": _bench,
    "fetch-mnist": _fetch_mnist,
    "presets": _presets,
}


def parse(words: Words) -> Command:
    """From the words of the command line to the command with its settings."""
    name, rest = words[0], words[1:]
    default = lookup(DEFAULTS, name, "command")(rest)
    if {"-h", "--help"} & set(rest):
        reflow_help(default)
    return tyro.cli(type(default), default=default, args=rest, prog=f"gfucb {name}")
