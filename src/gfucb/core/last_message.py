"""A message of a process that is ended without a chance to print one."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

# Reads until the process that started it has ended; nothing was written if it could not say so.
WATCHER = "import sys; sys.stdin.buffer.read() or sys.exit(sys.argv[1])"


@contextmanager
def printed_if_killed(text: str) -> Iterator[None]:
    """Print `text` to the standard error if this process ends before the context does.

    A library may end the process by `_exit`, and the system by a signal: no code of Python runs
    then. So another process waits for the end of this one.
    """
    watcher = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", WATCHER, text],
        stdin=subprocess.PIPE,
        start_new_session=True,  # Ctrl-C in a terminal is not for it
    )
    try:
        yield
    finally:
        watcher.communicate(b"ended")
