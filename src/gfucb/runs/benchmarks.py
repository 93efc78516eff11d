"""Benchmarks: ratios of times and sizes, both sides of each measured in one process.

Each measurement is a job, so its rows are stored in a run directory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from statistics import mean, median

import torch
from torch import Tensor

from gfucb.bandits import GFUCB
from gfucb.bandits.batched import BatchedAgents
from gfucb.core.action_sets import ActionSets
from gfucb.core.errors import lookup
from gfucb.core.protocols import BanditEnvironment
from gfucb.core.random import random_stream
from gfucb.core.records import Row
from gfucb.environments import ImageBandit, load_digits
from gfucb.estimation import VariableProjection
from gfucb.exploration import FineTuning
from gfucb.models import NeuralClass
from gfucb.models.nn.networks import paper_network
from gfucb.runs.benchmark_results import IMAGE_SHAPE, Ratio, Setting
from gfucb.runs.benchmark_sizes import LITERAL_ITERATIONS, MEASUREMENTS
from gfucb.runs.jobs import Job
from gfucb.runs.loop import play, play_batched
from gfucb.runs.stored_settings import default_settings, plain_settings


def decision(setting: Setting) -> list[Ratio]:
    """The paper's fine-tuning of one tuple of actions over one decision of the default agent.

    Both have the same data. Fine-tuning is measured for the agent's own network and for the
    paper's smaller one.
    """
    sizes, images = setting.sizes, setting.images.images
    candidates = _random_candidates(images, "candidates", sizes.num_tasks, sizes.num_actions)
    paper = NeuralClass(paper_network(IMAGE_SHAPE, random_stream(0, "network")), "l2")
    agent, paper_sized = (
        GFUCB(sizes.num_tasks, network, fit=SHORT_FIT, device=setting.device)
        for network in (None, paper)
    )
    for learner in (agent, paper_sized):
        _fill(learner, images, sizes.stored_images)
    agent.decide(candidates)
    cost = median(setting.seconds(lambda: agent.decide(candidates)) for _ in range(sizes.decisions))
    timed = sizes.literal_iterations
    return [
        Ratio(
            name,
            f"literal fine-tuning: {LITERAL_ITERATIONS} full-data iterations, one tuple",
            "one decision of the default agent",
            above=_literal_seconds(setting, tuned, candidates),
            below=cost,
            target=1000.0,
            sizes={
                "tasks": sizes.num_tasks,
                "actions": sizes.num_actions,
                "stored images": sizes.stored_images,
            },
            remark=""
            if timed == LITERAL_ITERATIONS
            else f"{timed} iterations timed, {LITERAL_ITERATIONS} extrapolated linearly",
        )
        for name, tuned in (("decision", agent), ("decision, paper's network", paper_sized))
    ]


def growth(setting: Setting) -> list[Ratio]:
    """A late round over an early one: decide, observe, and the refits in these rounds."""
    sizes = setting.sizes
    (first, last), (late_first, late_last) = sizes.early_rounds, sizes.late_rounds
    rounds = max(last, late_last)
    _, seconds = _rounds_on_digits(setting, sizes.num_tasks, rounds)
    return [
        Ratio(
            name,
            f"a round, {middle.__name__} of rounds {late_first} to {late_last}",
            f"a round, {middle.__name__} of rounds {first} to {last}",
            above=middle(seconds[late_first - 1 : late_last]),
            below=middle(seconds[first - 1 : last]),
            target=1.5,
            bound="at most",
            sizes={"tasks": sizes.num_tasks, "actions": sizes.num_actions, "rounds": rounds},
        )
        # Refits become rarer and their share of the mean falls; the median round has none.
        for name, middle in (("growth", mean), ("growth, between fits", median))
    ]


def tasks(setting: Setting) -> list[Ratio]:
    """Time and memory per task with many tasks over those with few, for the same rounds."""
    sizes = setting.sizes
    few, few_seconds = _rounds_on_digits(setting, sizes.num_tasks, sizes.task_rounds)
    many, many_seconds = _rounds_on_digits(setting, sizes.many_tasks, sizes.task_rounds)
    measured = {
        "tasks": (mean(many_seconds), mean(few_seconds)),
        # A fit uses a bounded number of samples and would hide a cost that grows with the tasks.
        "tasks, between fits": (median(many_seconds), median(few_seconds)),
        "tasks, memory": (_state_bytes(many), _state_bytes(few)),
    }
    what = {
        "tasks": "mean seconds per task and round",
        "tasks, between fits": "median seconds per task and round",
        "tasks, memory": "bytes of state per task",
    }
    return [
        Ratio(
            name,
            f"{what[name]} with {sizes.many_tasks} tasks",
            f"the same with {sizes.num_tasks} tasks",
            above=of_many / sizes.many_tasks,
            below=of_few / sizes.num_tasks,
            unit="bytes" if "memory" in name else "seconds",
            target=None if "memory" in name else 1.2,
            bound="at most",
            sizes={"actions": sizes.num_actions, "rounds": sizes.task_rounds},
        )
        for name, (of_many, of_few) in measured.items()
    ]


def subset(setting: Setting) -> list[Ratio]:
    """A round of a few tasks, for an agent with many tasks over an agent with only these."""
    sizes = setting.sizes
    digits = load_digits().images
    tasks = torch.arange(sizes.num_tasks)
    candidates = _random_candidates(digits, "candidates", sizes.num_tasks, sizes.num_actions)
    rewards = torch.rand(sizes.num_tasks, generator=random_stream(0, "bench", "subset"))

    def seconds_of_a_round(num_tasks: int) -> float:
        agent = GFUCB(num_tasks, fit=SHORT_FIT, device=setting.device)
        _fill(agent, digits, sizes.stored_images)

        def play_round() -> None:
            agent.observe(agent.decide(candidates, tasks), rewards)

        play_round()
        return median(setting.seconds(play_round) for _ in range(sizes.decisions))

    return [
        Ratio(
            "subset",
            f"a round of {sizes.num_tasks} of {sizes.many_tasks} tasks, between fits",
            f"a round of all of {sizes.num_tasks} tasks",
            above=seconds_of_a_round(max(sizes.many_tasks, sizes.num_tasks)),
            below=seconds_of_a_round(sizes.num_tasks),
            sizes={"actions": sizes.num_actions, "stored images": sizes.stored_images},
        )
    ]


def catalogue(setting: Setting) -> list[Ratio]:
    """A decision on action sets that repeat a catalogue for each task over one on the catalogue."""
    sizes = setting.sizes
    count, items = sizes.catalogue_tasks, sizes.catalogue_items
    agent = GFUCB(count, fit=SHORT_FIT, device=setting.device)
    _fill(agent, setting.images.images, count)
    shared = _random_candidates(setting.images.images, "catalogue", 1, items)[0]
    repeated = shared.expand(count, *shared.shape).contiguous()
    agent.decide_from(shared)
    once = median(setting.seconds(lambda: agent.decide_from(shared)) for _ in range(5))
    problem = {"tasks": count, "items": items}
    return [
        Ratio(
            "catalogue",
            "a decision on action sets that repeat the items for every task",
            "the same decision on the catalogue",
            above=setting.seconds(lambda: agent.decide(repeated)),
            below=once,
            sizes=problem,
        ),
        Ratio(
            "catalogue, memory",
            "inputs of the action sets that repeat the items",
            "inputs of the catalogue",
            above=repeated.nbytes,
            below=shared.nbytes,
            unit="bytes",
            sizes=problem,
        ),
    ]


def batched(setting: Setting) -> list[Ratio]:
    """Replicas of the default agent one after another, over the same replicas in one batch."""
    sizes = setting.sizes
    replicas = sizes.batched_replicas or (20 if setting.is_gpu else 4)
    rounds = sizes.batched_rounds or (600 if setting.is_gpu else 5)
    alone = min(sizes.batched_alone, replicas)

    def agent(seed: int) -> GFUCB:
        return GFUCB(sizes.num_tasks, seed=seed, device=setting.device)

    def environment(seed: int) -> ImageBandit:
        return ImageBandit(
            setting.images, num_tasks=sizes.num_tasks, num_actions=sizes.num_actions, seed=seed
        )

    def one_after_another(seeds: Iterable[int], num_rounds: int) -> None:
        for seed in seeds:
            _exhaust(play(agent(seed), environment(seed), num_rounds=num_rounds))

    def together(seeds: Iterable[int], num_rounds: int) -> None:
        every = list(seeds)
        batch = BatchedAgents([agent(seed) for seed in every])
        _exhaust(play_batched(batch, [environment(seed) for seed in every], num_rounds=num_rounds))

    if setting.is_gpu:  # kernels are loaded at their first use
        one_after_another([0], 3)
        together(range(replicas), 3)
    seconds_alone = setting.seconds(lambda: one_after_another(range(alone), rounds))
    return [
        Ratio(
            "batched",
            f"{replicas} runs one after another",
            "the same runs as one batch",
            above=seconds_alone * replicas / alone,
            below=setting.seconds(lambda: together(range(replicas), rounds)),
            target=8.0 if setting.is_gpu else None,
            sizes={"replicas": replicas, "tasks": sizes.num_tasks, "rounds": rounds},
            remark=""
            if alone == replicas
            else f"{alone} runs timed, {replicas} extrapolated linearly",
        )
    ]


Measure = Callable[[Setting], list[Ratio]]
MEASURES: Mapping[str, Measure] = dict(
    zip(MEASUREMENTS, (decision, growth, tasks, subset, catalogue, batched), strict=True)
)

# The cost of a decision does not depend on how well the network is trained.
SHORT_FIT = VariableProjection(steps=2)


def bench_job(name: str, setting: Setting, *, quick: bool = False) -> Job:
    """The measurement of that name as a job; an unknown name raises an error that lists all.

    With `quick` the ratios have no targets.
    """
    take = lookup(MEASURES, name, "measurement")
    settings = {"measurement": name, **setting.settings(), "quick": quick}
    return Job(
        name,
        partial(_measured_rows, take, setting, quick),
        settings=plain_settings(settings),
        defaults=default_settings(settings),
    )


def _measured_rows(take: Measure, setting: Setting, quick: bool) -> list[Row]:
    ratios = take(setting)
    return [(replace(ratio, target=None) if quick else ratio).row() for ratio in ratios]


def _fill(agent: GFUCB, images: Tensor, samples: int) -> None:
    """Let the agent learn random samples, of all tasks in turn."""
    inputs = _random_candidates(images, "stored", 1, samples)[0]
    rewards = torch.rand(samples, generator=random_stream(0, "bench", "rewards"))
    agent.learn(torch.arange(samples) % agent.num_tasks, inputs, rewards)


def _random_candidates(inputs: Tensor, name: str, rows: int, actions: int) -> Tensor:
    """Inputs drawn at random: [input index, *input] -> [row, action, *input]."""
    generator = random_stream(0, "bench", name)
    return inputs[torch.randint(len(inputs), (rows, actions), generator=generator)]


def _literal_seconds(setting: Setting, agent: GFUCB, candidates: Tensor) -> float:
    """Seconds of the printed fine-tuning for one tuple of actions, the first of each row.

    The step length is zero. The arithmetic is the same, and the loop cannot diverge, which would
    end it early. A short loop is timed too, to separate the fixed cost from the cost of an
    iteration.
    """
    tuple_ = candidates[:, :1].to(setting.device)
    count = agent.num_tasks
    action_sets = ActionSets(
        tuple_,
        torch.arange(count, device=setting.device),
        torch.ones(count, 1, dtype=torch.bool, device=setting.device),
    )

    def seconds(iterations: int) -> float:
        tuning = replace(FineTuning.literal_sum(iterations), learning_rate=0.0)
        return setting.seconds(
            lambda: tuning(agent.confidence_set(tuple_.flatten(0, 1)), action_sets)
        )

    timed = setting.sizes.literal_iterations
    seconds(1)
    if timed == LITERAL_ITERATIONS:
        return seconds(timed)
    short, long = seconds(1), seconds(timed)
    return long + (LITERAL_ITERATIONS - timed) * (long - short) / (timed - 1)


def _rounds_on_digits(
    setting: Setting, num_tasks: int, num_rounds: int
) -> tuple[GFUCB, list[float]]:
    """The default agent after rounds on 8 x 8 digits, and the seconds of each round."""
    environment: BanditEnvironment = ImageBandit(
        load_digits(),
        num_tasks=num_tasks,
        num_actions=setting.sizes.num_actions,
        reward_map="uniform",
        noise_scale=0.1,
    )
    first = environment.round(1)
    for _ in range(2):  # code that is loaded at its first use is not measured
        warm_up = GFUCB(num_tasks, fit=SHORT_FIT, device=setting.device)
        warm_up.observe(warm_up.decide(first.candidates), first.noise)
    agent = GFUCB(num_tasks, device=setting.device)
    seconds = []
    for index in range(1, num_rounds + 1):
        round_ = environment.round(index)
        before_decide = setting.now()
        choice = agent.decide(round_.candidates)
        after_decide = setting.now()
        rewards = round_.rewards(choice.actions.cpu())
        before_observe = setting.now()
        agent.observe(choice, rewards)
        seconds.append(setting.now() - before_observe + after_decide - before_decide)
    return agent, seconds


def _state_bytes(agent: GFUCB) -> int:
    return sum(tensor.nbytes for tensor in agent.state().values())


def _exhaust(rows: Iterable[Row | list[Row]]) -> None:
    for _ in rows:
        pass
