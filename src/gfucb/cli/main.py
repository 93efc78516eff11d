"""The command line: overview, version, and the errors of commands as one line."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import gfucb
from gfucb.core.errors import GFUCBError

# What the extra `experiments` installs, by the names of modules.
EXPERIMENTS = {"sklearn", "pandas", "matplotlib", "tyro", "rich", "filelock", "jinja2"}
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
  gfucb presets   list presets, environments, agents, fits, action selectors, policies, engines
  gfucb fetch-mnist   download MNIST into a directory and verify it

Start with
  gfucb compare --preset demo --out runs/first
  gfucb report runs/first

A preset sets the environment, the number of rounds, agents and seeds. Every setting can be changed:
  gfucb compare --preset digits --agents gfucb linucb --seeds 0 1 2 --num-rounds 100 \\
                --environment.num-tasks 10 --agent.ridge 0.5 --out runs/second
  gfucb run --preset mnist --data-dir data/mnist --agent.name gfucb --out runs/third

Presets lock, rich-lock, combination-lock and linear-mdp are episodic MDPs; a round is an episode:
  gfucb compare --preset lock --out runs/lock

Agents and environments of your own, registered in a Python file:
  gfucb compare --plugin my_agents.py --agents my-agent gfucb --out runs/mine

`gfucb COMMAND --help` lists all settings of a command. Runs are never overwritten. To resume
a run that was killed, repeat the command.
"""


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
        # Not at the top: the overview needs neither torch nor the packages of the experiments.
        from rich.console import Console

        from gfucb.cli.commands import parse

        parse(words)(Console())
    except ModuleNotFoundError as error:
        package = str(error.name).partition(".")[0]
        if package not in EXPERIMENTS:
            raise
        raise SystemExit(
            f"gfucb's command line needs {package}: pip install 'gfucb[experiments]'"
        ) from error
    except BrokenPipeError:
        # The reader of a pipe, such as `head`, has closed it.
        sys.stderr.close()
    except (GFUCBError, OSError) as error:
        print(f"gfucb: {error}", file=sys.stderr)
        raise SystemExit(2) from None
    except KeyboardInterrupt:
        print("gfucb: stopped; repeat the command to resume", file=sys.stderr)
        raise SystemExit(130) from None


if __name__ == "__main__":
    main()
