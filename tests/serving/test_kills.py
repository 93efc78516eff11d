"""A process that is killed while it decides, observes and fits loses nothing; see the benchmark."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="the benchmark forks processes")
def test_three_kills_lose_nothing(tmp_path):
    out = tmp_path / "result.json"
    words = ["--kills", "3", "--rounds", "12", "--json", str(out)]
    found = subprocess.run(
        [sys.executable, str(ROOT / "benchmarks" / "kill_test.py"), *words],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert found.returncode == 0, found.stdout + found.stderr
    for result in json.loads(out.read_text())["runs"]:
        assert result["kills"] == 3 and result["violations"] == [] and result["same_state"]
