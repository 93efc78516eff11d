"""Processes that compute one thing together: all end if one of them fails."""

from __future__ import annotations

import math
import signal
import time
from collections.abc import Sequence
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess


def join_all(processes: Sequence[BaseProcess], what: str, seconds: float = math.inf) -> None:
    """Wait until all have ended, at most so many seconds.

    Raises:
        SystemExit: one has failed, and its error is on the standard error. The others, which would
            wait for it, are ended at once.
    """
    end = time.monotonic() + seconds
    left = list(processes)
    while left and time.monotonic() < end:
        pause = end - time.monotonic()
        wait([process.sentinel for process in left], None if math.isinf(pause) else pause)
        # Asked once: a code that comes between two questions would be lost.
        codes = [process.exitcode for process in left]
        for process, code in zip(left, codes, strict=True):
            if code:
                _end(left)
                index = processes.index(process)
                raise SystemExit(
                    f"process {index} of the {len(processes)} of {what} {_reason(code)}; "
                    "the others were ended"
                )
        left = [process for process, code in zip(left, codes, strict=True) if code is None]


def _end(processes: Sequence[BaseProcess]) -> None:
    for process in processes:
        process.kill()
    for process in processes:
        process.join()


def _reason(code: int) -> str:
    if code < 0:
        return f"was ended by {signal.Signals(-code).name}"
    return "has failed with the error above"
