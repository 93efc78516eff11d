"""All commands: from the words typed to a command with its settings."""

from __future__ import annotations

from collections.abc import Callable

import tyro

from gfucb.cli.command_defaults import Choices
from gfucb.cli.evaluate import EvaluateCommand
from gfucb.cli.help_texts import reflow_help
from gfucb.cli.log_command import LogCommand
from gfucb.cli.reproduce import PageCommand, ReproduceCommand
from gfucb.cli.runs import CompareCommand, ReportCommand, RunCommand
from gfucb.cli.theory import AuditCommand, TheoryCommand
from gfucb.cli.tools import BenchCommand, FetchCommand, PresetsCommand
from gfucb.core.errors import lookup
from gfucb.runs.benchmark_results import QUICK_SIZES, BenchSizes

Command = (
    RunCommand
    | CompareCommand
    | ReportCommand
    | ReproduceCommand
    | PageCommand
    | EvaluateCommand
    | LogCommand
    | TheoryCommand
    | AuditCommand
    | BenchCommand
    | FetchCommand
    | PresetsCommand
)
# From the words after the name of a command to its defaults.
DEFAULTS: dict[str, Callable[[list[str]], Command]] = {
    "run": lambda words: RunCommand(tyro.MISSING, **Choices.read(words).run_defaults()),
    "compare": lambda words: CompareCommand(tyro.MISSING, **Choices.read(words).compare_defaults()),
    "report": lambda words: ReportCommand(tyro.MISSING),
    "reproduce": lambda words: ReproduceCommand(tyro.MISSING, tyro.MISSING),
    "page": lambda words: PageCommand(),
    "evaluate": lambda words: EvaluateCommand(tyro.MISSING),
    "log": lambda words: LogCommand(tyro.MISSING),
    "theory": lambda words: TheoryCommand(),
    "audit": lambda words: AuditCommand(tyro.MISSING),
    "bench": lambda words: BenchCommand(
        tyro.MISSING, sizes=QUICK_SIZES if "--quick" in words else BenchSizes()
    ),
    "fetch-mnist": lambda words: FetchCommand(tyro.MISSING),
    "presets": lambda words: PresetsCommand(),
}


def parse(words: list[str]) -> Command:
    """From the words of the command line to the command with its settings."""
    name, rest = words[0], words[1:]
    default = lookup(DEFAULTS, name, "command")(rest)
    if {"-h", "--help"} & set(rest):
        reflow_help(default)
    return tyro.cli(type(default), default=default, args=rest, prog=f"gfucb {name}")
