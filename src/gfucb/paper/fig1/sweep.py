"""The runs behind Figure 1, ten tasks in groups and strong baselines, and how rows are read."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path

import numpy as np
import pandas as pd

from gfucb.bandits import GFUCB, EpsilonGreedy, multitask_greedy
from gfucb.bandits.batched import BatchedAgents
from gfucb.core.random import random_stream
from gfucb.core.records import Row
from gfucb.environments import ImageBandit, LabelledImages, load_digits, load_mnist
from gfucb.exploration import FineTuning
from gfucb.paper.driver import Job, Options, Progress
from gfucb.runs.bandit_agents import make_agent, paper_agent
from gfucb.runs.config import AgentConfig
from gfucb.runs.loop import play, play_batched

# Choices were made on seeds from 2000 on.
SEEDS = tuple(range(200, 220))
# What optimism gains is less than runs differ by: its two curves have these besides.
MORE_SEEDS = tuple(range(220, 300))
NUM_TASKS = 10
GROUP_SIZES = (1, 5, 10)
EPSILONS = (0.01, 0.05, 0.1)
HEADLINE = 10  # actions
PAPER_SEEDS = 3
BLOCK = 20  # seeds in a job; fewer where there are many tasks


@dataclass(frozen=True)
class Sizes:
    """How long runs are, and how much of the paper's procedure is done in a round."""

    num_rounds: int = 600
    stride: int = 20
    epochs: int = 200
    tuning_iterations: int = 200
    paper_rounds: int = 600
    literal_sum_rounds: int = 240  # it chooses as if at random long before


QUICK = Sizes(num_rounds=12, stride=2, epochs=3, tuning_iterations=3, paper_rounds=4)


@dataclass(frozen=True)
class Line:
    """One curve of the figure: who plays, in groups of how many of how many tasks, of K actions."""

    agent: str
    group_size: int = NUM_TASKS
    num_actions: int = HEADLINE
    num_tasks: int = NUM_TASKS
    epsilon: float = 0.0

    @property
    def name(self) -> str:
        """A name for its job."""
        chance = f"-eps={self.epsilon}" if self.epsilon else ""
        return f"{self.agent}{chance}-M={self.group_size}-K={self.num_actions}"


TEN, GREEDY = Line("gfucb"), Line("greedy")

FLEETS: dict[str, Callable[..., GFUCB]] = {
    "gfucb": GFUCB,
    "greedy": multitask_greedy,
    "eps-greedy": multitask_greedy,
}
TUNINGS: dict[str, Callable[[int], FineTuning]] = {
    "paper": FineTuning.stable,
    "literal-sum": FineTuning.literal_sum,
    "literal-mean": FineTuning.literal_mean,
}


def _lines(quick: bool) -> Iterator[Line]:
    """Every curve, the most telling first."""
    for group_size in reversed(GROUP_SIZES):
        yield Line("gfucb", group_size)
    yield GREEDY
    yield Line("oracle-ucb", 1)
    if not quick:
        yield Line("gfucb", 100, num_tasks=100)
    for epsilon in EPSILONS[-1:] if quick else reversed(EPSILONS):
        yield Line("eps-greedy", 1, epsilon=epsilon)
    yield from (Line(name) for name in TUNINGS)
    for num_actions in (2,) if quick else (5, 2):
        for group_size in reversed(GROUP_SIZES):
            yield Line("gfucb", group_size, num_actions)
        yield Line("greedy", num_actions=num_actions)


def _seeds_of(line: Line, options: Options) -> tuple[int, ...]:
    """The seeds a curve is drawn on."""
    seeds = options.seeds or ((0, 1) if options.quick else SEEDS)
    if line.agent == "paper":
        return seeds[:PAPER_SEEDS]
    if line.agent in TUNINGS:
        return seeds[:1]
    return seeds + MORE_SEEDS if seeds == SEEDS and line in (TEN, GREEDY) else seeds


def jobs(options: Options) -> list[Job]:
    """Every curve in parts, the most telling first."""
    sizes = sizes_of(options)
    made = []
    for line in _lines(options.quick):
        # What runs alone is a job a seed; batches take as many seeds as fill the device.
        block = 1 if line.agent in TUNINGS else max(1, BLOCK // max(1, line.num_tasks // 50))
        seeds = _seeds_of(line, options)
        for own in (seeds[begin : begin + block] for begin in range(0, len(seeds), block)):
            name = f"{line.name}-seeds={own[0]}-{own[-1]}"
            if line.agent in TUNINGS:
                work = partial(_play_as_printed, line, own[0], sizes, options)
                made.append(Job(name, work, resumes=True))
            else:
                made.append(Job(name, partial(_play, line, own, sizes, options)))
    return made


def sizes_of(options: Options) -> Sizes:
    """How long runs are."""
    return QUICK if options.quick else Sizes()


@lru_cache(maxsize=1)
def _images(options: Options) -> LabelledImages:
    return load_digits() if options.quick else load_mnist(options.data_dir)


def _play(line: Line, seeds: Sequence[int], sizes: Sizes, options: Options) -> list[Row]:
    """The runs of a curve on some seeds: a row every `stride` rounds.

    `seconds` is the wall time of one seed's run until then; runs of a batched share it equally.
    """
    environments = [_environment(line, seed, options) for seed in seeds]
    begun = time.perf_counter()
    rounds_of = _fleet_rounds if line.agent in FLEETS else _single_rounds
    rows: list[Row] = []
    for index, regrets in enumerate(rounds_of(line, seeds, environments, sizes, options), start=1):
        if index % sizes.stride == 0:
            seconds = (time.perf_counter() - begun) / len(seeds)
            rows += [
                _row(line, index, seed, regret, seconds)
                for seed, regret in zip(seeds, regrets, strict=True)
            ]
    return rows


def _play_as_printed(
    line: Line, seed: int, sizes: Sizes, options: Options, kept: Path
) -> list[Row]:
    """The paper's procedure on one seed, taken up where `kept` has it, if there is such a file."""
    environment = _environment(line, seed, options)
    agent = paper_agent(
        line.num_tasks,
        environment.data.images.shape[1:],
        seed=seed,
        noise_scale=environment.noise_scale,
        epochs=sizes.epochs,
        action_selector=TUNINGS[line.agent](sizes.tuning_iterations),
        device=options.device,
    )
    before = Progress([], {}, {"round": "0", "regret": "0", "seconds": "0"})
    if kept.exists():
        before = Progress.read(kept)
        agent.load_state(before.state)
    rows = list(before.rows)
    begun = time.perf_counter() - float(before.facts["seconds"])
    num_rounds = sizes.paper_rounds
    if line.agent == "literal-sum":
        num_rounds = min(num_rounds, sizes.literal_sum_rounds)
    for played in play(
        agent,
        environment,
        num_rounds=num_rounds,
        rounds_done=int(before.facts["round"]),
        cumulative_regret=float(before.facts["regret"]),
    ):
        index, regret = int(played["round"]), float(played["cumulative_regret"])
        if index % sizes.stride == 0:
            seconds = time.perf_counter() - begun
            rows.append(_row(line, index, seed, regret, seconds))
            facts = {"round": str(index), "regret": repr(regret), "seconds": repr(seconds)}
            Progress(rows, agent.state(), facts).write(kept)
    return rows


def _environment(line: Line, seed: int, options: Options) -> ImageBandit:
    return ImageBandit(
        _images(options), num_tasks=line.num_tasks, num_actions=line.num_actions, seed=seed
    )


def _row(line: Line, round_index: int, seed: int, regret: float, seconds: float) -> Row:
    return {
        "agent": line.agent,
        "epsilon": line.epsilon,
        "group_size": line.group_size,
        "num_actions": line.num_actions,
        "round": round_index,
        "seed": seed,
        "regret": round(regret, 4),
        "seconds": round(seconds, 2),
    }


def _fleet_rounds(
    line: Line,
    seeds: Sequence[int],
    environments: Sequence[ImageBandit],
    sizes: Sizes,
    options: Options,
) -> Iterator[list[float]]:
    """The cumulative regret of every environment, round by round; all groups of all seeds at once."""
    groups = line.num_tasks // line.group_size
    own_seeds = [
        random_stream(seed, "group", group).initial_seed() if groups > 1 else seed
        for seed in seeds
        for group in range(groups)
    ]
    make = FLEETS[line.agent]
    agents = [make(line.group_size, seed=seed, device=options.device) for seed in own_seeds]
    explorers = [
        EpsilonGreedy(agent, epsilon=line.epsilon, seed=seed)
        for agent, seed in zip(agents, own_seeds, strict=True)
        if line.epsilon > 0
    ]
    played = play_batched(
        BatchedAgents(agents), environments, num_rounds=sizes.num_rounds, explorers=explorers
    )
    for rows in played:
        yield [float(row["cumulative_regret"]) for row in rows]


def _single_rounds(
    line: Line,
    seeds: Sequence[int],
    environments: Sequence[ImageBandit],
    sizes: Sizes,
    options: Options,
) -> Iterator[list[float]]:
    """The same for agents that no batched takes."""
    config = AgentConfig(name=line.agent)
    agents = [make_agent(config, w, seed) for w, seed in zip(environments, seeds, strict=True)]
    runs = [
        play(
            agent, environment, num_rounds=sizes.num_rounds, reads_truth=line.agent == "oracle-ucb"
        )
        for agent, environment in zip(agents, environments, strict=True)
    ]
    for rows in zip(*runs, strict=True):
        yield [float(row["cumulative_regret"]) for row in rows]


def of_line(rows: pd.DataFrame, line: Line) -> pd.DataFrame:
    """The rows of a curve, as far as all its seeds have come."""
    return in_common(
        rows[
            (rows["agent"] == line.agent)
            & (rows["group_size"] == line.group_size)
            & (rows["num_actions"] == line.num_actions)
            & (rows["epsilon"] == line.epsilon)
        ]
    )


def of_paired_seeds(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of seeds that a task alone was played on, if it was: some curves have more seeds."""
    shared = rows.loc[rows["group_size"] == 1, "seed"].unique()
    return rows[rows["seed"].isin(shared)] if len(shared) else rows


def in_common(own: pd.DataFrame) -> pd.DataFrame:
    """The rows of rounds that every seed has reached: runs under way may differ."""
    return own[own["round"] <= own.groupby("seed")["round"].max().min()]


def final_regrets(rows: pd.DataFrame, line: Line, at: int | None = None) -> pd.Series:
    """The cumulative regret of a task at the end, or in round `at`, by seed."""
    own = of_line(rows, line)
    last = own[own["round"] == (own["round"].max() if at is None else at)]
    return last.set_index("seed")["regret"].sort_index()


def best_epsilon(rows: pd.DataFrame) -> float:
    """The one of the grid with the least regret on these very seeds: the baseline's best case."""
    means = {e: final_regrets(rows, Line("eps-greedy", 1, epsilon=e)).mean() for e in EPSILONS}
    known = {e: mean for e, mean in means.items() if np.isfinite(mean)}
    return min(known, key=known.__getitem__) if known else EPSILONS[-1]
