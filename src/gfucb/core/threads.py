"""How many threads torch uses for one operation."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def torch_threads(count: int) -> Iterator[None]:
    """Let operations of this block use so many threads: other numbers may round differently.

    Threads that first use torch meanwhile get this number too.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def limit_this_thread(count: int) -> None:
    """Let operations of the calling thread use so many threads, until it ends.

    `torch.set_num_threads` is a setting of the calling thread and of all that are started later;
    for those another thread restores it.
    """
    before = torch.get_num_threads()  # before it is set: the first use of torch in a thread sets it
    torch.set_num_threads(count)
    restoring = threading.Thread(target=torch.set_num_threads, args=(before,))
    restoring.start()
    restoring.join()
