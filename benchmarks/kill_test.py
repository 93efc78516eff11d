"""Kill a serving process at random moments: nothing acknowledged is lost or counted twice.

    python benchmarks/kill_test.py --kills 100 --json benchmarks/kill_test.json

A client works through a list of operations: it decides, rewards late and partly, adds and retires
tasks, deactivates decisions. It stores an acknowledgement of each operation, synced to the disk,
when the agent has returned from it. The process of client and agent is killed with SIGKILL after a
random time, also while it opens the log and while it fits; the next process continues with the
first operation that is not acknowledged. At the end

* every acknowledged decision and reward is in the log, and every reward was learned once;
* with inline fits the state of the agent is that of an uninterrupted run, bit for bit;
* with fits in the background it is that of an agent rebuilt from the log alone, bit for bit.

Processes are forked, so this needs a POSIX system.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gfucb import Agent, DecisionLog
from gfucb.core.checkpoint import read_state, write_state
from gfucb.core.log_records import RowStatus
from gfucb.core.random import random_stream
from gfucb.runs.provenance import current_provenance
from gfucb.runs.text_files import write_json
from gfucb.serving.row_ids import RowId

ACTIONS, COLUMNS = 4, 3
# A reward comes so many decisions after its own.
DELAY = 3
# A kill comes at most so many seconds after the acknowledgement of a random operation.
LONGEST_DELAY = 0.02
# This share of processes is killed when it starts, while it opens the log.
KILLED_EARLY, LONGEST_START = 0.2, 0.1
# The last kill comes after at most this share of all operations.
LAST_KILL = 0.9


@dataclass(frozen=True)
class Operation:
    """One call of the client; `index` is that of a round."""

    kind: str
    index: int


def operations(rounds: int) -> Iterator[Operation]:
    """What the client does, always the same."""
    for index in range(rounds):
        yield Operation("decide", index)
        if index % 25 == 24:
            yield Operation("add", index)
        if index % 40 == 39:
            yield Operation("retire", index)
        if index >= DELAY:
            yield from _feedback(index - DELAY)
    for index in range(max(0, rounds - DELAY), rounds):
        yield from _feedback(index)


def _feedback(index: int) -> Iterator[Operation]:
    if index % 11 == 5:
        yield Operation("deactivate", index)
    elif index % 4 == 1:  # the second row first
        yield Operation("observe second", index)
        yield Operation("observe all", index)
    else:
        yield Operation("observe all", index)


class Client:
    """Performs the operations that are not acknowledged yet."""

    def __init__(self, directory: Path, agent: Agent, report: Callable[[], object]) -> None:
        self.agent, self._report = agent, report
        self.done = acknowledgements(directory)
        self._file = open(directory / "acknowledged", "ab")

    def run(self, rounds: int) -> None:
        """All operations that are left."""
        for number, operation in enumerate(operations(rounds)):
            if number >= len(self.done):
                self._acknowledge(self._perform(operation))

    def _acknowledge(self, result: dict[str, Any]) -> None:
        self._file.write(json.dumps(result).encode() + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())
        self.done.append(result)
        self._report()

    def _perform(self, operation: Operation) -> dict[str, Any]:
        index, agent = operation.index, self.agent
        if operation.kind == "add":
            if f"store {index}" not in agent.tasks:  # the kill may have come after the call
                agent.add_task(f"store {index}")
        elif operation.kind == "retire":
            if agent.tasks[0] == f"store {(index // 40) - 1}":
                agent.retire_task(agent.tasks[0])
        elif operation.kind == "decide":
            active = agent.tasks[-3:] or ("store 0", "store 1")
            tasks = [active[index % len(active)], active[(index + 1) % len(active)]]
            decision = agent.decide(candidates(index), tasks=tasks)
            rewards = decision.inputs.sum(1).sin().tolist()
            return {"decide": index, "ids": list(decision.ids), "rewards": rewards}
        else:
            made = next(each for each in self.done if each.get("decide") == index)
            rows = slice(1, 2) if operation.kind == "observe second" else slice(None)
            ids, rewards = made["ids"][rows], made["rewards"][rows]
            if operation.kind == "deactivate":
                agent.deactivate(ids)
                return {"deactivated": ids}
            agent.observe(ids, rewards)
            return {"rewarded": dict(zip(ids, rewards, strict=True))}
        return {operation.kind: index}


def candidates(index: int) -> Tensor:
    """Those of a round."""
    draws = random_stream(0, "kill test", index)
    return torch.rand(2, ACTIONS, COLUMNS, generator=draws, dtype=torch.float64)


def acknowledgements(directory: Path) -> list[dict[str, Any]]:
    """All complete ones; a kill may have cut the last line, which is then removed."""
    path = directory / "acknowledged"
    content = path.read_bytes() if path.exists() else b""
    complete = content[: content.rfind(b"\n") + 1]
    if complete != content:
        path.write_bytes(complete)
    return [json.loads(line) for line in complete.splitlines()]


def serve(directory: Path, rounds: int, refit: Any, report: Callable[[], object]) -> None:
    """The process that is killed: open the log, continue, write the final state."""
    agent = Agent(log=directory / "log", refit=refit, refit_growth=1.2, seed=0)
    Client(directory, agent, report).run(rounds)
    agent.close()
    write_state(directory / "final", agent.state(), {})


@dataclass(frozen=True)
class Moment:
    """When to kill: so many seconds after so many operations; None is at the start."""

    operations: int | None
    seconds: float


def kill_moments(kills: int, num_operations: int, seed: int) -> list[Moment]:
    """Random moments of a run, in order."""
    draws = random.Random(seed)
    last = int(LAST_KILL * num_operations)
    counts = sorted(draws.randint(1, last) for _ in range(kills))
    return [
        Moment(None, draws.uniform(0, LONGEST_START))
        if draws.random() < KILLED_EARLY
        else Moment(count, draws.uniform(0, LONGEST_DELAY))
        for count in counts
    ]


def in_process(directory: Path, rounds: int, refit: str, kill: Moment | None) -> bool:
    """Serve in a process of its own, and kill it; whether it has ended before."""
    reader, writer = os.pipe()
    num_done = len(acknowledgements(directory))
    child = os.fork()
    if child == 0:
        status = 1
        try:
            serve(directory, rounds, refit, lambda: os.write(writer, b"."))
            status = 0
        finally:
            os._exit(status)
    os.close(writer)
    try:
        while kill is not None and kill.operations is not None and num_done < kill.operations:
            if not (reported := os.read(reader, 1)):
                break
            num_done += len(reported)
        if kill is not None:
            time.sleep(kill.seconds)
            os.kill(child, signal.SIGKILL)
        while os.read(reader, 4096):  # so that the process can go on reporting
            pass
        _, status = os.waitpid(child, 0)
    finally:
        os.close(reader)
    if os.WIFSIGNALED(status):
        return False
    if os.waitstatus_to_exitcode(status) != 0:
        raise SystemExit(f"the process has failed in {directory}")
    return True


def violations(directory: Path) -> list[str]:
    """Acknowledged decisions and rewards that are not in the log exactly once."""
    found: list[str] = []
    expected: dict[str, float] = {}
    with DecisionLog(directory / "log", read_only=True) as log:
        for made in acknowledgements(directory):
            for text in made.get("ids", []):
                row = RowId.of(text)
                if log.decision(row.decision) is None:
                    found.append(f"{text} is lost")
            expected |= made.get("rewarded", {})
        for text, reward in expected.items():
            row = RowId.of(text)
            status = log.row_states(row.decision)[row.row or 0]
            if status != (RowStatus.REWARDED, reward):
                found.append(f"the reward of {text} is {status}")
    samples = len(read_state(directory / "final")[0]["data.targets"])
    if samples != len(expected):
        found.append(f"{samples} rewards were learned, {len(expected)} were acknowledged")
    return found


def same_state(one: Path, other: Path) -> bool:
    """Whether two final states are equal bit for bit."""
    first, second = read_state(one)[0], read_state(other)[0]
    return first.keys() == second.keys() and all(torch.equal(first[n], second[n]) for n in first)


def measure(directory: Path, kills: int, rounds: int, refit: str, seed: int) -> dict[str, Any]:
    """Kill, continue, and compare; the result as a record."""
    killed, reference = directory / f"killed {refit}", directory / f"reference {refit}"
    for each in (killed, reference):
        each.mkdir(parents=True)
    num_operations = sum(1 for _ in operations(rounds))
    moments = kill_moments(kills, num_operations, seed)
    delivered = sum(not in_process(killed, rounds, refit, moment) for moment in moments)
    in_process(killed, rounds, refit, None)
    if refit == "inline":
        in_process(reference, rounds, refit, None)
    else:
        shutil.copy(killed / "log", reference / "log")
        shutil.copy(killed / "acknowledged", reference / "acknowledged")
        in_process(reference, rounds, "manual", None)
    return {
        "refit": refit,
        "kills": delivered,
        "operations": num_operations,
        "fits": int(read_state(killed / "final")[0]["counters"][0]),
        "violations": violations(killed),
        "same_state": same_state(killed / "final", reference / "final"),
    }


def main() -> None:
    """Run the test for all ways to fit and print the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=100, help="for each way to fit")
    parser.add_argument("--rounds", type=int, default=None, help="decisions; default 6 per kill")
    parser.add_argument("--refit", nargs="*", default=["inline", "background"])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, default=None, help="also write the results here")
    choices = parser.parse_args()
    torch.set_num_threads(1)
    rounds = 6 * choices.kills if choices.rounds is None else choices.rounds
    with tempfile.TemporaryDirectory() as directory:
        results = [
            measure(Path(directory), choices.kills, rounds, refit, choices.seed)
            for refit in choices.refit
        ]
    content = {"runs": results, "provenance": current_provenance()}
    print(json.dumps(content, indent=2))
    if choices.json is not None:
        write_json(choices.json, content)
    if any(r["violations"] or not r["same_state"] or r["kills"] < choices.kills for r in results):
        raise SystemExit("the test has failed, or the run was too short for all kills")


if __name__ == "__main__":
    main()
