"""The process of one shard: it carries out the commands of the process that started it."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

import torch
from torch import Tensor

from gfucb.bandits.gfucb import GFUCB
from gfucb.core.errors import InvalidInputError, SavedStateError
from gfucb.core.memory import keep_more_freed_memory
from gfucb.core.records import Decision
from gfucb.core.shards import Shards, largest, num_own_tasks
from gfucb.distributed.messages import Message, decision_of, decision_tensors, receive, send
from gfucb.distributed.process_shards import connected
from gfucb.distributed.shard import Shard
from gfucb.distributed.shard_directory import ShardDirectory

WEIGHTS = "representation."
# The answer of a shard whose caller has made a mistake.
REFUSED = "refused"


@dataclass(frozen=True)
class WorkerSettings:
    """What a worker must know.

    Attributes:
        make_agent: builds the agent of a number of tasks; it can be imported by name.
        num_tasks: of all shards.
        index: of this shard.
        count: of all shards.
        address: where the shards meet.
        directory: where the shard keeps its state; None keeps nothing.
        timeout: of an exchange, in seconds.
    """

    make_agent: Callable[[int], GFUCB]
    num_tasks: int
    index: int
    count: int
    address: str
    directory: str | None
    timeout: float


def run_worker(settings: WorkerSettings, commands: Connection, watched: Connection) -> None:
    """Answer commands until the parent closes the connection or ends, even by `kill -9`."""
    threading.Thread(target=_exit_with_parent, args=(watched,), daemon=True).start()
    torch.set_num_threads(1)
    keep_more_freed_memory()
    try:
        with connected(
            settings.address, index=settings.index, count=settings.count, timeout=settings.timeout
        ) as shards:
            worker = Worker(settings, shards)
            send(commands, Message("done", facts={"calls": worker.calls}))
            while True:
                send(commands, worker.answer(receive(commands)))
    except EOFError:
        return
    except BaseException as error:
        send(commands, Message("failed", facts={"error": f"{type(error).__name__}: {error}"}))
        os._exit(1)  # the other shards must not wait for this one


class Worker:
    """A shard and its directory.

    Attributes:
        calls: how often `observe` was called.
    """

    def __init__(self, settings: WorkerSettings, shards: Shards) -> None:
        own = num_own_tasks(settings.num_tasks, settings.index, settings.count)
        self.shard = Shard(settings.make_agent(own), shards)
        self.directory: ShardDirectory | None = None
        self.calls = 0
        if settings.directory is not None:
            self.directory = ShardDirectory(
                Path(settings.directory) / f"shard-{settings.index:05d}"
            )
            self._restore(self.directory, shards)

    def _restore(self, directory: ShardDirectory, shards: Shards) -> None:
        """Continue after the last call that all shards have."""
        found = largest(shards, -directory.checkpoints[-1], -directory.last, directory.last)
        start, self.calls, newest = int(-found[0]), int(-found[1]), int(found[2])
        # All shards have a call before the next one begins.
        if newest > self.calls + 1 or start not in directory.checkpoints:
            raise SavedStateError(
                f"files are missing in {directory.path.parent}: one shard has {newest} calls of "
                f"observe, another {self.calls}; use a backup"
            )
        directory.restore(self.shard.agent, start)
        directory.forget_after(self.calls)
        for call in range(start + 1, self.calls + 1):
            self._learn(directory.logged(call), call)

    def answer(self, message: Message) -> Message:
        """Carry out a command."""
        if message.name == "decide":
            try:
                return Message("done", decision_tensors(self._decide(message.tensors)))
            except InvalidInputError as error:  # a decision changes nothing
                return Message(REFUSED, facts={"error": str(error)})
        if message.name == "observe":
            try:  # before anything is stored
                self.shard.require_readable(message.tensors["inputs"])
            except InvalidInputError as error:
                return Message(REFUSED, facts={"error": str(error)})
            call = self.calls + 1
            if self.directory is not None:
                self.directory.log(call, message.tensors)
            self._learn(message.tensors, call)
            self.calls = call
            return Message("done", facts={"calls": call})
        if message.name == "weights":
            state = self.shard.agent.state()
            return Message("done", {n: x for n, x in state.items() if n.startswith(WEIGHTS)})
        raise ValueError(f"unknown command {message.name!r}")

    def _decide(self, tensors: Mapping[str, Tensor]) -> Decision:
        parts = (tensors[name] for name in ("candidates", "tasks", "available"))
        return self.shard.decide_readable(*parts)

    def _learn(self, tensors: Mapping[str, Tensor], call: int) -> None:
        agent = self.shard.agent
        fits = agent.learner.num_fits
        decision = {name: x for name, x in tensors.items() if name != "rewards"}
        self.shard.observe(decision_of(decision), tensors["rewards"])
        if self.directory is not None and agent.learner.num_fits > fits:
            self.directory.save(agent, call)


def _exit_with_parent(watched: Connection) -> None:
    try:
        watched.recv_bytes()  # nothing is ever sent: this returns when the other end is closed
    except (EOFError, OSError):
        pass
    os._exit(1)
