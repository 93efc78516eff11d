"""The runs of Figure 1: curves, seeds, jobs, and the functions that make their rows."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, Literal

from gfucb.bandits import GFUCB, EpsilonGreedy, multitask_greedy
from gfucb.bandits.batched import BatchedAgents
from gfucb.core.random import random_stream
from gfucb.core.records import Row
from gfucb.environments import ImageBandit, LabelledImages, load_digits, load_mnist
from gfucb.exploration import FineTuning
from gfucb.paper.common import Job, Options
from gfucb.paper.strided_run import StridedRun
from gfucb.runs.agents.paper_procedure import paper_agent
from gfucb.runs.build_run import make_agent
from gfucb.runs.config import BanditAgentConfig
from gfucb.runs.loop import play, play_batched
from gfucb.runs.registry import AGENTS

# Design choices were made on seeds from 2000 on.
SEEDS = tuple(range(200, 220))
# The effect of the exploration bonus is smaller than the variation between runs, so the two curves
# that measure it have additional seeds.
ADDITIONAL_SEEDS = tuple(range(220, 260))
NUM_TASKS = 10
GROUP_SIZES = (1, 5, 10)
EPSILONS = (0.01, 0.05, 0.1)
NUM_ACTIONS = 10
NUM_PAPER_SEEDS = 5
# Of a batch: more would not fit beside others on one device.
MOST_SEEDS, MOST_NETWORKS, MOST_TASKS = 20, 50, 500


@dataclass(frozen=True)
class Sizes:
    """Lengths of the runs, and effort per round of the paper's procedure.

    Attributes:
        stride: rounds between two rows.
        epochs: largest number of epochs of Adam in each round.
        tuning_iterations: steps of fine-tuning for each action set.
        literal_sum_rounds: the literal sum chooses close to uniformly long before this round.
    """

    num_rounds: int = 600
    stride: int = 20
    epochs: int = 200
    tuning_iterations: int = 200
    paper_rounds: int = 600
    literal_sum_rounds: int = 240


QUICK = Sizes(num_rounds=12, stride=2, epochs=3, tuning_iterations=3, paper_rounds=4)


@dataclass(frozen=True)
class Curve:
    """One curve of the figure.

    Attributes:
        agent: name in the column `agent` of the rows.
        group_size: M, the number of tasks that share a representation.
        num_actions: K, the size of an action set.
        num_tasks: tasks in all groups together.
        epsilon: probability of a uniform action.
    """

    agent: str
    group_size: int = NUM_TASKS
    num_actions: int = NUM_ACTIONS
    num_tasks: int = NUM_TASKS
    epsilon: float = 0.0

    @property
    def name(self) -> str:
        """Prefix of the names of its jobs."""
        epsilon = f"-eps={self.epsilon}" if self.epsilon else ""
        return f"{self.agent}{epsilon}-M={self.group_size}-K={self.num_actions}"


GFUCB_TEN, GREEDY_TEN = Curve("gfucb"), Curve("greedy")

# Agents whose runs on several seeds are batched.
BATCHED: dict[str, Callable[..., GFUCB]] = {
    "gfucb": GFUCB,
    "greedy": multitask_greedy,
    "eps-greedy": multitask_greedy,
}
# The paper's procedure in three variants.
PAPER_VARIANTS: dict[str, Callable[[int], FineTuning]] = {
    "paper": FineTuning.stable,
    "literal-sum": FineTuning.literal_sum,
    "literal-mean": FineTuning.literal_mean,
}


def sizes_of(options: Options) -> Sizes:
    """Sizes of the full or the quick version."""
    return QUICK if options.quick else Sizes()


def config(options: Options) -> dict[str, Any]:
    """Settings stored with the results."""
    return {"sizes": sizes_of(options)}


def jobs(options: Options) -> list[Job]:
    """One job for each curve and block of seeds, the most informative curves first."""
    sizes = sizes_of(options)
    found = []
    for curve in _curves(options.quick):
        is_paper = curve.agent in PAPER_VARIANTS
        seeds, block = _seeds_of(curve, options), _seeds_per_job(curve)
        for some in (seeds[start : start + block] for start in range(0, len(seeds), block)):
            name = f"{curve.name}-seeds={some[0]}-{some[-1]}"
            if is_paper:
                run = partial(paper_run, curve, some[0], sizes, options)
                found.append(Job(name, run, resumable=True))
            else:
                found.append(Job(name, partial(curve_rows, curve, some, sizes, options)))
    return found


def _curves(quick: bool) -> Iterator[Curve]:
    """All curves, the most informative first."""
    for group_size in reversed(GROUP_SIZES):
        yield Curve("gfucb", group_size)
    yield GREEDY_TEN
    yield Curve("oracle-ucb", 1)
    if not quick:
        yield Curve("gfucb", 100, num_tasks=100)
    for epsilon in EPSILONS[-1:] if quick else reversed(EPSILONS):
        yield Curve("eps-greedy", 1, epsilon=epsilon)
    yield from (Curve(name) for name in PAPER_VARIANTS)
    for num_actions in (2,) if quick else (5, 2):
        for group_size in reversed(GROUP_SIZES):
            yield Curve("gfucb", group_size, num_actions)
        yield Curve("greedy", num_actions=num_actions)


def _seeds_of(curve: Curve, options: Options) -> tuple[int, ...]:
    seeds = options.seeds or ((0, 1) if options.quick else SEEDS)
    if curve.agent == "paper":
        return seeds[:NUM_PAPER_SEEDS]
    if curve.agent in PAPER_VARIANTS:
        return seeds[:1]
    has_more = seeds == SEEDS and curve in (GFUCB_TEN, GREEDY_TEN)
    return seeds + ADDITIONAL_SEEDS if has_more else seeds


def _seeds_per_job(curve: Curve) -> int:
    """The paper's procedure takes one seed; a batch as many as fill the device."""
    if curve.agent in PAPER_VARIANTS:
        return 1
    networks = curve.num_tasks // curve.group_size if curve.agent in BATCHED else 1
    return min(MOST_SEEDS, MOST_NETWORKS // networks, MOST_TASKS // curve.num_tasks)


def curve_rows(
    curve: Curve,
    seeds: Sequence[int],
    sizes: Sizes,
    options: Options,
    self_supervision: Literal["auto"] | None = "auto",
    environment: Callable[[int], ImageBandit] | None = None,
) -> list[Row]:
    """Run a curve on some seeds: one row for each seed and every `stride` rounds.

    `seconds` is the wall time of one seed's run up to that round; batched runs share it equally.
    `self_supervision` is that of the agents; "auto" is their default. `environment` makes that of a
    seed; by default the one of the figure.
    """
    make = environment or partial(_environment, curve, options)
    environments = [make(seed) for seed in seeds]
    started = time.perf_counter()
    if curve.agent in BATCHED:
        by_round = _batched_regrets(curve, seeds, environments, sizes, options, self_supervision)
    else:
        by_round = _single_regrets(curve, seeds, environments, sizes)
    rows: list[Row] = []
    for round_index, regrets in enumerate(by_round, start=1):
        if round_index % sizes.stride == 0:
            seconds = (time.perf_counter() - started) / len(seeds)
            rows += [
                _row(curve, round_index, seed, regret, seconds)
                for seed, regret in zip(seeds, regrets, strict=True)
            ]
    return rows


def paper_run(curve: Curve, seed: int, sizes: Sizes, options: Options) -> StridedRun:
    """The paper's procedure on one seed, which can be continued."""
    environment = _environment(curve, options, seed)
    agent = paper_agent(
        curve.num_tasks,
        environment.data.images.shape[1:],
        seed=seed,
        noise_scale=environment.noise_scale,
        epochs=sizes.epochs,
        action_selector=PAPER_VARIANTS[curve.agent](sizes.tuning_iterations),
        device=options.device,
    )
    num_rounds = sizes.paper_rounds
    if curve.agent == "literal-sum":
        num_rounds = min(num_rounds, sizes.literal_sum_rounds)
    return StridedRun(
        agent,
        environment,
        num_rounds=num_rounds,
        stride=sizes.stride,
        row=lambda index, regret, seconds: _row(curve, index, seed, regret, seconds),
    )


def _batched_regrets(
    curve: Curve,
    seeds: Sequence[int],
    environments: Sequence[ImageBandit],
    sizes: Sizes,
    options: Options,
    self_supervision: Literal["auto"] | None,
) -> Iterator[list[float]]:
    """Yield the cumulative regret of every seed after each round; all groups run in one batch."""
    num_groups = curve.num_tasks // curve.group_size
    agent_seeds = [
        random_stream(seed, "group", group).initial_seed() if num_groups > 1 else seed
        for seed in seeds
        for group in range(num_groups)
    ]
    make = BATCHED[curve.agent]
    known: dict[str, Any] = {"value_range": (0.0, 1.0), "self_supervision": self_supervision}
    known["device"] = options.device
    agents = [make(curve.group_size, seed=seed, **known) for seed in agent_seeds]
    explorers = [
        EpsilonGreedy(agent, epsilon=curve.epsilon, seed=seed)
        for agent, seed in zip(agents, agent_seeds, strict=True)
        if curve.epsilon > 0
    ]
    for rows in play_batched(
        BatchedAgents(agents), environments, num_rounds=sizes.num_rounds, explorers=explorers
    ):
        yield [float(row["cumulative_regret"]) for row in rows]


def _single_regrets(
    curve: Curve,
    seeds: Sequence[int],
    environments: Sequence[ImageBandit],
    sizes: Sizes,
) -> Iterator[list[float]]:
    """Yield the same for agents that cannot be batched."""
    agent_config = BanditAgentConfig(name=curve.agent)
    runs = [
        play(
            make_agent(agent_config, environment, seed),
            environment,
            num_rounds=sizes.num_rounds,
            uses_true_features=AGENTS[curve.agent].uses_true_features,
        )
        for environment, seed in zip(environments, seeds, strict=True)
    ]
    for rows in zip(*runs, strict=True):
        yield [float(row["cumulative_regret"]) for row in rows]


@lru_cache(maxsize=1)
def _images(options: Options) -> LabelledImages:
    return load_digits() if options.quick else load_mnist(options.data_dir)


def _environment(curve: Curve, options: Options, seed: int) -> ImageBandit:
    return ImageBandit(
        _images(options), num_tasks=curve.num_tasks, num_actions=curve.num_actions, seed=seed
    )


def _row(curve: Curve, round_index: int, seed: int, regret: float, seconds: float) -> Row:
    return {
        "agent": curve.agent,
        "epsilon": curve.epsilon,
        "group_size": curve.group_size,
        "num_actions": curve.num_actions,
        "round": round_index,
        "seed": seed,
        "regret": round(regret, 4),
        "seconds": round(seconds, 2),
    }
