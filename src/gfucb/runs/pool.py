"""Worker processes: one thread each, and none outlives its parent.

Workers are never forks of the caller, which would inherit torch's threads in an undefined state.
On Linux they are forks of a server process (multiprocessing's fork server) that has loaded torch
and this package and computes nothing; elsewhere each worker is a new process that loads them.
Each worker holds one end of a pipe whose other end only the parent has. When the parent closes it,
or ends for any reason, even `kill -9`, the worker exits at once and the system releases its locks.
Workers take over the environment variables of the parent and import its plugins first.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager
from multiprocessing.connection import Connection
from multiprocessing.context import BaseContext
from pathlib import Path
from typing import TypeVar

import torch

from gfucb.core.errors import FailedJobsError
from gfucb.core.threads import torch_threads
from gfucb.runs.plugins import load_plugins, loaded_plugins

Item = TypeVar("Item")
Result = TypeVar("Result")

POLL_SECONDS = 0.3
WORKER_ENDED = (
    "a worker process has ended before its work: it was killed, perhaps for lack of memory, which "
    "fewer processes need less of, or the call is that of a script and not under "
    "`if __name__ == '__main__':`. Repeat the call; runs that are stored continue"
)
# What the server of workers loads: this package, and what its factories import.
PRELOADED = (
    "gfucb.runs",
    "gfucb.runs.single",
    "gfucb.runs.loop",
    "gfucb.bandits",
    "gfucb.bandits.linear_baselines",
    "gfucb.bandits.matrix_factorisation",
    "gfucb.bandits.pooled_tasks",
    "gfucb.environments",
    "gfucb.episodic",
    "gfucb.estimation",
    "gfucb.exploration",
    "gfucb.models.nn.actionwise",
    "gfucb.theory.lemma_radii",
)


def run_in_processes(
    function: Callable[[Item], Result],
    items: Sequence[Item],
    processes: int,
    *,
    poll: Callable[[], None] = lambda: None,
) -> Iterator[tuple[Item, Result]]:
    """Yield each item with `function(item)`, in the order in which they end.

    Items are started in their order. `poll` is called a few times a second. If a call fails, those
    under way end first, and then the error is raised. If the caller stops, workers exit at once.
    """
    context = worker_context()
    watched, held = context.Pipe(duplex=False)
    arguments = (watched, dict(os.environ), loaded_plugins())
    pool = ProcessPoolExecutor(processes, context, _start_worker, arguments)
    try:
        futures = {pool.submit(function, item): item for item in items}
        while futures:
            ended, _ = wait(futures, timeout=POLL_SECONDS, return_when=FIRST_COMPLETED)
            # Those that ended together in the order of their start: `ended` is a set.
            for future in [future for future in futures if future in ended]:
                if future.exception() is not None:
                    pool.shutdown(cancel_futures=True)
                yield futures.pop(future), future.result()
            poll()
        pool.shutdown()
    except BrokenProcessPool as error:
        raise FailedJobsError(WORKER_ENDED) from error
    finally:
        held.close()
        pool.shutdown(cancel_futures=True)
        watched.close()


def one_thread() -> AbstractContextManager[None]:
    """Let torch use one thread: rows then do not depend on the number of cores."""
    return torch_threads(1)


def worker_context() -> BaseContext:
    """How workers start: as forks of a server on Linux, as new processes elsewhere."""
    if sys.platform != "linux":
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(PRELOADED))
    return context


def _start_worker(
    watched: Connection, environment: Mapping[str, str], plugins: Sequence[Path]
) -> None:
    threading.Thread(target=_exit_with_parent, args=(watched,), daemon=True).start()
    # The server has those of the time of its start.
    os.environ.clear()
    os.environ.update(environment)
    torch.set_num_threads(1)
    load_plugins(plugins)


def _exit_with_parent(watched: Connection) -> None:
    try:
        watched.recv_bytes()  # nothing is ever sent: this returns when the other end is closed
    except (EOFError, OSError):
        pass
    os._exit(1)
