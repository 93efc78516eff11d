"""Long jobs of Figure 1: they continue, and count as far as they are computed."""

from dataclasses import asdict, replace
from pathlib import Path

import pandas as pd
import pytest

from gfucb.core.checkpoint import write_state
from gfucb.core.errors import RunDirectoryError, SavedStateError
from gfucb.paper import Job, Options, reproduce
from gfucb.paper.fig1 import FIG1
from gfucb.paper.fig1.sweep import jobs
from gfucb.paper.results_directory import ResultsDirectory
from gfucb.runs.jobs import run_job
from gfucb.runs.store import read_provenance, saved_rows

pytestmark = pytest.mark.slow

QUICK = Options(quick=True)


def paper_job() -> Job:
    quick = jobs(QUICK)
    return next(job for job in quick if job.name == "paper-M=10-K=10-seeds=0-0")


def interrupt(directory: Path, job: Job) -> None:
    """Compute the first row of a job, with a checkpoint after it."""
    rows = job.directory(directory).write(job.work())
    next(rows)
    rows.close()


def as_stored(job: Job, out: Path) -> Job:
    """The job as `reproduce` stores it."""
    settings = {"name": "fig1", **asdict(QUICK), "config": FIG1.config(QUICK)}
    return replace(job, settings=ResultsDirectory.open(out, settings).job_settings(job.name))


def test_runs_of_the_paper_continue_where_they_were_interrupted(tmp_path):
    job = paper_job()
    interrupt(tmp_path / "continued", job)
    assert len(saved_rows(tmp_path / "continued" / job.name)) == 1
    tables = []
    for name in ("whole", "continued"):
        assert run_job(job, tmp_path / name)
        tables.append(pd.read_csv(tmp_path / name / job.name / "rows.csv"))
    assert "resumed" in read_provenance(tmp_path / "continued" / job.name)
    pd.testing.assert_frame_equal(*(table.drop(columns="seconds") for table in tables))


def test_jobs_under_way_count_as_far_as_they_are_computed(tmp_path):
    with pytest.raises(RunDirectoryError, match="no finished job"):
        reproduce("fig1", FIG1, tmp_path, QUICK, only_what_is_there=True)
    oracle = next(job for job in jobs(QUICK) if job.name.startswith("oracle"))
    run_job(as_stored(oracle, tmp_path), tmp_path / "jobs")
    interrupt(tmp_path / "jobs", as_stored(paper_job(), tmp_path))
    reproduce("fig1", FIG1, tmp_path, QUICK, only_what_is_there=True)
    rows = pd.read_csv(tmp_path / "rows.csv")
    assert set(rows["agent"]) == {"oracle-ucb", "paper"}
    assert rows[rows["agent"] == "paper"]["round"].tolist() == [2]
    assert "1 of 14 jobs; 1 more are under way" in (tmp_path / "verdict.md").read_text()


def test_a_finished_job_counts_once_even_if_its_checkpoint_was_left_behind(tmp_path):
    job = as_stored(paper_job(), tmp_path)
    interrupt(tmp_path / "jobs", job)
    checkpoint = tmp_path / "jobs" / job.name / "checkpoint.safetensors"
    left = checkpoint.read_bytes()
    run_job(job, tmp_path / "jobs")
    assert not checkpoint.exists()
    checkpoint.write_bytes(left)
    reproduce("fig1", FIG1, tmp_path, QUICK, only_what_is_there=True)
    assert pd.read_csv(tmp_path / "rows.csv")["round"].tolist() == [2, 4]


def test_a_foreign_file_is_not_taken_for_a_checkpoint(tmp_path):
    job = paper_job()
    interrupt(tmp_path, job)
    write_state(tmp_path / job.name / "checkpoint.safetensors", {}, {"round": "3"})
    with pytest.raises(SavedStateError, match="no valid 'rows'; remove it to start the run over"):
        run_job(job, tmp_path)
