"""Run directories: never overwritten, continued exactly."""

import json
from dataclasses import replace
from itertools import islice

import pytest
from killing import run_and_kill

from gfucb.core.checkpoint import read_state
from gfucb.core.errors import RunDirectoryError, SavedStateError, UnknownNameError
from gfucb.runs import BanditAgentConfig, ImageBanditConfig, RunConfig, run, run_checkpoint, store
from gfucb.runs.metrics import REGRET
from gfucb.runs.row_writer import RowWriter
from gfucb.runs.single import final_result, run_job_of
from gfucb.runs.store import RunDirectory, RunLockedError, saved_rows
from gfucb.runs.work import ComputedRows

# Together they take seconds.
pytestmark = pytest.mark.slow

ENVIRONMENT = ImageBanditConfig(num_tasks=3, num_actions=4)
QUICK = RunConfig(ENVIRONMENT, BanditAgentConfig(fit_steps=3), num_rounds=12, seed=3)
AGENTS = ["gfucb", "multitask-eps-greedy", "independent-eps-greedy", "linucb", "uniform"]


def finish(config: RunConfig, directory) -> bytes:
    for _ in run(config, directory):
        pass
    return (directory / "rows.csv").read_bytes()


def test_a_run_directory_holds_config_provenance_and_a_row_for_each_round(tmp_path):
    rows = list(run(QUICK, tmp_path / "run"))
    assert [row["round"] for row in rows] == list(range(1, 13))
    assert sorted(p.name for p in (tmp_path / "run").iterdir()) == [
        ".lock",
        "config.json",
        "provenance.json",
        "rows.csv",
    ]
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    assert config["seed"] == 3 and config["environment"]["num_tasks"] == 3
    provenance = json.loads((tmp_path / "run" / "provenance.json").read_text())
    assert provenance["finished"] and provenance["cpu_seconds"] > 0
    assert {"torch", "numpy"} <= provenance["versions"].keys()
    assert {"commit", "uncommitted_changes", "python", "device"} <= provenance.keys()
    written = store.read_rows(tmp_path / "run")
    assert [float(row["regret"]) for row in written] == [row["regret"] for row in rows]


def test_cumulative_regret_adds_up(tmp_path):
    total = 0.0
    for row in run(QUICK, tmp_path / "run"):
        total += row["regret"]
        assert row["cumulative_regret"] == pytest.approx(total)


def test_the_same_config_gives_the_same_bytes_and_another_seed_others(tmp_path):
    first = finish(QUICK, tmp_path / "1")
    assert finish(QUICK, tmp_path / "2") == first
    assert finish(replace(QUICK, seed=4), tmp_path / "3") != first


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("stop_after", [1, 7])
def test_resumed_equals_uninterrupted_byte_for_byte(tmp_path, agent, stop_after):
    config = replace(QUICK, agent=replace(QUICK.agent, name=agent))
    whole = finish(config, tmp_path / "whole")
    interrupted = run(config, tmp_path / "parts")
    list(islice(interrupted, stop_after))
    interrupted.close()
    assert finish(config, tmp_path / "parts") == whole


def test_a_row_that_was_written_in_part_is_computed_again(tmp_path):
    whole = finish(QUICK, tmp_path / "whole")
    interrupted = run(QUICK, tmp_path / "parts")
    list(islice(interrupted, 5))
    interrupted.close()
    with (tmp_path / "parts" / "rows.csv").open("a") as file:
        file.write("6,0.12")
    assert finish(QUICK, tmp_path / "parts") == whole


def test_rows_after_the_last_checkpoint_are_computed_again(tmp_path, monkeypatch):
    whole = finish(QUICK, tmp_path / "whole")
    monkeypatch.setattr(run_checkpoint, "CHECKPOINT_SHARE", -1.0)  # after the first, none
    interrupted = run(QUICK, tmp_path / "parts")
    list(islice(interrupted, 6))
    interrupted.close()
    assert finish(QUICK, tmp_path / "parts") == whole


@pytest.mark.slow
def test_a_killed_process_is_continued_byte_for_byte(tmp_path):
    config = replace(QUICK, num_rounds=40, agent=replace(QUICK.agent, fit_steps=20))
    run_and_kill(config, tmp_path / "killed")
    assert not json.loads((tmp_path / "killed" / "provenance.json").read_text())["finished"]
    assert finish(config, tmp_path / "killed") == finish(config, tmp_path / "whole")


def test_rows_that_do_not_belong_to_the_checkpoint_are_an_error(tmp_path, monkeypatch):
    # A checkpoint after every row, however slow the disk: rounds are short here.
    monkeypatch.setattr("gfucb.runs.run_checkpoint.CHECKPOINT_SHARE", 1.0)
    interrupted = run(QUICK, tmp_path / "run")
    list(islice(interrupted, 6))
    interrupted.close()
    rows = tmp_path / "run" / "rows.csv"
    rows.write_text("".join(rows.read_text().splitlines(keepends=True)[:4]))
    with pytest.raises(RunDirectoryError, match="has 3 rows but the checkpoint"):
        finish(QUICK, tmp_path / "run")
    rows.unlink()
    with pytest.raises(RunDirectoryError, match="has 0 rows"):
        finish(QUICK, tmp_path / "run")


def test_two_processes_cannot_write_one_run(tmp_path):
    first = run(QUICK, tmp_path / "run")
    next(first)
    with pytest.raises(RunLockedError, match=r"another process.*wait until"):
        next(run(QUICK, tmp_path / "run"))
    first.close()
    finish(QUICK, tmp_path / "run")


def test_provenance_of_a_continued_run_has_all_seconds_and_the_continuation(tmp_path):
    interrupted = run(QUICK, tmp_path / "run")
    list(islice(interrupted, 5))
    interrupted.close()
    _, facts = read_state(tmp_path / "run" / "checkpoint.safetensors")
    assert len(saved_rows(tmp_path / "run")) == int(facts["rows"])
    finish(QUICK, tmp_path / "run")
    provenance = store.read_provenance(tmp_path / "run")
    assert provenance["cpu_seconds"] > float(facts["cpu_seconds"]) > 0
    assert [row["after_rows"] for row in provenance["resumed"]] == [int(facts["rows"])]
    assert "commit" in provenance["resumed"][0]


def test_a_run_killed_after_its_last_row_has_its_regret(tmp_path):
    interrupted = run(QUICK, tmp_path / "run")
    rows = list(islice(interrupted, 12))
    interrupted.close()
    list(run(QUICK, tmp_path / "run"))
    assert final_result(tmp_path / "run") == (REGRET, rows[-1]["cumulative_regret"])


def test_a_finished_run_is_never_overwritten(tmp_path):
    before = finish(QUICK, tmp_path / "run")
    with pytest.raises(RunDirectoryError, match="never overwritten"):
        finish(QUICK, tmp_path / "run")
    assert (tmp_path / "run" / "rows.csv").read_bytes() == before


def test_a_directory_with_another_run_is_refused_and_the_difference_named(tmp_path):
    finish(QUICK, tmp_path / "run")
    other = replace(QUICK, environment=replace(ENVIRONMENT, noise_scale=0.2))
    with pytest.raises(RunDirectoryError, match=r"environment.noise_scale = 0.1, not 0.2"):
        finish(other, tmp_path / "run")


def test_a_directory_with_something_else_is_refused(tmp_path):
    (tmp_path / "letters.txt").write_text("dear")
    with pytest.raises(RunDirectoryError, match="not a run directory"):
        finish(QUICK, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["letters.txt"]


def test_a_truncated_checkpoint_is_an_error(tmp_path):
    interrupted = run(QUICK, tmp_path / "run")
    list(islice(interrupted, 3))
    interrupted.close()
    checkpoint = tmp_path / "run" / "checkpoint.safetensors"
    checkpoint.write_bytes(checkpoint.read_bytes()[:200])
    with pytest.raises(SavedStateError, match="damaged"):
        finish(QUICK, tmp_path / "run")


def test_a_kill_while_the_directory_is_created_does_not_block_it(tmp_path):
    (tmp_path / "provenance.json").write_text("{}")
    (tmp_path / ".config.json.0123456789abcdef.tmp").write_text("{")
    finish(QUICK, tmp_path)


def test_an_unknown_agent_lists_the_known_ones_and_leaves_no_directory(tmp_path):
    config = RunConfig(ENVIRONMENT, BanditAgentConfig(name="ucb1"))
    with pytest.raises(UnknownNameError, match=r"'ucb1'.*gfucb.*linucb.*uniform"):
        finish(config, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def rows_job(directory, rows):
    for _ in RunDirectory(directory, {"name": "rows"}).write(ComputedRows(lambda: rows)):
        pass
    return (directory / "rows.csv").read_text()


def test_rows_may_have_different_columns(tmp_path):
    text = rows_job(tmp_path, [{"x": 1, "y": 2}, {"x": 3, "z": 0.5}, {"z": 1.0}])
    assert text == "x,y,z\n1,2,\n3,,0.5\n,,1.0\n"
    assert saved_rows(tmp_path) == store.read_rows(tmp_path)


def test_rows_computed_at_once_are_not_taken_from_an_interrupted_run(tmp_path):
    directory = RunDirectory(tmp_path, {"name": "rows"})
    interrupted = directory.write(ComputedRows(lambda: [{"x": 1}, {"x": 2}]))
    next(interrupted)
    interrupted.close()
    assert not directory.is_finished() and saved_rows(tmp_path) == []
    assert rows_job(tmp_path, [{"x": 3}]) == "x\n3\n"


def test_a_finished_run_that_another_process_completed_is_left_as_it_is(tmp_path):
    assert rows_job(tmp_path, [{"x": 3}]) == rows_job(tmp_path, [{"x": 4}]) == "x\n3\n"


def test_appending_continues_the_columns_of_a_file(tmp_path):
    path = tmp_path / "rows.csv"
    for row in ({"x": 1, "y": 2}, {"y": 3, "x": 4}):
        with RowWriter(path) as writer:
            writer.write(row)
    assert path.read_text() == "x,y\n1,2\n4,3\n"


def test_a_run_stored_before_a_setting_existed_has_its_default(tmp_path):
    config = RunConfig(ImageBanditConfig(num_tasks=2), BanditAgentConfig("linucb"), 3)
    list(run(config, tmp_path / "run"))
    path = tmp_path / "run" / "config.json"
    stored = json.loads(path.read_text())
    del stored["agent"]["gap_scale"]
    path.write_text(json.dumps(stored))
    assert run_job_of(config, "run").directory(tmp_path).is_finished()
    other = replace(config, agent=replace(config.agent, gap_scale=3.0))
    with pytest.raises(RunDirectoryError, match=r"agent.gap_scale = 10.0, not 3.0"):
        run_job_of(other, "run").directory(tmp_path).is_finished()
