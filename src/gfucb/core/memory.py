"""Memory: errors of allocation as sentences that say what to do, and freed memory."""

from __future__ import annotations

import ctypes
import os
import platform
import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache

import numpy as np

from gfucb.core.errors import NotEnoughMemoryError

# On a CPU torch raises a plain RuntimeError.
ALLOCATION = re.compile(
    "allocate memory|not enough memory|out of memory|size calculation overflowed|"
    "multiplication overflow",
    re.IGNORECASE,
)
# glibc adapts to blocks of at most 32 MiB.
ADAPTED_BLOCK = 24 * 2**20
# Parameters of glibc's mallopt, what it may keep, and the largest block that it takes from there.
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
KEPT_BYTES, KEPT_BLOCK = 2**28, 2**25


@cache
def keep_freed_memory() -> None:
    """Let glibc keep freed memory for the next tensors; other C libraries are not affected.

    By default it returns large blocks to the operating system, which clears every page again for
    the tensors of the next step: up to two thirds of the time of operations on large tensors. Its
    thresholds follow the largest block that was freed so far, unless the user has set them. Up to
    twice that size stays with the process.
    """
    np.empty(ADAPTED_BLOCK, dtype=np.uint8)  # freed at once; its pages are never used


@cache
def keep_more_freed_memory() -> None:
    """`keep_freed_memory` for a process of which many run on one machine: up to 256 MiB.

    Pages of all processes are given out and taken back by one operating system, so that each waits
    for the others.
    """
    is_set = any(name.startswith("MALLOC_") for name in os.environ)
    if platform.libc_ver()[0] != "glibc" or is_set:
        return
    glibc = ctypes.CDLL(None)
    glibc.mallopt(M_TRIM_THRESHOLD, KEPT_BYTES)
    glibc.mallopt(M_MMAP_THRESHOLD, KEPT_BLOCK)


@contextmanager
def memory_for(what: str) -> Iterator[None]:
    """Say in a sentence that arrays do not fit into memory; `what` they are for, and the cure.

    Raises:
        NotEnoughMemoryError: instead of an error of numpy or torch.
    """
    try:
        yield
    except NotEnoughMemoryError:
        raise
    except (MemoryError, RuntimeError) as error:
        if not isinstance(error, MemoryError) and not ALLOCATION.search(str(error)):
            raise
        raise NotEnoughMemoryError(f"there is not enough memory. {what} ({error})") from error


def memory_of_tasks(num_tasks: int) -> AbstractContextManager[None]:
    """`memory_for` the tensors of an agent: the message has the number of tasks."""
    return memory_for(
        f"An agent needs some for each of its tasks, here {num_tasks}: build it for those that "
        "exist, or divide them among several agents, or decide about fewer rows in one call"
    )


# A decorator of functions that make environments, or their rounds.
memory_of_environment = memory_for(
    "An environment needs some for each combination of task, stage, state and action: choose "
    "smaller numbers of them"
)
