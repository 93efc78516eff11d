"""Jobs as tasks of Ray, on the machines of a cluster.

Each job is a task of one CPU, or of one GPU, that streams its rows and checkpoints; this process
writes them. Ray finds a machine for the task and says when it dies; the job then continues from
its last checkpoint on another worker.
"""

from __future__ import annotations

import logging
import os
import re
import socket
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ray
import torch
from ray.exceptions import (
    LocalRayletDiedError,
    NodeDiedError,
    ObjectLostError,
    OutOfMemoryError,
    RayError,
    WorkerCrashedError,
)

from gfucb.core.errors import GFUCBError, InvalidInputError
from gfucb.core.last_message import printed_if_killed
from gfucb.runs.jobs import Job, Outcome, Progress, rarely
from gfucb.runs.plugins import plugin_sources
from gfucb.runs.pool import POLL_SECONDS
from gfucb.runs.provenance import current_provenance
from gfucb.runs.ray_task import Context, Files, compute
from gfucb.runs.remote_runs import Failed, Finished, RunReceiver
from gfucb.runs.store import RunLockedError

# The worker or its machine is gone; the job is not to blame.
DEATHS = (
    WorkerCrashedError,
    NodeDiedError,
    LocalRayletDiedError,
    ObjectLostError,
    OutOfMemoryError,
)
# A job whose workers die this often without a new checkpoint in between has failed.
MOST_DEATHS = 4
# Of a Ray that is started here. Messages are small; what does not fit is written to the disk.
OBJECT_STORE_BYTES = 200 * 2**20
CONNECT_SECONDS = 10.0
ADDRESS = re.compile(r"[^/\s]+:\d{1,5}")
USAGE_STATISTICS = "RAY_USAGE_STATS_ENABLED"
# If the raylet of this machine or the head of the cluster dies, Ray ends this process at once.
ENDED_BY_RAY = (
    "gfucb: this process was ended before its jobs were. If nobody stopped it, a system process "
    "of Ray has died, for example because memory ran out. What was computed is stored: repeat the "
    "command to resume"
)


@dataclass(frozen=True)
class RayEngine:
    """Computes jobs on Ray.

    Args:
        address: of a running cluster, HOST:PORT or auto; by default Ray is started on this machine
            and stopped afterwards. If this process is connected to a cluster already, that one is
            used and stays connected.
        processes: how many jobs at a time; by default as many as the cluster has CPUs, or GPUs.
        data_dir: the data directory, whose files are sent to workers of a cluster.
        report_seconds: rows and checkpoints are sent this often.
    """

    address: str | None = None
    processes: int | None = None
    data_dir: str | None = None
    report_seconds: float = 0.5

    def __post_init__(self) -> None:
        if self.processes is not None and self.processes < 1:
            raise InvalidInputError(f"processes must be at least 1, got {self.processes}")
        if self.address not in (None, "auto") and not ADDRESS.fullmatch(self.address):
            raise InvalidInputError(
                f"address must be HOST:PORT or auto, got {self.address!r}; run this command on a "
                "machine of the cluster"
            )

    def outcomes(
        self, jobs: Sequence[Job], parent: Path, device: str, progress: Progress
    ) -> Generator[tuple[Job, Outcome]]:
        """Compute the jobs; see `gfucb.runs.jobs.Engine`."""
        if not jobs:
            return
        kind = torch.device(device)
        if kind.index is not None:
            raise InvalidInputError(f"Ray chooses the GPU: device must be {kind.type}")
        with printed_if_killed(ENDED_BY_RAY), self._connected() as is_own:
            resource = "CPU" if kind.type == "cpu" else "GPU"
            if not ray.cluster_resources().get(resource):
                raise InvalidInputError(
                    f"the jobs need a {resource} each (device {device!r}), but no machine of this "
                    "Ray cluster has one"
                )
            context = ray.put(self._context(device, is_own))
            sweep = _Sweep(context, parent, resource, self.processes, progress)
            try:
                yield from sweep.outcomes(jobs)
            finally:
                sweep.stop()

    @contextmanager
    def _connected(self) -> Iterator[bool]:
        """Connect to the cluster or start one; yields whether it was started here."""
        if ray.is_initialized():
            current = ray.get_runtime_context().gcs_address
            if self.address not in (None, "auto", current):
                raise InvalidInputError(
                    f"this process is connected to Ray at {current}; leave out the address "
                    f"{self.address}, or call ray.shutdown() first"
                )
            yield False
            return
        is_own = self.address is None
        try:
            self._connect()
            yield is_own
        finally:
            # Stops a Ray that was started here; a cluster that was there before goes on.
            ray.shutdown()

    def _connect(self) -> None:
        quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
        if self.address is None:
            with _environment_variable(USAGE_STATISTICS, "0"):
                ray.init(
                    address="local",
                    num_cpus=self.processes,
                    include_dashboard=False,
                    object_store_memory=OBJECT_STORE_BYTES,
                    **quiet,
                )
            return
        try:
            _require_listener(self.address)
            ray.init(address=self.address, **quiet)
        except (OSError, RuntimeError, ValueError) as error:
            raise InvalidInputError(
                f"there is no Ray cluster at {self.address} that this machine is part of: "
                f"{error}; start one with `ray start --head`"
            ) from error

    def _context(self, device: str, is_own: bool) -> Context:
        code = current_provenance()
        # Workers of a Ray started here see the same disk.
        files = None if is_own or self.data_dir is None else Files.read(self.data_dir)
        return Context(
            code["gfucb"],
            code["commit"],
            plugin_sources(),
            device,
            self.report_seconds,
            self.data_dir or "",
            () if files is None else (ray.put(files),),
        )


@dataclass
class _Run:
    """A job under way: where its messages go, and how often its workers have died."""

    receiver: RunReceiver
    deaths: int = 0


@dataclass
class _Sweep:
    """The tasks of a sweep."""

    context: ray.ObjectRef[Context]
    parent: Path
    resource: str
    processes: int | None
    progress: Progress
    running: dict[Any, _Run] = field(default_factory=dict)

    def outcomes(self, jobs: Sequence[Job]) -> Generator[tuple[Job, Outcome]]:
        """Keep tasks running until all jobs have ended."""
        waiting, poll = deque(jobs), rarely(self.progress.rows_written)
        while waiting or self.running:
            while waiting and len(self.running) < self._most_tasks():
                job = waiting.popleft()
                if outcome := self._start(job):
                    yield job, outcome
            for stream in self._ready():
                run = self.running[stream]
                if outcome := self._advance(stream):
                    yield run.receiver.job, outcome
            poll()

    def stop(self) -> None:
        """Cancel what runs and release all locks."""
        for stream in list(self.running):
            ray.cancel(stream, force=True)
            self._forget(stream)

    def _most_tasks(self) -> int:
        if self.processes is not None:
            return self.processes
        # Twice what runs at a time: machines that join find tasks, and a cluster that grows on
        # demand sees the demand.
        return 2 * max(1, int(ray.cluster_resources().get(self.resource, 0)))

    def _ready(self) -> list[Any]:
        """Tasks with a message, one at a time; none after a while without any."""
        if not self.running:
            return []
        ready, _ = ray.wait(list(self.running), timeout=POLL_SECONDS)
        return ready

    def _start(self, job: Job) -> Outcome | None:
        """Submit a job; an outcome if there is nothing to compute."""
        try:
            run = _Run(RunReceiver(job, self.parent))
        except RunLockedError:
            return Outcome("locked")
        try:
            if not run.receiver.is_finished():
                self._submit(run, run.receiver.checkpoint())
                return None
            outcome = Outcome("finished")
        except (GFUCBError, TypeError) as error:
            outcome = Outcome("failed", f"{type(error).__name__}: {error}")
        run.receiver.close()
        return outcome

    def _submit(self, run: _Run, saved: bytes | None) -> None:
        options: dict[str, Any] = {
            "num_cpus": 1,
            "num_gpus": 1 if self.resource == "GPU" else 0,
            # Ray's own retry would compute the job from its start.
            "max_retries": 0,
            "num_returns": "streaming",
            # A worker waits when this many messages were not read: memory stays bounded.
            "_generator_backpressure_num_objects": 4,
        }
        task: Any = ray.remote(**options)(compute)
        job = ray.put(run.receiver.job)
        self.running[task.remote(self.context, [job], saved)] = run

    def _advance(self, stream: Any) -> Outcome | None:
        """Write the next message of a task; an outcome if it was the last."""
        run = self.running[stream]
        try:
            message = ray.get(next(stream))
            run.receiver.receive(message)
        except DEATHS as error:
            return self._resubmit(stream, error)
        except (RayError, GFUCBError, StopIteration) as error:
            # The text of Ray is a traceback, whose last line is the error.
            lines = str(error).strip().splitlines() or [""]
            outcome = Outcome("failed", f"{type(error).__name__}: {lines[-1]}")
        else:
            if isinstance(message, Failed):
                outcome = Outcome("failed", message.error)
            elif isinstance(message, Finished):
                outcome = Outcome("finished")
            else:
                return None
        self._forget(stream)
        return outcome

    def _resubmit(self, stream: Any, error: RayError) -> Outcome | None:
        """Continue a job whose worker has died, unless this happens again and again."""
        run = self.running.pop(stream)
        before = run.receiver.num_saved_rows
        saved = run.receiver.checkpoint()
        after = run.receiver.num_saved_rows
        run.deaths = 1 if after > before else run.deaths + 1
        if run.deaths == MOST_DEATHS:
            run.receiver.close()
            return Outcome("failed", f"{run.deaths} workers died: {type(error).__name__}: {error}")
        text = f"its worker died ({type(error).__name__}); another one continues after row {after}"
        self.progress.problem(run.receiver.job, text)
        self._submit(run, saved)
        return None

    def _forget(self, stream: Any) -> None:
        self.running.pop(stream).receiver.close()


def _require_listener(address: str) -> None:
    """Raise `OSError` where Ray would wait for minutes."""
    if address != "auto":
        host, _, port = address.rpartition(":")
        socket.create_connection((host, int(port)), CONNECT_SECONDS).close()


@contextmanager
def _environment_variable(name: str, value: str) -> Iterator[None]:
    """Set a variable unless it is set."""
    if name in os.environ:
        yield
        return
    os.environ[name] = value
    try:
        yield
    finally:
        del os.environ[name]
