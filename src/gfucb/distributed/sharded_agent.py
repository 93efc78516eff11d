"""An agent whose tasks are in several processes of this machine."""

from __future__ import annotations

import logging
import multiprocessing
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path

import torch
from torch import Tensor

from gfucb.bandits.gfucb import GFUCB
from gfucb.bandits.learner_inputs import require_alike
from gfucb.core.closing import ClosedAtExit
from gfucb.core.errors import GFUCBError, InvalidInputError
from gfucb.core.logs import log
from gfucb.core.records import Decision
from gfucb.core.validation.arrays import ArrayLike
from gfucb.core.validation.bandits import validate_action_sets, validate_feedback
from gfucb.core.validation.settings import validate_count, validate_number
from gfucb.distributed.agent_directory import AgentDirectory, InputKind
from gfucb.distributed.memory_shards import meeting_address
from gfucb.distributed.messages import Message, decision_of, decision_tensors, receive, send
from gfucb.distributed.process_shards import TIMEOUT_SECONDS
from gfucb.distributed.shard import OTHER_SHARD
from gfucb.distributed.worker import REFUSED, WorkerSettings, run_worker

# A call is repeated this often if a shard dies.
REPEATS = 2
# Each is a process of this machine.
MOST_SHARDS = 1024
LOGGER = logging.getLogger(__name__)


class ShardError(GFUCBError):
    """A shard has failed, and could not be rebuilt."""


class ShardedAgent(ClosedAtExit):
    """One agent whose tasks are divided among processes: task t is in process t % num_shards.

    Each process has the data, the statistics and the heads of its tasks. The representation is the
    same in all. A fit computes the gradient of each process's tasks and adds them up, so it is the
    fit of one process to all data, up to rounding.

    >>> agent = ShardedAgent(make_agent, num_tasks=1000, num_shards=4)  # doctest: +SKIP

    With a `directory` the processes keep their data there. A process that dies is then rebuilt, and
    the call that it interrupted is repeated; a new `ShardedAgent` with the same directory continues
    where the last one ended, even if it was killed.

    Args:
        make_agent: builds the agent of a number of tasks, with a network. It is called in every
            process, so it must be importable: a function of a module, or `functools.partial` of
            `GFUCB` with its arguments.
        num_tasks: M; at least one for each process.
        num_shards: the number of processes.
        directory: where the processes keep their state; None keeps nothing.
        timeout: seconds after which an exchange between processes has failed.

    Attributes:
        calls: how many calls of `observe` were learned, also before the agent was built.
    """

    def __init__(
        self,
        make_agent: Callable[[int], GFUCB],
        *,
        num_tasks: int,
        num_shards: int,
        directory: str | Path | None = None,
        timeout: float = TIMEOUT_SECONDS,
    ) -> None:
        self.num_shards = validate_count(num_shards, "num_shards", at_most=MOST_SHARDS)
        self.num_tasks = validate_count(num_tasks, "num_tasks", at_least=num_shards)
        if not callable(make_agent):
            raise InvalidInputError(f"make_agent must be a function, got {make_agent!r}")
        self.make_agent, self.timeout = make_agent, validate_number(timeout, "timeout", above=0.0)
        self.calls = 0
        self._workers: list[tuple[BaseProcess, Connection]] = []
        self._held: Connection | None = None
        self._meeting = ExitStack()
        self._inputs: InputKind | None = None
        self._why_closed = ""
        self.directory: AgentDirectory | None = None
        if directory is not None:
            counts = {"num_tasks": num_tasks, "num_shards": num_shards}
            self.directory = AgentDirectory(Path(directory), **counts)
            self._inputs = self.directory.input_kind
        try:
            self._start()
        except BaseException:
            self.close()
            raise

    def decide(
        self,
        candidates: ArrayLike,
        tasks: ArrayLike | None = None,
        available: ArrayLike | None = None,
    ) -> Decision:
        """Choose an action in every row; the arguments of `GFUCB.decide`."""
        sets = validate_action_sets(
            candidates, tasks, available, num_tasks=self.num_tasks, device="cpu"
        )
        if self._inputs is not None:
            require_alike(sets.candidates[0], self._inputs.like())
        tensors = {"candidates": sets.candidates, "tasks": sets.tasks, "available": sets.available}
        rows = self._rows(sets.tasks)
        answers = self._repeated("decide", [self._part(tensors, own) for own in rows])
        order = torch.cat(rows).argsort()
        parts = [answer.tensors for answer in answers]
        whole = {name: torch.cat([part[name] for part in parts])[order] for name in parts[0]}
        return decision_of(whole | {"tasks": sets.tasks})

    def observe(self, decision: Decision, rewards: ArrayLike) -> None:
        """Learn from rewards [row] of a decision; if a shard dies, the call is repeated."""
        _, _, values = validate_feedback(decision, rewards, num_tasks=self.num_tasks)
        self._require_inputs(decision.inputs)
        tensors = decision_tensors(decision) | {"rewards": values}
        parts = [self._part(tensors, own) for own in self._rows(decision.tasks)]
        call = self.calls + 1
        self._repeated("observe", parts, call)
        self.calls = call
        if self._inputs is None:
            self._inputs = InputKind(tuple(decision.inputs.shape[1:]), decision.inputs.dtype)
            if self.directory is not None:
                self.directory.keep(self._inputs)

    def _require_inputs(self, inputs: Tensor) -> None:
        """Refuse inputs of another kind before any shard has stored them."""
        if self._inputs is not None:
            require_alike(inputs, self._inputs.like())
            return
        # Nothing was learned, so only the networks know which inputs they take. A decision changes
        # nothing, and is refused by all shards or by none.
        example = inputs[:1] if len(inputs) else inputs.new_zeros(1, *inputs.shape[1:])
        self.decide(example[:, None], [0])

    def weights(self) -> dict[str, Tensor]:
        """The representation as named tensors; the same in all processes."""
        return dict(self._repeated("weights", [{}] * self.num_shards)[0].tensors)

    @property
    def processes(self) -> list[BaseProcess]:
        """Those of the shards, in their order."""
        return [process for process, _ in self._workers]

    def close(self) -> None:
        """End all processes; what is in the directory stays. A closed agent refuses calls."""
        self._stop()
        self._why_closed = self._why_closed or "it was closed"
        if self.directory is not None:
            self.directory.close()

    def _stop(self) -> None:
        for _, connection in self._workers:
            connection.close()
        if self._held is not None:
            self._held.close()
        for process, _ in self._workers:
            process.join(timeout=1.0)
            if process.is_alive():
                process.kill()
                process.join()
        self._meeting.close()
        self._workers, self._held = [], None

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        watched, self._held = context.Pipe(duplex=False)
        address = self._meeting.enter_context(meeting_address(self.num_shards))
        for index in range(self.num_shards):
            ours, theirs = context.Pipe()
            settings = WorkerSettings(
                self.make_agent,
                self.num_tasks,
                index,
                self.num_shards,
                address,
                None if self.directory is None else str(self.directory.path),
                self.timeout,
            )
            process = _started(
                context.Process(target=run_worker, args=(settings, theirs, watched), daemon=True)
            )
            theirs.close()
            self._workers.append((process, ours))
        watched.close()
        self.calls = int(self._answers()[0].facts["calls"])

    def _repeated(
        self, name: str, parts: Sequence[Mapping[str, Tensor]], call: int | None = None
    ) -> list[Message]:
        """The answers of all shards; with a directory, shards that die are rebuilt."""
        if self._why_closed:
            cure = "" if self.directory is None else f"; a new one continues {self.directory.path}"
            raise ShardError(f"this agent cannot be used any more: {self._why_closed}{cure}")
        try:
            return self._answered(name, parts, call)
        except InvalidInputError:  # all shards have answered: they refuse
            raise
        except BaseException as error:
            # Answers that come later would be taken for those of the next call.
            is_known = isinstance(error, GFUCBError | OSError)
            found = type(error).__name__
            self._why_closed = str(error) if is_known else f"a call was interrupted by {found}"
            self.close()
            raise

    def _answered(
        self, name: str, parts: Sequence[Mapping[str, Tensor]], call: int | None
    ) -> list[Message]:
        for repeat in range(REPEATS + 1):
            try:
                for (_, connection), tensors in zip(self._workers, parts, strict=True):
                    send(connection, Message(name, tensors))
                return self._answers()
            except (ShardError, OSError) as error:
                self._stop()
                if self.directory is None or repeat == REPEATS:
                    raise
                text = "shards are rebuilt from %(directory)s (%(attempt)d): %(error)s"
                fields = {"directory": str(self.directory.path), "attempt": repeat + 1}
                log(LOGGER, logging.WARNING, text, **fields, error=str(error))
                self._start()
                if self.calls == call:  # all shards had kept the rewards before one died
                    return []
        raise AssertionError("unreachable")

    def _answers(self) -> list[Message]:
        """One answer of each shard; an error if one fails or ends."""
        answers: dict[int, Message] = {}
        while len(answers) < len(self._workers):
            left = [pair for index, pair in enumerate(self._workers) if index not in answers]
            ready = wait([x for process, pipe in left for x in (pipe, process.sentinel)])
            for index, (process, connection) in enumerate(self._workers):
                if index in answers:
                    continue
                if connection in ready:
                    answers[index] = self._checked(connection, index)
                elif process.sentinel in ready:
                    process.join()  # its exit code is known then
                    raise ShardError(f"shard {index} has ended with {process.exitcode}")
        found = [answers[index] for index in range(len(self._workers))]
        refusals = [str(answer.facts["error"]) for answer in found if answer.name == REFUSED]
        if len(refusals) == len(found):  # all shards are where they were
            refusals.sort(key=OTHER_SHARD.__eq__)  # first the shard that names the reason
            raise InvalidInputError(refusals[0])
        if refusals:
            raise ShardError(f"{len(refusals)} of {len(found)} shards refuse: {refusals[0]}")
        return found

    @staticmethod
    def _checked(connection: Connection, index: int) -> Message:
        try:
            answer = receive(connection)
        except EOFError as error:
            raise ShardError(f"shard {index} has ended") from error
        if answer.name == "failed":
            raise ShardError(f"shard {index}: {answer.facts['error']}")
        return answer

    def _rows(self, tasks: Tensor) -> list[Tensor]:
        """The rows of each shard."""
        shard = tasks % self.num_shards
        return [(shard == index).nonzero().squeeze(1) for index in range(self.num_shards)]

    def _part(self, tensors: Mapping[str, Tensor], rows: Tensor) -> dict[str, Tensor]:
        """The rows of one shard, with the numbers that tasks have there."""
        own = {name: tensor[rows] for name, tensor in tensors.items()}
        return own | {"tasks": own["tasks"] // self.num_shards}


def _started(process: BaseProcess) -> BaseProcess:
    """The process, which has begun."""
    try:
        process.start()
    except OSError:
        raise
    except Exception as error:  # an object that cannot be sent may refuse in any way
        raise InvalidInputError(
            "make_agent must be a function of a module, or functools.partial of GFUCB, that other "
            f"processes can import: {error}"
        ) from error
    return process
