"""Jobs and worker processes: skipped, continued, interrupted, killed."""

import concurrent.futures
import os
import time
from functools import partial
from pathlib import Path

import pytest
import torch
from killing import is_locked, kill_when, num_rows, wait_until

from gfucb.core.errors import FailedJobsError, InvalidInputError, RunDirectoryError
from gfucb.runs import BanditAgentConfig, Comparison, ImageBanditConfig, pool, run, run_comparison
from gfucb.runs.jobs import Job, Progress, run_jobs
from gfucb.runs.pool import one_thread, run_in_processes

HERE = Path(__file__).parent
COMPARISON = Comparison(
    ImageBanditConfig(num_tasks=3, num_actions=4),
    (BanditAgentConfig(name="gfucb", fit_steps=20), BanditAgentConfig(name="uniform")),
    seeds=(0, 1),
    num_rounds=12,
)


def square(number: int) -> list:
    return [{"square": number**2}]


def squares(*numbers: int) -> list[Job]:
    return [Job(str(n), partial(square, n), relative_cost=n) for n in numbers]


def sleep_forever(directory: Path) -> list:
    """Hold the lock of the job until this process is killed."""
    (directory / f"pid-{os.getpid()}").touch()
    while True:
        time.sleep(1)


def fail(number: int) -> int:
    if number < 0:
        raise ValueError(f"{number} is negative")
    return number


def test_jobs_with_a_large_cost_are_computed_first_and_finished_ones_are_skipped(tmp_path):
    ended: list[str] = []
    progress = Progress(lambda job: ended.append(job.name))
    assert run_jobs(squares(1, 3, 2), tmp_path, progress=progress) == []
    assert ended == ["3", "2", "1"]
    run_jobs(squares(1, 2, 3, 4), tmp_path, progress=progress)
    assert ended == ["3", "2", "1", "4"]


def test_a_job_under_other_settings_is_refused_before_anything_is_computed(tmp_path):
    run_jobs(squares(1), tmp_path)
    other = Job("1", partial(square, 1), settings={"number": 2})
    with pytest.raises(RunDirectoryError, match="number = None, not 2"):
        run_jobs([*squares(5), other], tmp_path)
    assert not (tmp_path / "5").exists()


def test_a_locked_job_is_left_to_the_other_process_and_named(tmp_path):
    (job,) = squares(1)
    other = job.directory(tmp_path).write(job.work())
    next(other)
    assert [locked.name for locked in run_jobs(squares(1, 2), tmp_path)] == ["1"]
    assert (tmp_path / "2" / "rows.csv").exists()
    other.close()
    assert run_jobs(squares(1, 2), tmp_path) == []


def test_processes_must_be_positive(tmp_path):
    with pytest.raises(InvalidInputError, match="processes must be at least 1, got 0"):
        run_jobs(squares(1), tmp_path, processes=0)


def test_the_number_of_threads_of_the_caller_is_restored():
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        with one_thread():
            assert torch.get_num_threads() == 1
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


@pytest.mark.slow
def test_the_error_of_a_worker_reaches_the_caller_after_earlier_results(monkeypatch):
    # As on a busy machine: all have ended when the caller looks.
    monkeypatch.setattr(pool, "wait", lambda futures, **_: concurrent.futures.wait(futures))
    results = run_in_processes(fail, [1, 2, 3, 4, 5, 6, -1], 1)
    assert [next(results)[0] for _ in range(6)] == [1, 2, 3, 4, 5, 6]
    with pytest.raises(ValueError, match="-1 is negative"):
        list(results)


def test_a_worker_that_ends_is_an_error_with_its_cures():
    with pytest.raises(FailedJobsError, match=r"lack of memory, .* a script and not under"):
        list(run_in_processes(os._exit, [3], 1))


def test_workers_have_the_environment_variables_of_the_caller_at_the_call(monkeypatch):
    """Also those that changed after the server of the workers has started."""
    for value in ("first", "second"):
        monkeypatch.setenv("GFUCB_TEST", value)
        assert list(run_in_processes(os.getenv, ["GFUCB_TEST"], 1)) == [("GFUCB_TEST", value)]
    monkeypatch.delenv("GFUCB_TEST")
    assert list(run_in_processes(os.getenv, ["GFUCB_TEST"], 1)) == [("GFUCB_TEST", None)]


@pytest.mark.slow
def test_a_worker_exits_when_the_caller_stops(tmp_path):
    results = run_in_processes(
        sleep_forever, [tmp_path, tmp_path], 1, poll=lambda: _stop_when_one_runs(tmp_path)
    )
    with pytest.raises(KeyboardInterrupt):
        next(results)  # returns although the worker would sleep for ever


def _stop_when_one_runs(directory: Path) -> None:
    if list(directory.glob("pid-*")):
        raise KeyboardInterrupt


def run_sleeping_jobs(directory: str) -> None:
    """Two workers hold the locks of two jobs; the main process of a script calls this."""
    compute = partial(sleep_forever, Path(directory))
    run_jobs([Job(name, compute) for name in "ab"], Path(directory), processes=2)


@pytest.mark.slow
def test_workers_exit_and_release_their_locks_when_the_parent_is_killed(tmp_path):
    script = (
        f"import sys; sys.path.insert(0, {str(HERE)!r})\n"
        f"from test_jobs import run_sleeping_jobs; run_sleeping_jobs({str(tmp_path)!r})"
    )
    jobs = [tmp_path / name for name in "ab"]

    def both_run() -> bool:
        return len(list(tmp_path.glob("pid-*"))) == 2 and all(map(is_locked, jobs))

    kill_when(["-c", script], both_run, "two workers hold locks")
    wait_until(lambda: not any(map(is_locked, jobs)), "the workers have released their locks")


@pytest.mark.slow
def test_a_comparison_whose_parent_was_killed_continues_byte_for_byte(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "from pathlib import Path\n"
        "from gfucb.runs import *\n"
        f"comparison = {COMPARISON!r}\n"
        "if __name__ == '__main__':\n"
        f"    run_comparison(comparison, Path({str(tmp_path / 'killed')!r}), processes=2)\n"
    )
    runs = [tmp_path / "killed" / name for name in COMPARISON.runs()]
    long = [path for path in runs if path.parent.name == "gfucb"]
    kill_when([str(script)], lambda: all(num_rows(p) > 2 for p in long), "both agents play")
    wait_until(lambda: not any(path.exists() and is_locked(path) for path in runs), "workers exit")
    for out in ("killed", "whole"):
        run_comparison(COMPARISON, tmp_path / out)
    for path in runs:
        whole = tmp_path / "whole" / path.relative_to(tmp_path / "killed")
        assert (path / "rows.csv").read_bytes() == (whole / "rows.csv").read_bytes()


@pytest.mark.slow
def test_a_comparison_that_another_process_writes_is_refused_at_its_end(tmp_path):
    name, config = next(iter(COMPARISON.runs().items()))
    other = run(config, tmp_path / name)
    next(other)
    with pytest.raises(RunDirectoryError, match="another process is writing 1 of the runs"):
        run_comparison(COMPARISON, tmp_path)
    other.close()
