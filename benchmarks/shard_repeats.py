"""Weak and strong scaling of one agent in many processes, measured in alternation with one process.

    python -m benchmarks.shard_repeats --shards 16 --json benchmarks/shard_repeats.json

The cases of `shard_scaling.py` with one shard and with the most shards. There every case has new
processes, and how fast the cores of a machine are changes within minutes. Here the processes stay:
one of them has the agent of one shard too, and while that one is measured, the others sleep. One
repetition is a measurement of one shard and of all shards for weak scaling, with each process
where the system puts it and then with each on a CPU of its own; of as many independent agents of
one shard at the same time; and of strong scaling. Results are medians over repetitions, and
`--seconds` ends them in time. The efficiency relative to independent agents is what it costs that
shards are one agent.

The time of a call is that until its last shard has ended. Beside it there is fixed work without
exchanges, of four kinds: steps of a fit; products of small matrices, limited by arithmetic; copies
of a large array, limited by memory; and a loop of Python. Their efficiency is what the machine
allows. `neighbours` says for each other CPU how much products of one process take longer while
the same are computed there: about 2 for the second hardware thread of one core.
"""

from __future__ import annotations

import argparse
import functools
import json
import multiprocessing
import os
import resource
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import torch
from benchmarks import shard_scaling
from benchmarks.counted_shards import CountedShards
from benchmarks.machine import cpus, provenance, stolen_seconds
from benchmarks.process_groups import join_all
from benchmarks.repeated_rows import NAMES, efficiencies, equal_load, together
from benchmarks.shard_scaling import BATCH, GOAL, SAMPLES, STRONG_TASKS, WEAK_TASKS, Problem

from gfucb import GFUCB
from gfucb.core.memory import keep_more_freed_memory
from gfucb.core.shards import ONE_SHARD, Shards
from gfucb.distributed import Shard, connected, meeting_address
from gfucb.estimation.variable_projection import VariableProjection
from gfucb.models.network_classes import DefaultNetworkClass

FITS, ROUNDS, WORKS = 2, 5, 7
COPIED, LOOPS = 2**24, 100_000
CONDITIONS = (
    "weak one",
    "weak all",
    "weak pinned",
    "weak independent",
    "strong one",
    "strong all",
)


@dataclass(frozen=True)
class Settings:
    """What all processes do.

    Attributes:
        shards: their number.
        conditions: of `CONDITIONS`, in their order.
        repeats: at most so many.
        deadline: after this time no repetition begins that would probably end too late.
        pairs: whether pairs of CPUs are measured.
    """

    shards: int
    conditions: tuple[str, ...]
    repeats: int
    deadline: float
    pairs: bool


class Player:
    """An agent of one or all shards, and what is timed of it.

    Args:
        shards: those of the agent.
        index: of the process.
        num_tasks: of this shard.
        batch_size: samples in a step of a fit, of all shards together.
    """

    def __init__(self, shards: Shards, index: int, num_tasks: int, batch_size: int) -> None:
        self.shards = CountedShards(shards)
        self.problem = Problem(index, num_tasks)
        self.tasks = torch.arange(num_tasks)
        self.agent = GFUCB(
            num_tasks,
            DefaultNetworkClass(),
            seed=0,
            fit=VariableProjection(batch_size=batch_size),
            refit_growth=float("inf"),
            self_supervision=None,
        )
        self.shard = Shard(self.agent, self.shards)
        learner = self.agent.network_learner
        for repeats in (1, SAMPLES - 1):  # the first fit needs samples of each task
            tasks = self.tasks.repeat(repeats)
            inputs = self.problem.inputs(len(tasks))
            learner.learn(tasks, inputs, self.problem.rewards(inputs, tasks))
        self.start = self.agent.state()

    def measure(self, processes: Shards, *, is_weak: bool) -> dict[str, Any]:
        """Seconds of every call in this process, and what the fits took of it.

        The agent starts from the same samples every time: rounds add some, and one agent may be
        measured more often than another.
        """
        self.agent.load_state(self.start)
        fits = FITS if is_weak else 1
        found: dict[str, Any] = {}
        self.shards.taken()
        before = resource.getrusage(resource.RUSAGE_SELF)
        found["fits"] = [_seconds(processes, self.agent.refit) for _ in range(fits)]
        after = resource.getrusage(resource.RUSAGE_SELF)
        found["fit_exchange_seconds"] = self.shards.taken()["seconds"] / fits
        found["fit_cpu_seconds"] = (
            after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
        ) / fits
        found["fit_system_seconds"] = (after.ru_stime - before.ru_stime) / fits
        found["fit_page_faults"] = (after.ru_minflt - before.ru_minflt) / fits
        found["rounds"] = []
        for _ in range(ROUNDS):
            candidates = self.problem.inputs(len(self.tasks), shard_scaling.ACTIONS)
            play = functools.partial(
                shard_scaling.play, self.shard, self.problem, candidates, self.tasks
            )
            found["rounds"].append(_seconds(processes, play))
        works: dict[str, Callable[[], object]] = {
            "steps": functools.partial(shard_scaling.work, self.agent, self.problem),
            "products": shard_scaling.products,
            "memory": functools.partial(_copied, torch.zeros(COPIED), torch.ones(COPIED)),
            "loops": _loops,
        }
        for name, work in works.items() if is_weak else ():
            work()
            found[name] = [_seconds(processes, work) for _ in range(WORKS)]
        return found


def _copied(array: torch.Tensor, copy: torch.Tensor) -> None:
    copy.copy_(array)


def _loops() -> None:
    total = 0
    for number in range(LOOPS):
        total += number


def _seconds(shards: Shards, call: Callable[[], object]) -> float:
    """From when all shards begin a call to when it has ended in this one."""
    if shards.count > 1:
        time.sleep(0.001)  # who waited has slept: all begin alike
        shards.sum(torch.zeros(1))
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def run_process(
    settings: Settings, address: str, index: int, path: str, barrier: Barrier, end: Any
) -> None:
    """One process of all repetitions; it appends what it measured to a file."""
    torch.set_num_threads(1)
    keep_more_freed_memory()
    own_cpus = os.sched_getaffinity(0)
    with connected(address, index=index, count=settings.shards) as processes:
        players = _players(settings, processes)
        for player in players.values():  # the first calls load libraries and ask for memory
            player.agent.refit()
        barrier.wait()
        with Path(path).open("a") as file:
            if settings.pairs:
                _write(file, {"condition": "pairs"} | _pairs(index, settings.shards, barrier))
                os.sched_setaffinity(0, own_cpus)
            for repetition in range(settings.repeats):
                begin = time.monotonic()
                for condition in settings.conditions:
                    measured = _measured(condition, players, processes, barrier)
                    row = {"condition": condition, "repetition": repetition}
                    _write(file, row | measured)
                    os.sched_setaffinity(0, own_cpus)
                if index == 0:
                    end.value = 2 * time.monotonic() - begin > settings.deadline
                barrier.wait()
                if end.value:
                    break


def _players(settings: Settings, processes: Shards) -> dict[str, Player]:
    """Agents of weak and of strong scaling, and those of one shard in the first process."""
    kinds = {condition.split()[0] for condition in settings.conditions}
    count, index = settings.shards, processes.index
    players = {}
    if "weak" in kinds:
        players["weak all"] = Player(processes, index, WEAK_TASKS, BATCH * count)
    if "strong" in kinds:
        players["strong all"] = Player(processes, index, STRONG_TASKS // count, 4 * BATCH)
    if "weak" in kinds and (index == 0 or "weak independent" in settings.conditions):
        players["weak one"] = Player(ONE_SHARD, index, WEAK_TASKS, BATCH)
    if "strong" in kinds and index == 0:
        players["strong one"] = Player(ONE_SHARD, index, STRONG_TASKS, 4 * BATCH)
    return players


def _measured(
    condition: str, players: dict[str, Player], processes: Shards, barrier: Barrier
) -> dict[str, Any]:
    kind, part = condition.split()
    is_pinned = part == "pinned"
    if is_pinned:
        _pin(processes.index)
    barrier.wait()
    if part != "one":
        player = players[f"{kind} one" if part == "independent" else f"{kind} all"]
        found = player.measure(processes, is_weak=kind == "weak")
    elif processes.index == 0:
        found = players[condition].measure(ONE_SHARD, is_weak=kind == "weak")
    else:
        found = {}
    barrier.wait()
    return found


def _pin(index: int) -> None:
    cpus = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cpus[index % len(cpus)]})


def _pairs(index: int, count: int, barrier: Barrier) -> dict[str, Any]:
    """How much slower products are in the first process while another one computes some."""
    _pin(index)
    alone, slowdowns = 0.0, []
    for other in range(count):
        barrier.wait()
        begin = time.perf_counter()
        if index in (0, other):
            for _ in range(WORKS):
                shard_scaling.products()
        seconds = time.perf_counter() - begin
        barrier.wait()
        alone = alone or seconds
        slowdowns.append(seconds / alone)
    return {"neighbours": slowdowns[1:]} if index == 0 else {}


def _write(file: Any, row: dict[str, Any]) -> None:
    file.write(json.dumps(row) + "\n")
    file.flush()


def _repetitions(directory: Path, shards: int) -> Iterator[list[dict[str, Any]]]:
    """The rows of all processes, as far as all of them have written them."""
    files = [directory / f"{index}.jsonl" for index in range(shards)]
    texts = [file.read_text() if file.exists() else "" for file in files]
    found = [[json.loads(line) for line in text.splitlines()] for text in texts]
    shortest = min(len(lines) for lines in found)
    yield from (lines[:shortest] for lines in found)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--shards", type=int, default=16)
    parser.add_argument("--conditions", nargs="+", choices=CONDITIONS, default=list(CONDITIONS))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=140.0)
    parser.add_argument("--no-pairs", action="store_true", help="do not compare pairs of CPUs")
    parser.add_argument("--commit", help="of the code, where there is no checkout")
    return parser


def main() -> None:
    """Run all repetitions, print the efficiencies and write the file."""
    words = _parser().parse_args()
    os.environ["CUDA_VISIBLE_DEVICES"] = ""  # the shards use CPUs, and wait for no GPU
    begin, stolen, described = time.monotonic(), stolen_seconds(), cpus()
    conditions = tuple(name for name in CONDITIONS if name in words.conditions)
    context = multiprocessing.get_context("spawn")
    barrier, end = context.Barrier(words.shards), context.Value("b", 0)
    deadline = begin + words.seconds
    settings = Settings(words.shards, conditions, words.repeats, deadline, not words.no_pairs)
    with tempfile.TemporaryDirectory() as directory, meeting_address(words.shards) as address:
        paths = [str(Path(directory) / f"{index}.jsonl") for index in range(words.shards)]
        processes = [
            context.Process(
                target=run_process, args=(settings, address, i, path, barrier, end), daemon=True
            )
            for i, path in enumerate(paths)
        ]
        for process in processes:
            process.start()
        join_all(processes, "all repetitions", max(1.0, deadline + 10 - time.monotonic()))
        files = list(_repetitions(Path(directory), words.shards))
    rows = together(files)
    found = efficiencies(rows, words.shards)
    result = {
        "provenance": provenance(words.commit),
        "machine": described | {"stolen_seconds": stolen_seconds() - stolen},
        "shards": words.shards,
        "goal": GOAL,
        "neighbours": next((row["neighbours"] for row in files[0] if "neighbours" in row), []),
        "efficiencies": found,
        "equal_load": equal_load(rows),
        "rows": rows,
    }
    words.json.write_text(json.dumps(result, indent=2) + "\n")
    _report(result)
    print(f"all: {time.monotonic() - begin:.0f} s")


def _report(result: dict[str, Any]) -> None:
    print(json.dumps(result["machine"]))
    print("products beside another CPU:", [round(x, 2) for x in result["neighbours"]])
    for row in result["rows"]:
        seconds = {name: round(row[name], 4) for name in NAMES if name in row}
        others = {name: round(x, 3) for name, x in row.items() if name.startswith("fit_")}
        print(row["repetition"], row["condition"], seconds, others)
    for condition, efficiency in result["efficiencies"].items():
        words = ", ".join(f"{name} {value:.2f}" for name, value in efficiency.items())
        print(f"{condition}, {result['shards']} shards: efficiency of {words}")
    for condition, efficiency in result["equal_load"].items():
        words = ", ".join(f"{name} {value:.2f}" for name, value in efficiency.items())
        print(f"{condition} relative to independent agents: efficiency of {words}")


if __name__ == "__main__":
    main()
