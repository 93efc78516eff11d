"""GFUCB against neural baselines: same network, same fit, same tuning budget.

    python benchmarks/neural_baselines.py --tuning-seeds 2 --report-seeds 8 --budget-minutes 25

Each method has one exploration scale, tuned on a grid of four values on seeds used for nothing else
(5000, 5001, ..); the best value is then run on seeds 0, 1, ... All runs are stored in
`runs/neural_baselines`, and the command resumes where it stopped. At the end the finished runs are
written to benchmarks/neural_baselines.json, and the tables to docs/explanation/neural_baselines.md.
"""

from __future__ import annotations

import argparse
import dataclasses
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gfucb.runs import BanditAgentConfig, ImageBanditConfig, RunConfig
from gfucb.runs.jobs import Job, Progress, run_all
from gfucb.runs.provenance import current_provenance
from gfucb.runs.single import final_result, run_job_of
from gfucb.runs.store import read_provenance
from gfucb.runs.summary import half_width, interval
from gfucb.runs.text_files import read_json, write_json, write_text

ROOT = Path(__file__).parents[1]
RUNS = ROOT / "runs" / "neural_baselines"
RESULTS = ROOT / "benchmarks" / "neural_baselines.json"
TABLES = ROOT / "docs" / "explanation" / "neural_baselines.md"
FIRST_TUNING_SEED = 5000

SCALES: dict[str, tuple[float, ...]] = {
    "radius_scale": (0.03, 0.1, 0.3, 1.0),
    "gap_scale": (10.0, 30.0, 100.0, 300.0),
    "perturbation": (0.01, 0.03, 0.1, 0.3),
    "epsilon": (0.003, 0.01, 0.03, 0.1),
    "alpha": (0.03, 0.1, 0.3, 1.0),
}
"""The one scale a method has, by its name in BanditAgentConfig, and the values tried."""

SCALE_OF: dict[str, str | None] = {
    "gfucb": "radius_scale",
    "neural-linear-ucb": "radius_scale",
    "neural-linear-ts": "radius_scale",
    "neural-ucb": "radius_scale",
    "neural-ts": "radius_scale",
    "squarecb": "gap_scale",
    "npr": "perturbation",
    "multitask-eps-greedy": "epsilon",
    "multitask-greedy": None,
    "linucb": "alpha",
    "independent-neural-linear-ucb": "radius_scale",
    "independent-neural-linear-ts": "radius_scale",
    "independent-neural-ucb": "radius_scale",
    "independent-neural-ts": "radius_scale",
    "independent-squarecb": "gap_scale",
    "independent-npr": "perturbation",
}


@dataclass(frozen=True)
class Setting:
    """An environment and a number of rounds."""

    num_tasks: int
    num_rounds: int

    @property
    def name(self) -> str:
        """The name in directories and tables."""
        return f"M={self.num_tasks},T={self.num_rounds}"

    def config(self, agent: BanditAgentConfig, seed: int) -> RunConfig:
        """8x8 digits, ten iid images, uniform reward maps, noise 0.1."""
        return RunConfig(ImageBanditConfig(num_tasks=self.num_tasks), agent, self.num_rounds, seed)


SETTINGS = (Setting(10, 200), Setting(30, 400))


@dataclass(frozen=True)
class Trial:
    """One method with one value of its scale."""

    setting: Setting
    method: str
    value: float | None

    @property
    def agent(self) -> BanditAgentConfig:
        """The settings of the agent."""
        scale = SCALE_OF[self.method]
        changes: dict[str, Any] = {scale: self.value} if scale else {}
        return BanditAgentConfig(name=self.method, **changes)

    def job(self, seed: int) -> Job:
        """The run on a seed."""
        name = f"{self.setting.name}/{self.method}/{self.value}/seed={seed}"
        return run_job_of(self.setting.config(self.agent, seed), name)

    def directory(self, seed: int) -> Path:
        """The directory of the run on a seed."""
        return RUNS / self.job(seed).name

    def regrets(self, seeds: range) -> dict[int, float]:
        """Cumulative regret of a task at the end, by seed, of the runs that are finished."""
        return {
            seed: final_result(self.directory(seed))[1]
            for seed in seeds
            if self.job(seed).directory(RUNS).is_finished()
        }


def values_of(method: str) -> tuple[float | None, ...]:
    """The grid of a method's scale."""
    scale = SCALE_OF[method]
    return SCALES[scale] if scale else (None,)


def tuned(setting: Setting, method: str, num_seeds: int) -> tuple[Trial | None, dict[str, Any]]:
    """The best trial on the tuning seeds, None while some are missing; and the mean regrets."""
    seeds = range(FIRST_TUNING_SEED, FIRST_TUNING_SEED + num_seeds)
    trials = [Trial(setting, method, value) for value in values_of(method)]
    if len(trials) == 1:
        return trials[0], {}
    found = [trial.regrets(seeds) for trial in trials]
    if any(len(regrets) < num_seeds for regrets in found):
        return None, {}
    means = [float(np.mean(list(regrets.values()))) for regrets in found]
    best = trials[int(np.argmin(means))]
    return best, {f"{t.value}": mean for t, mean in zip(trials, means, strict=True)}


def phases(
    setting: Setting, methods: list[str], tuning_seeds: int, report_seeds: int
) -> Iterator[list[Job]]:
    """The runs of one seed after another, so that all methods have equally many seeds.

    The runs of a phase do not depend on each other. The report seeds need the tuning seeds.
    """
    for seed in range(FIRST_TUNING_SEED, FIRST_TUNING_SEED + tuning_seeds):
        yield [
            Trial(setting, method, value).job(seed)
            for method in methods
            if SCALE_OF[method]
            for value in values_of(method)
        ]
    for seed in range(report_seeds):
        best = [tuned(setting, method, tuning_seeds)[0] for method in methods]
        yield [trial.job(seed) for trial in best if trial is not None]


def show(job: Job) -> None:
    """Print the regret of a finished run."""
    print(job.name, f"{final_result(RUNS / job.name)[1]:.2f}", flush=True)


def results(setting: Setting, tuning_seeds: int, report_seeds: int) -> dict[str, Any]:
    """Results of the finished runs of a setting, by method."""
    lines: dict[str, Any] = {}
    for method, scale in SCALE_OF.items():
        best, means = tuned(setting, method, tuning_seeds)
        regrets = best.regrets(range(report_seeds)) if best else {}
        if best is None or not regrets:
            continue
        records = [read_provenance(best.directory(seed)) for seed in regrets]
        lines[method] = {
            "scale": scale,
            "tuning_regret": means,
            "chosen": best.value,
            "regret_by_seed": regrets,
            "cpu_seconds": float(np.mean([record["cpu_seconds"] for record in records])),
            "commits": sorted({record["commit"] for record in records}),
            "agent": dataclasses.asdict(best.agent),
        }
    return lines


def write(tuning_seeds: int, report_seeds: int) -> None:
    """Write the json from the runs, and the page from the json."""
    settings = {
        setting.name: {
            "environment": dataclasses.asdict(ImageBanditConfig(num_tasks=setting.num_tasks)),
            "num_rounds": setting.num_rounds,
            "methods": lines,
        }
        for setting in SETTINGS
        if (lines := results(setting, tuning_seeds, report_seeds))
    }
    if not settings:
        raise SystemExit("no method has finished runs yet; repeat the command to continue")
    first = FIRST_TUNING_SEED
    content = {
        "provenance": current_provenance(),
        "tuning_seeds": list(range(first, first + tuning_seeds)),
        "settings": settings,
    }
    write_json(RESULTS, content)
    write_page()


def write_page() -> None:
    """Write the page from the json."""
    write_text(TABLES, page(read_json(RESULTS)))


def page(content: dict[str, Any]) -> str:
    """The results as markdown."""
    seeds = content["tuning_seeds"]
    parts = [
        "# Neural baselines",
        "",
        "GFUCB and other exploration methods on scikit-learn's 8x8 digits (ten iid images, uniform",
        "reward maps, noise 0.1). All methods have the same network, fit and refit schedule. Each",
        f"method has one scale, tuned on {len(seeds)} seeds ({seeds[0]} to {seeds[-1]}) on a grid",
        "of four values and then run on seeds 0, 1, ... Regret is the cumulative regret of a task:",
        "mean and 95% interval over seeds. The difference to GFUCB is paired over common seeds. A",
        "star marks a value at an end of its grid. Seconds are CPU seconds of one run on one core.",
        "Below each table: methods whose paired difference to GFUCB has an interval without zero.",
        "Each interval is for one comparison, without correction for multiple comparisons.",
        "",
        "`python benchmarks/neural_baselines.py` writes this page from",
        "`benchmarks/neural_baselines.json`, with the numbers of all seeds and the provenance.",
    ]
    if "remark" in content:
        parts += ["", content["remark"]]
    for name, setting in content["settings"].items():
        parts += ["", f"## {name}", "", *table(setting), "", *verdict(setting)]
    return "\n".join(parts) + "\n"


def differences(setting: dict[str, Any], method: str) -> NDArray[np.float64]:
    """Regret minus that of GFUCB, on common seeds."""
    reference = setting["methods"].get("gfucb", {}).get("regret_by_seed", {})
    own = setting["methods"][method]["regret_by_seed"]
    return np.array([regret - reference[seed] for seed, regret in own.items() if seed in reference])


def verdict(setting: dict[str, Any]) -> list[str]:
    """Methods that differ significantly from GFUCB, and those that do not."""
    groups: dict[str, list[str]] = {"worse": [], "better": [], "not significant": []}
    for method in setting["methods"]:
        found = differences(setting, method)
        if method != "gfucb" and len(found) > 1:
            is_clear = abs(found.mean()) > half_width(found)
            side = "worse" if found.mean() > 0 else "better"
            groups[side if is_clear else "not significant"].append(method)
    return [f"- {side}: {', '.join(names) or 'none'}" for side, names in groups.items()]


def table(setting: dict[str, Any]) -> list[str]:
    """One line a method, the best first."""
    methods = setting["methods"]

    def mean(method: str) -> float:
        return float(np.mean(list(methods[method]["regret_by_seed"].values())))

    head = ["method", "scale", "regret", "minus GFUCB", "per decision", "seeds", "seconds"]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for method in sorted(methods, key=mean):
        row = methods[method]
        regrets = np.array(list(row["regret_by_seed"].values()))
        paired = differences(setting, method)
        difference = interval(paired.mean(), half_width(paired), sign=True) if len(paired) else ""
        cells = [
            method,
            scale_cell(row),
            interval(regrets.mean(), half_width(regrets)),
            "" if method == "gfucb" else difference,
            f"{regrets.mean() / setting['num_rounds']:.4f}",
            str(len(regrets)),
            f"{row['cpu_seconds']:.0f}",
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def scale_cell(row: dict[str, Any]) -> str:
    """The chosen value, with a star at the ends of the grid."""
    if row["scale"] is None:
        return ""
    grid = SCALES[row["scale"]]
    star = "*" if row["chosen"] in (grid[0], grid[-1]) else ""
    return f"`{row['scale']}` {row['chosen']:g}{star}"


def main() -> None:
    """Run what is missing within the budget, then write the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--tuning-seeds", type=int, default=2)
    parser.add_argument("--report-seeds", type=int, default=8)
    parser.add_argument(
        "--budget-minutes", type=float, default=25.0, help="no seed is started after this time"
    )
    parser.add_argument("--processes", type=int, default=1, help="runs at a time")
    names = [setting.name for setting in SETTINGS]
    parser.add_argument("--settings", nargs="+", default=names[:1], choices=names)
    parser.add_argument("--methods", nargs="+", default=list(SCALE_OF), choices=list(SCALE_OF))
    parser.add_argument(
        "--page-only", action="store_true", help="run nothing, write the page again"
    )
    given = parser.parse_args()
    if given.page_only:
        write_page()
        return
    stop_at = time.monotonic() + 60 * given.budget_minutes
    for setting in (s for s in SETTINGS if s.name in given.settings):
        for jobs in phases(setting, given.methods, given.tuning_seeds, given.report_seeds):
            if time.monotonic() > stop_at:
                break
            run_all(jobs, RUNS, processes=given.processes, progress=Progress(show))
    write(given.tuning_seeds, given.report_seeds)


if __name__ == "__main__":
    main()
