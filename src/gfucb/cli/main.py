"""The command line: from the words typed to a command."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import gfucb
from gfucb.core.errors import GFUCBError, UnknownNameError, lookup

try:
    import tyro
    from rich.console import Console

    from gfucb.cli.claims import AuditCommand, PageCommand, ReproduceCommand, TheoryCommand
    from gfucb.cli.measures import BenchCommand, FetchCommand, PresetsCommand
    from gfucb.cli.runs import (
        CompareCommand,
        CompareMDPCommand,
        ReportCommand,
        RunCommand,
        RunMDPCommand,
    )
    from gfucb.runs.benchmark_results import QUICK_SIZES
    from gfucb.runs.episodic_config import EPISODIC_PRESETS
    from gfucb.runs.presets import PRESETS, preset
except ModuleNotFoundError as error:
    raise SystemExit(
        f"gfucb's command line needs {error.name}: pip install 'gfucb[experiments]'"
    ) from error

OVERVIEW = """\
gfucb: many related decision problems, each learning from all

  gfucb compare   several agents on the same seeds: a table and a figure with 95% bands
  gfucb run       one agent, one seed: rows.csv, one row a round
  gfucb report    a directory of runs as one self-contained page
  gfucb reproduce a claim, its figure and a verdict: fig1, fig2a, .. lock, all
  gfucb page      what was reproduced, as one document
  gfucb theory    what the theory bounds for a class and a size, as printed and as it holds
  gfucb audit     replay runs with a known truth: did they keep those bounds?
  gfucb bench     what decisions, rounds, tasks and batches cost, as ratios
  gfucb presets   the presets and agents there are
  gfucb fetch-mnist   download MNIST into a directory, checked

Begin with
  gfucb compare --preset demo --out runs/first
  gfucb report runs/first

A preset fixes the environment, its length, agents and seeds; everything can be overruled:
  gfucb compare --preset digits --agents gfucb linucb --seeds 0 1 2 --num-rounds 100 \\
                --environment.num-tasks 10 --out runs/second
  gfucb run --preset mnist --data-dir data/mnist --agent.name gfucb --out runs/third

Presets lock, rich-lock and linear-mdp are episodic MDPs; a round is then an episode:
  gfucb compare --preset lock --out runs/lock

`gfucb COMMAND --help` lists all settings of a command. Runs are never overwritten; one that
was killed is taken up where it stopped when the same command is given again.
"""


Command = (
    RunCommand
    | RunMDPCommand
    | CompareCommand
    | CompareMDPCommand
    | ReproduceCommand
    | PageCommand
    | ReportCommand
    | TheoryCommand
    | AuditCommand
    | BenchCommand
    | FetchCommand
    | PresetsCommand
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Entry point of `gfucb`."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if not words or words[0] in ("-h", "--help"):
        print(OVERVIEW, end="")
        return
    if words[0] == "--version":
        print(f"gfucb {gfucb.__version__}")
        return
    try:
        parse(words)(Console())
    except BrokenPipeError:
        # The reader of a pipe, `head` for one, has seen enough.
        sys.stderr.close()
    except (GFUCBError, OSError) as error:
        print(f"gfucb: {error}", file=sys.stderr)
        raise SystemExit(2) from None
    except KeyboardInterrupt:
        print("gfucb: stopped; give the same command again to go on", file=sys.stderr)
        raise SystemExit(130) from None


def parse(words: list[str]) -> Command:
    """From the words of the command line to the command they mean."""
    name, rest = words[0], words[1:]
    commands: dict[str, Callable[[], Command]] = {
        "run": lambda: RunCommand(out=tyro.MISSING),
        "compare": lambda: CompareCommand(out=tyro.MISSING),
        "report": lambda: ReportCommand(directory=tyro.MISSING),
        "reproduce": lambda: ReproduceCommand(name=tyro.MISSING, out=tyro.MISSING),
        "page": PageCommand,
        "theory": TheoryCommand,
        "audit": lambda: AuditCommand(directory=tyro.MISSING),
        "bench": lambda: BenchCommand(sizes=QUICK_SIZES) if "--quick" in rest else BenchCommand(),
        "fetch-mnist": lambda: FetchCommand(data_dir=tyro.MISSING),
        "presets": PresetsCommand,
    }
    default = lookup(commands, name, "command")()
    chosen, rest = _take_preset(rest)
    if isinstance(default, RunCommand | CompareCommand):
        default = _with_preset(default, chosen or "digits")
    elif chosen is not None:
        raise UnknownNameError(f"gfucb {name} takes no --preset")
    description = inspect.cleandoc(type(default).__doc__ or "") + (
        "\n\n--preset NAME sets the defaults shown below; presets: "
        + ", ".join((*PRESETS, *EPISODIC_PRESETS))
        if isinstance(default, RunCommand | RunMDPCommand | CompareCommand | CompareMDPCommand)
        else ""
    )
    return tyro.cli(
        type(default), default=default, args=rest, prog=f"gfucb {name}", description=description
    )


def _with_preset(default: RunCommand | CompareCommand, chosen: str) -> Command:
    """The command with the defaults of a preset; those of episodic MDPs have commands their own."""
    if chosen in EPISODIC_PRESETS:
        episodic = EPISODIC_PRESETS[chosen]
        shared: dict[str, Any] = {
            "out": tyro.MISSING,
            "environment": episodic.environment,
            "agent": episodic.agent,
            "num_rounds": episodic.num_rounds,
        }
        if isinstance(default, RunCommand):
            return RunMDPCommand(**shared)
        return CompareMDPCommand(**shared, agents=episodic.agents, seeds=episodic.seeds)
    entry = preset(chosen)
    changed = replace(default, environment=entry.environment, num_rounds=entry.num_rounds)
    if isinstance(changed, CompareCommand):
        return replace(changed, agents=entry.agents, seeds=entry.seeds)
    return changed


def _take_preset(words: list[str]) -> tuple[str | None, list[str]]:
    """The value of --preset and the other words: it decides the defaults of all of them."""
    for index, word in enumerate(words):
        if word.startswith("--preset="):
            return word.split("=", 1)[1], words[:index] + words[index + 1 :]
        if word == "--preset":
            value = words[index + 1] if index + 1 < len(words) else ""
            return value, words[:index] + words[index + 2 :]
    return None, words


if __name__ == "__main__":
    main()
