"""The message of a process that is ended from outside of Python."""

import subprocess
import sys

import pytest

PROGRAM = """
import os
from gfucb.core.last_message import printed_if_killed
with printed_if_killed("repeat the command"):
    print("working", flush=True)
    {end}
"""


@pytest.mark.parametrize(
    ("end", "message"),
    [
        ("os._exit(3)", "repeat the command\n"),
        ("os.kill(os.getpid(), 9)", "repeat the command\n"),
        ("pass", ""),
        ("raise SystemExit(3)", ""),
    ],
)
def test_it_is_printed_only_if_no_code_of_python_could_run(end, message):
    # The watcher holds the standard error open: `run` returns when it has ended, too.
    command = [sys.executable, "-c", PROGRAM.format(end=end)]
    result = subprocess.run(command, capture_output=True, text=True)
    assert (result.stdout, result.stderr) == ("working\n", message)
