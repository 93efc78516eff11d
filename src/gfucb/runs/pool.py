"""Worker processes: one thread each, and none outlives its parent.

Workers are spawned, not forked: a forked process would inherit torch's threads in an undefined
state. Each worker holds one end of a pipe whose other end only the parent has. When the parent
closes it, or ends for any reason, even `kill -9`, the worker exits at once and the system releases
its locks. Workers import the plugins of the parent first.
"""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TypeVar

import torch

from gfucb.runs.plugins import load_plugins, loaded_plugins

Item = TypeVar("Item")
Result = TypeVar("Result")

POLL_SECONDS = 0.3


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
    context = multiprocessing.get_context("spawn")
    watched, held = context.Pipe(duplex=False)
    pool = ProcessPoolExecutor(processes, context, _start_worker, (watched, loaded_plugins()))
    try:
        futures = {pool.submit(function, item): item for item in items}
        while futures:
            ended, _ = wait(futures, timeout=POLL_SECONDS, return_when=FIRST_COMPLETED)
            # Those that ended together in the order of their start: `ended` is a set.
            for future in [future for future in futures if future in ended]:
                yield futures.pop(future), future.result()
            poll()
        pool.shutdown()
    except Exception:
        pool.shutdown(cancel_futures=True)
        raise
    finally:
        held.close()
        pool.shutdown(cancel_futures=True)
        watched.close()


@contextmanager
def one_thread() -> Iterator[None]:
    """Let torch use one thread: rows then do not depend on the number of cores."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _start_worker(watched: Connection, plugins: Sequence[Path]) -> None:
    threading.Thread(target=_exit_with_parent, args=(watched,), daemon=True).start()
    torch.set_num_threads(1)
    load_plugins(plugins)


def _exit_with_parent(watched: Connection) -> None:
    try:
        watched.recv_bytes()  # nothing is ever sent: this returns when the other end is closed
    except (EOFError, OSError):
        pass
    os._exit(1)
