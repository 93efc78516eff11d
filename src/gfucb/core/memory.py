"""Errors of allocation as sentences that say what to do."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from gfucb.core.errors import NotEnoughMemoryError

# On a CPU torch raises a plain RuntimeError.
ALLOCATION = re.compile(
    "allocate memory|not enough memory|out of memory|size calculation overflowed|"
    "multiplication overflow",
    re.IGNORECASE,
)


@contextmanager
def memory_of_tasks(num_tasks: int) -> Iterator[None]:
    """Name the number of tasks if the tensors of all tasks do not fit into memory.

    Raises:
        NotEnoughMemoryError: instead of an error of numpy or torch.
    """
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not isinstance(error, MemoryError) and not ALLOCATION.search(str(error)):
            raise
        raise NotEnoughMemoryError(
            f"there is not enough memory for an agent of {num_tasks} tasks; build it for the tasks "
            f"that exist, or divide them among several agents ({error})"
        ) from error
