"""The command line: from the words typed to a command."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

import gfucb
from gfucb.core.errors import GFUCBError, lookup

try:
    import tyro
    from rich.console import Console

    from gfucb.cli.command_defaults import Choices
    from gfucb.cli.evaluate import EvaluateCommand
    from gfucb.cli.help_texts import reflow_help
    from gfucb.cli.log_command import LogCommand
    from gfucb.cli.reproduce import PageCommand, ReproduceCommand
    from gfucb.cli.runs import CompareCommand, ReportCommand, RunCommand
    from gfucb.cli.theory import AuditCommand, TheoryCommand
    from gfucb.cli.tools import BenchCommand, FetchCommand, PresetsCommand
    from gfucb.runs.benchmark_results import QUICK_SIZES, BenchSizes
except ModuleNotFoundError as error:
    raise SystemExit(
        f"gfucb's command line needs {error.name}: pip install 'gfucb[experiments]'"
    ) from error

OVERVIEW = """\
gfucb: multitask bandits and episodic MDPs with a shared representation

  gfucb compare   several agents on the same seeds: a table and a figure with 95% bands
  gfucb run       one agent, one seed: rows.csv, one row per round
  gfucb report    a directory of runs as one self-contained HTML page
  gfucb reproduce a figure or claim of the paper, with a verdict: fig1, fig2a, .. lock, all
  gfucb page      all reproductions as one document
  gfucb evaluate  what other policies would have earned, from a log with probabilities
  gfucb log       show, filter, verify and export the decision log of an agent
  gfucb theory    the bounds of the theory for a class and a size, as printed and corrected
  gfucb audit     replay runs with a known representation and check these bounds
  gfucb bench     the cost of decisions, rounds, tasks and batches, as ratios
  gfucb presets   list presets, environments, agents, fits, action selectors and policies
  gfucb fetch-mnist   download MNIST into a directory and verify it

Start with
  gfucb compare --preset demo --out runs/first
  gfucb report runs/first

A preset sets the environment, the number of rounds, agents and seeds. Every setting can be changed:
  gfucb compare --preset digits --agents gfucb linucb --seeds 0 1 2 --num-rounds 100 \\
                --environment.num-tasks 10 --agent.ridge 0.5 --out runs/second
  gfucb run --preset mnist --data-dir data/mnist --agent.name gfucb --out runs/third

Presets lock, rich-lock and linear-mdp are episodic MDPs; a round is then an episode:
  gfucb compare --preset lock --out runs/lock

Agents and environments of your own, registered in a Python file:
  gfucb compare --plugin my_agents.py --agents my-agent gfucb --out runs/mine

`gfucb COMMAND --help` lists all settings of a command. Runs are never overwritten. To resume
a run that was killed, repeat the command.
"""

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


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command that the arguments name."""
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
        # The reader of a pipe, such as `head`, has closed it.
        sys.stderr.close()
    except (GFUCBError, OSError) as error:
        print(f"gfucb: {error}", file=sys.stderr)
        raise SystemExit(2) from None
    except KeyboardInterrupt:
        print("gfucb: stopped; repeat the command to resume", file=sys.stderr)
        raise SystemExit(130) from None


def parse(words: list[str]) -> Command:
    """From the words of the command line to the command with its settings."""
    name, rest = words[0], words[1:]
    default = lookup(DEFAULTS, name, "command")(rest)
    if {"-h", "--help"} & set(rest):
        reflow_help(default)
    return tyro.cli(type(default), default=default, args=rest, prog=f"gfucb {name}")


if __name__ == "__main__":
    main()
