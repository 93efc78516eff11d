"""Scripts that are killed without warning, and what they leave behind."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from filelock import FileLock, Timeout

from gfucb.runs import RunConfig

# Long enough for a loaded machine to start Python and torch several times.
PATIENCE = 300


def wait_until(condition: Callable[[], bool], what: str) -> None:
    """Poll a condition; fail if it does not become true in a long time."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, f"gave up waiting until {what}"
        time.sleep(0.02)


def kill_when(arguments: list[str], condition: Callable[[], bool], what: str) -> None:
    """Run Python with `arguments` and kill it with SIGKILL as soon as the condition holds."""
    process = subprocess.Popen([sys.executable, *arguments])

    def holds() -> bool:
        assert process.poll() is None, f"ended before {what}"
        return condition()

    try:
        wait_until(holds, what)
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()


def run_and_kill(config: RunConfig, directory: Path) -> None:
    """Run a config in a process of its own, and kill it after more than ten rows."""
    script = (
        "import torch; torch.set_num_threads(1)\n"
        "from gfucb.runs import *\n"
        "from pathlib import Path\n"
        f"config = {config!r}\n"
        f"for row in run(config, Path({str(directory)!r})): pass\n"
    )
    kill_when(["-c", script], lambda: num_rows(directory) > 10, "there are ten rows")


def num_rows(directory: Path) -> int:
    path = directory / "rows.csv"
    return max(0, path.read_bytes().count(b"\n") - 1) if path.exists() else 0


def is_locked(directory: Path) -> bool:
    """Whether a process holds the lock of a run directory."""
    try:
        with FileLock(directory / ".lock", blocking=False):
            return False
    except Timeout:
        return True
