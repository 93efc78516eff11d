"""What several tests of runs do."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path


def kill_midway(script: str, directory: Path) -> None:
    """Run a script that fills `directory`, and kill it without warning after more than ten rows."""
    process = subprocess.Popen([sys.executable, "-c", script])
    rows = directory / "rows.csv"
    deadline = time.monotonic() + 60
    while not (rows.exists() and rows.read_bytes().count(b"\n") > 10):
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
