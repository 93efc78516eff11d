"""The command line: run, compare, report. The only file that knows tyro."""

from __future__ import annotations

import inspect
import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

import torch

import gfucb
from gfucb.errors import GFUCBError, RunFolderError, UnknownNameError, lookup

try:
    import tyro
    from rich.console import Console

    from gfucb.environments import fetch_mnist
    from gfucb.environments.images import DATA_DIR_VARIABLE
    from gfucb.experiments.agent_table import AGENTS
    from gfucb.experiments.audit import Coverage, audit_run
    from gfucb.experiments.bench import MEASURES, measure
    from gfucb.experiments.comparison import Comparison, Listener, compare
    from gfucb.experiments.config import AgentConfig, RunConfig, WorldConfig
    from gfucb.experiments.figures import label, regret_curves
    from gfucb.experiments.mdp_agents import MDP_AGENTS, MDPAgentConfig
    from gfucb.experiments.mdp_config import MDP_PRESETS, MDPRunConfig, MDPWorldConfig
    from gfucb.experiments.presets import PRESETS, preset
    from gfucb.experiments.ratios import QUICK_SIZES, BenchSizes, Ratio, Setting
    from gfucb.experiments.records import read_config, run
    from gfucb.experiments.report import write_report
    from gfucb.experiments.reproductions import PAPER, REPRODUCTIONS, Options, page_of, reproduce
    from gfucb.experiments.summary import find_runs, load_rows, summarise
    from gfucb.terminal import (
        agents_table,
        audit_table,
        bench_table,
        presets_table,
        progress,
        promises_table,
        summary_table,
    )
    from gfucb.theory.promises import TheoryProblem, promises
except ModuleNotFoundError as error:
    raise SystemExit(
        f"gfucb's command line needs {error.name}: pip install 'gfucb[experiments]'"
    ) from error

OVERVIEW = """\
gfucb: many related decision problems, each learning from all

  gfucb compare   several agents on the same seeds: a table and a figure with 95% bands
  gfucb run       one agent, one seed: rows.csv, one row a round
  gfucb report    a folder of runs as one self-contained page
  gfucb reproduce a claim, its figure and a verdict: fig2a, fig2b, fig3, probe, lock, linear-mdp
  gfucb page      what was reproduced, as one document
  gfucb theory    what the theory promises for a class and a size, as printed and as it holds
  gfucb audit     replay runs with a known truth: did they keep those promises?
  gfucb bench     what decisions, rounds, tasks and fleets cost, as ratios
  gfucb presets   the presets and agents there are
  gfucb fetch-mnist   download MNIST into a folder, checked

Begin with
  gfucb compare --preset demo --out runs/first
  gfucb report runs/first

A preset fixes the world, its length, agents and seeds; everything can be overruled:
  gfucb compare --preset digits --agents gfucb linucb --seeds 0 1 2 --num-rounds 100 \\
                --world.num-tasks 10 --out runs/second
  gfucb run --preset mnist --data-dir data/mnist --agent.name gfucb --out runs/third

Presets lock, rich-lock and linear-mdp are episodic MDPs; a round is then an episode:
  gfucb compare --preset lock --out runs/lock

`gfucb COMMAND --help` lists all settings of a command. Runs are never overwritten; one that
was killed is taken up where it stopped when the same command is given again.
"""


@dataclass(frozen=True)
class RunCommand:
    """Play one agent in one world under one seed, and write what happened.

    The folder gets config.json (the settings), provenance.json (versions, commit, seconds) and
    rows.csv (a row for each round). Given again, the command takes up a run that was killed.
    """

    out: Path
    """Folder of the run; it must not hold another one."""
    world: WorldConfig = field(default_factory=WorldConfig)
    agent: AgentConfig = field(default_factory=AgentConfig)
    num_rounds: int = 200
    """T, the number of rounds."""
    seed: int = 0
    """World and agent derive all their randomness from it."""
    data_dir: str | None = None
    """Folder with MNIST's files; by default the environment variable GFUCB_DATA_DIR."""

    def __call__(self, console: Console) -> None:
        """Run, with a progress bar on a terminal."""
        config = RunConfig(self.world, self.agent, self.num_rounds, self.seed)
        _run(config, self.out, console, self.data_dir)


@dataclass(frozen=True)
class RunMDPCommand:
    """Play one agent in one world of episodic MDPs under one seed, and write what happened.

    The folder gets config.json (the settings), provenance.json (versions, commit, seconds) and
    rows.csv (a row for each episode). Given again, the command takes up a run that was killed.
    """

    out: Path
    """Folder of the run; it must not hold another one."""
    world: MDPWorldConfig = field(default_factory=MDPWorldConfig)
    agent: MDPAgentConfig = field(default_factory=MDPAgentConfig)
    num_rounds: int = 500
    """T, the number of episodes."""
    seed: int = 0
    """World and agent derive all their randomness from it."""

    def __call__(self, console: Console) -> None:
        """Run, with a progress bar on a terminal."""
        config = MDPRunConfig(self.world, self.agent, self.num_rounds, self.seed)
        _run(config, self.out, console)


@dataclass(frozen=True)
class CompareCommand:
    """Play several agents on the same seeds, and say who lost least.

    All agents meet the same contexts and the same noise. Ends with a table (mean regret of one
    task with its 95% interval over seeds, paired differences to GFUCB, seconds) and writes
    summary.csv, regret.png and regret.svg next to the run folders.
    """

    out: Path
    """Folder for the runs, OUT/AGENT/seed=SEED. Runs that are there are kept or taken up."""
    agents: tuple[str, ...] = ("gfucb",)
    """Which agents; `gfucb presets` lists them."""
    seeds: tuple[int, ...] = (0,)
    """Which seeds."""
    world: WorldConfig = field(default_factory=WorldConfig)
    agent: AgentConfig = field(default_factory=AgentConfig)
    """Settings for all agents; their names come from --agents."""
    num_rounds: int = 200
    """T, the number of rounds."""
    jobs: int = min(2, os.cpu_count() or 1)
    """Runs at a time, a process with one thread each."""
    data_dir: str | None = None
    """Folder with MNIST's files; by default the environment variable GFUCB_DATA_DIR."""

    def __call__(self, console: Console) -> None:
        """Run what is missing, then print the table and draw the figure."""
        for name in self.agents:
            lookup(AGENTS, name, "agent")
        agents = tuple(replace(self.agent, name=name) for name in self.agents)
        comparison = Comparison(self.world, agents, self.seeds, self.num_rounds)
        _compare(comparison, self.out, console, self.jobs, self.data_dir)


@dataclass(frozen=True)
class CompareMDPCommand:
    """Play several agents in episodic MDPs on the same seeds, and say who lost least.

    All agents meet the same draws. Ends with a table (mean regret of one task with its 95%
    interval over seeds, paired differences to GFUCB, seconds, and how often the optimistic value
    was below the optimal one) and writes summary.csv, regret.png and regret.svg.
    """

    out: Path
    """Folder for the runs, OUT/AGENT/seed=SEED. Runs that are there are kept or taken up."""
    agents: tuple[str, ...] = ("gfucb-mdp",)
    """Which agents; `gfucb presets` lists them."""
    seeds: tuple[int, ...] = (0,)
    """Which seeds."""
    world: MDPWorldConfig = field(default_factory=MDPWorldConfig)
    agent: MDPAgentConfig = field(default_factory=MDPAgentConfig)
    """Settings for all agents; their names come from --agents."""
    num_rounds: int = 500
    """T, the number of episodes."""
    jobs: int = min(2, os.cpu_count() or 1)
    """Runs at a time, a process with one thread each."""

    def __call__(self, console: Console) -> None:
        """Run what is missing, then print the table and draw the figure."""
        for name in self.agents:
            lookup(MDP_AGENTS, name, "agent")
        agents = tuple(replace(self.agent, name=name) for name in self.agents)
        comparison = Comparison(self.world, agents, self.seeds, self.num_rounds)
        _compare(comparison, self.out, console, self.jobs)


@dataclass(frozen=True)
class ReproduceCommand:
    """Make a claim anew: its rows, its figure, and a verdict on every sentence of it.

    The folder gets rows.csv, figure.png, figure.svg, verdict.md, verdict.json and provenance.json.
    Given again, the command makes only what is missing.
    """

    name: Annotated[str, tyro.conf.Positional]
    """Which claim, or `all` for the paper's figures; an unknown name lists the known ones."""
    out: Path
    """Folder for the results; of `all`, for a folder each."""
    seeds: tuple[int, ...] | None = None
    """Which seeds, instead of those of the claim."""
    quick: bool = False
    """A small version in under a minute; it claims nothing."""
    data_dir: str | None = None
    """Folder with data files, for claims that need some."""
    device: str = "cpu"
    """Where networks live."""
    processes: int = 1
    """How many pieces are made at a time; the results are the same for any number."""
    only_what_is_there: bool = False
    """Make nothing: figure and verdicts of the pieces that are finished."""

    def __call__(self, console: Console) -> None:
        """Make what is missing, then print the verdicts."""
        if self.name == "all":
            for name in PAPER:
                replace(self, name=name, out=self.out / name)(console)
            return
        entry = lookup(REPRODUCTIONS, self.name, "reproduction")
        options = Options(self.seeds, self.quick, self.data_dir, self.device)
        num_pieces = len(entry.pieces(options))
        with progress(console, self.name, num_pieces) as advance:
            verdicts = reproduce(
                self.name,
                entry,
                self.out,
                options,
                advance=advance,
                processes=self.processes,
                only_what_is_there=self.only_what_is_there,
            )
        for verdict in verdicts:
            answer = "holds" if verdict.holds else "does not hold"
            console.print(f"{verdict.claim}: {answer}. {verdict.measured}", highlight=False)
        console.print(f"figure: {self.out / 'figure.png'}", highlight=False)


@dataclass(frozen=True)
class PageCommand:
    """Write one document of all reproductions: pictures, verdicts, choices, provenance."""

    results: Path = Path("results")
    """Where the folders of the reproductions are."""
    out: Path = Path("docs/reproduction.md")
    """The document."""

    def __call__(self, console: Console) -> None:
        """Compose and write."""
        _require_place(self.out)
        self.out.write_text(page_of(self.results, self.out.parent))
        console.print(f"written: {self.out}", highlight=False)


def _run(
    config: RunConfig | MDPRunConfig, out: Path, console: Console, data_dir: str | None = None
) -> None:
    torch.set_num_threads(1)
    regret = 0.0
    with progress(console, config.agent.name, config.num_rounds) as advance:
        for row in run(config, out, data_dir=data_dir):
            regret = float(row["cumulative_regret"])
            advance(int(row["round"]))
    what = "episodes" if isinstance(config, MDPRunConfig) else "rounds"
    console.print(
        f"{label(config.agent.name)}: regret of one task {regret:.3f} after {config.num_rounds} "
        f"{what}; rows in {out / 'rows.csv'}"
    )


def _compare(
    comparison: Comparison, out: Path, console: Console, jobs: int, data_dir: str | None = None
) -> None:
    num_runs = len(comparison.agents) * len(comparison.seeds)
    with progress(console, f"{num_runs} runs", num_runs * comparison.num_rounds) as advance:
        compare(
            comparison,
            out,
            jobs=jobs,
            data_dir=data_dir,
            listener=Listener(
                lambda config, regret: console.print(
                    f"{config.agent.name}, seed {config.seed}: regret {regret:.2f}",
                    highlight=False,
                ),
                # In a log, the line above is progress enough.
                advance if console.is_terminal else lambda rounds: None,
            ),
        )
    table = summarise(out)
    table.to_csv(out / "summary.csv", index=False)
    figure = regret_curves(load_rows(out))
    figure.savefig(out / "regret.png", dpi=160)
    figure.savefig(out / "regret.svg")
    console.print(summary_table(table, comparison.num_rounds, comparison.world.num_tasks))
    console.print(f"figure: {out / 'regret.png'}", highlight=False)


@dataclass(frozen=True)
class ReportCommand:
    """Make one self-contained HTML page of the finished runs in a folder."""

    folder: Annotated[Path, tyro.conf.Positional]
    """A folder that `gfucb compare` or `gfucb run` wrote."""

    def __call__(self, console: Console) -> None:
        """Write FOLDER/report.html."""
        console.print(f"report: {write_report(self.folder)}", highlight=False)


@dataclass(frozen=True)
class TheoryCommand:
    """Print what the theory promises for a class and a problem size, as printed and as it holds.

    Covering number, dimensions, squared radii of Lemmas 1 and 4, regret bounds of Theorems 1
    and 2, all with their constants.
    """

    problem: Annotated[TheoryProblem, tyro.conf.arg(name="")] = field(default_factory=TheoryProblem)
    json: Path | None = None
    """Also write the table to this file."""

    def __call__(self, console: Console) -> None:
        """Print the table."""
        _require_place(self.json)
        lines = promises(self.problem)
        console.print(promises_table(lines))
        if self.json is not None:
            content = {
                "problem": asdict(self.problem),
                "promises": [asdict(line) for line in lines],
            }
            self.json.write_text(json.dumps(content, indent=2) + "\n")


@dataclass(frozen=True)
class AuditCommand:
    """Replay finished runs on worlds with a known truth: did they keep the theory's promises?

    Was the truth in every confidence set? Was regret within the width of the set (Lemma 0), were
    wide sets as rare as Lemma 2 says, was the sum within Theorem 1? Runs of agents without a
    confidence set are passed over. The JSON file holds the constants.
    """

    folder: Annotated[Path, tyro.conf.Positional]
    """A folder that `gfucb compare` or `gfucb run` wrote, of a finite or linear world."""
    json: Path | None = None
    """Also write the findings to this file."""

    def __call__(self, console: Console) -> None:
        """Replay, print a line for each run and the coverage."""
        _require_place(self.json)
        torch.set_num_threads(1)
        audits = [
            audit_run(path)
            for path in find_runs(self.folder)
            if read_config(path)["agent"]["name"] == "gfucb"
        ]
        if not audits:
            raise RunFolderError(f"there is no run of gfucb in {self.folder}")
        coverage = Coverage.of(audits)
        console.print(audit_table(audits))
        console.print(
            f"the truth was in every set in {coverage.covered} of {coverage.runs} runs "
            f"(95% interval {coverage.low:.3f} to {coverage.high:.3f})",
            highlight=False,
        )
        if self.json is not None:
            content = {"coverage": asdict(coverage), "runs": [asdict(audit) for audit in audits]}
            self.json.write_text(json.dumps(content, indent=2) + "\n")


@dataclass(frozen=True)
class BenchCommand:
    """Measure what things cost, every figure a ratio of two measurements of this run.

    decision: a decision against the paper's fine-tuning. growth: late rounds against early ones.
    tasks: a task among many against one among few. subset: a few tasks asked of many against a few
    of few. catalogue: items that all tasks share against a copy for each. fleet: runs in lockstep
    against one after another. On a CPU one thread is used, and seconds are those of this process.
    Takes some minutes.
    """

    only: tuple[str, ...] = tuple(MEASURES)
    """Which measurements to take."""
    sizes: Annotated[BenchSizes, tyro.conf.arg(name="")] = field(default_factory=BenchSizes)
    device: str = "cpu"
    """Where agents work: cpu or cuda."""
    data_dir: str | None = None
    """Folder with MNIST's files; by default the environment variable GFUCB_DATA_DIR, and random
    images of the same size where there is none."""
    quick: bool = False
    """Tiny problems, in seconds: shows that it works; its figures say nothing about targets."""
    json: Path | None = None
    """Also write the figures, with versions, commit and device, to this file."""

    def __call__(self, console: Console) -> None:
        """Measure, print the table."""
        _require_place(self.json)
        torch.set_num_threads(1)
        data_dir = self.data_dir or os.environ.get(DATA_DIR_VARIABLE)
        setting = Setting(self.sizes, self.device, data_dir)
        provenance = setting.describe()  # of the code that is measured, not of later edits
        ratios: list[Ratio] = []
        for name, take in [(name, measure(name)) for name in self.only]:
            console.print(f"measuring {name}", highlight=False)
            ratios += [replace(r, target=None) if self.quick else r for r in take(setting)]
        console.print(bench_table(ratios))
        if self.json is not None:
            content = {"provenance": provenance, "ratios": [ratio.record() for ratio in ratios]}
            self.json.write_text(json.dumps(content, indent=2) + "\n")


@dataclass(frozen=True)
class FetchCommand:
    """Download the four MNIST files that are missing from a folder; checksums are verified."""

    data_dir: Path
    """Folder for the files."""

    def __call__(self, console: Console) -> None:
        """Download and check."""
        for path in fetch_mnist(self.data_dir):
            console.print(f"checked {path}", highlight=False)


@dataclass(frozen=True)
class PresetsCommand:
    """List the presets and the agents."""

    def __call__(self, console: Console) -> None:
        """Print both tables."""
        console.print(presets_table(), "", agents_table())


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
        "report": lambda: ReportCommand(folder=tyro.MISSING),
        "reproduce": lambda: ReproduceCommand(name=tyro.MISSING, out=tyro.MISSING),
        "page": PageCommand,
        "theory": TheoryCommand,
        "audit": lambda: AuditCommand(folder=tyro.MISSING),
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
        + ", ".join((*PRESETS, *MDP_PRESETS))
        if isinstance(default, RunCommand | RunMDPCommand | CompareCommand | CompareMDPCommand)
        else ""
    )
    return tyro.cli(
        type(default), default=default, args=rest, prog=f"gfucb {name}", description=description
    )


def _with_preset(default: RunCommand | CompareCommand, chosen: str) -> Command:
    """The command with the defaults of a preset; those of episodic MDPs have commands their own."""
    if chosen in MDP_PRESETS:
        episodic = MDP_PRESETS[chosen]
        shared: dict[str, Any] = {
            "out": tyro.MISSING,
            "world": episodic.world,
            "agent": episodic.agent,
            "num_rounds": episodic.num_rounds,
        }
        if isinstance(default, RunCommand):
            return RunMDPCommand(**shared)
        return CompareMDPCommand(**shared, agents=episodic.agents, seeds=episodic.seeds)
    entry = preset(chosen)
    changed = replace(default, world=entry.world, num_rounds=entry.num_rounds)
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


def _require_place(file: Path | None) -> None:
    """Refuse a file that could not be written, before the work is done."""
    if file is not None and not file.parent.is_dir():
        raise RunFolderError(f"there is no folder {file.parent} to write {file.name} into")


if __name__ == "__main__":
    main()
