"""The comparison with BRIEE: its log is read, and a clone of the user is run."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from benchmarks.peers import briee

MAIN = """
import argparse
import numpy as np
import gym, wandb
from gym.spaces import Box, Discrete

parser = argparse.ArgumentParser()
for name in ("horizon", "num_threads", "seed", "num_episodes"):
    parser.add_argument("--" + name, type=int)
parser.add_argument("--temp_path")
args = parser.parse_args()


class Lock(gym.Env):
    action_space = Discrete(10)
    observation_space = Box(low=0.0, high=1.0, shape=(8,), dtype=np.float)


if __name__ == "__main__":
    env = Lock()
    env.seed(args.seed), env.action_space.seed(args.seed)
    assert np.zeros(2, dtype=np.int).dtype == int and env.action_space.n == 10
    with wandb.init(project="p", config=vars(args), name="n"):
        for value in [0.1, 1, 1, 1, 1, 1, 1]:
            wandb.log({"eval": np.float64(value), "episode:": 0})
"""


@pytest.fixture
def clone(tmp_path):
    path = tmp_path / "clone"
    path.mkdir()
    (path / "main.py").write_text(MAIN)
    git = ["git", "-C", str(path), "-c", "user.name=n", "-c", "user.email=e"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "m"]):
        subprocess.run([*git, *words], check=True)
    return path


def test_a_lock_is_solved_by_five_perfect_evaluations_in_a_row():
    returns = [1, 1, 0.9, 1, 1, 1, 1, 1, 1]
    lines = [{"eval": value, "cpu_seconds": 2.0 * i, "seconds": 1.0 * i}
             for i, value in enumerate(returns)]  # fmt: skip
    rows = briee.evaluations(lines, horizon=6)
    assert [row["solved_tasks"] for row in rows] == [0] * 7 + [1]
    assert rows[-1]["episodes"] == 8 * 50 * 6 and rows[-1]["cpu_seconds"] == 14.0


def test_a_clone_is_run_beside_ours_and_only_once(clone, tmp_path, monkeypatch, capsys):
    row = {"episodes": 30, "mean_solved_after": 20, "solved_tasks": 1, "cpu_seconds": 3.0}
    monkeypatch.setattr(briee, "run_ours", lambda *settings: [row | {"seconds": 4.0}])
    words = ["--clone", str(clone), "--horizon", "2", "--tasks", "1", "--seeds", "3"]
    words += ["--out", str(tmp_path / "runs"), "--json", str(tmp_path / "briee.json")]
    briee.main(words)
    content = json.loads((tmp_path / "briee.json").read_text())
    ours, theirs = content["results"]
    assert (ours["method"], ours["mean_solved_after"]["mean"]) == ("EpisodicGFUCB, default", 20)
    assert theirs["solved"] == 1 and theirs["mean_solved_after"]["mean"] == 6 * 50 * 2
    assert theirs["cpu_seconds"]["mean"] > 0
    printed = capsys.readouterr().out
    assert "| BRIEE, its own code | 1 | 1 of 1 | 600 |" in printed
    (clone / "main.py").unlink()  # stored runs are not run again
    briee.main(words)
    assert capsys.readouterr().out == printed


def test_workers_must_divide_the_horizon():
    with pytest.raises(SystemExit):
        briee.main(["--horizon", "5", "--workers", "2"])


def test_a_program_that_takes_too_long_is_ended_with_its_workers(tmp_path):
    script = tmp_path / "worker.py"
    script.write_text(
        "import os, sys, time\n"
        "if not os.fork():\n"
        "    open(sys.argv[1], 'w').write(str(os.getpid()))\n"
        "time.sleep(60)\n"
    )
    start = time.monotonic()
    briee.run_at_most(1.0, [sys.executable, "-S", str(script), str(tmp_path / "pid")], os.environ)
    assert time.monotonic() - start < 20
    worker = int((tmp_path / "pid").read_text())
    deadline = time.monotonic() + 10
    while is_alive(worker):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    with pytest.raises(subprocess.CalledProcessError):
        briee.run_at_most(None, [sys.executable, "-S", "-c", "raise SystemExit(3)"], os.environ)


def is_alive(process):
    """Whether a process runs; one that has ended and waits for its parent does not."""
    status = Path(f"/proc/{process}/stat")
    try:
        return status.read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
