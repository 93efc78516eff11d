"""Programs that must print the same in every process."""

import os
import subprocess
import sys

import pytest


def printed_here(program: str, capsys: pytest.CaptureFixture[str]) -> str:
    """What a program prints in this process."""
    capsys.readouterr()
    exec(compile(program, "<string>", "exec"), {"__name__": "__main__"})
    return capsys.readouterr().out


def printed_elsewhere(program: str) -> str:
    """What a program prints in a process with another seed of hashes."""
    seed = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
    return subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
