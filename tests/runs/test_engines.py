"""Engines by name, and runs that another process computes, without any cluster."""

import sys
from functools import partial
from itertools import islice
from pathlib import Path

import pytest

from gfucb.core.errors import FailedJobsError, InvalidInputError, SavedStateError, UnknownNameError
from gfucb.runs import BanditAgentConfig, ImageBanditConfig, RunConfig, plugins
from gfucb.runs.engines import ENGINES, EngineSettings, register_engine
from gfucb.runs.jobs import Job, LocalEngine, Outcome, Progress, run_jobs
from gfucb.runs.plugins import PluginSource, load_plugin_sources, load_plugins, plugin_sources
from gfucb.runs.remote_runs import Computed, Failed, Finished, RunReceiver, Started, messages
from gfucb.runs.single import run_job_of
from gfucb.runs.store import RunLockedError, is_finished, read_provenance

RUN = RunConfig(
    ImageBanditConfig(num_tasks=2, num_actions=3), BanditAgentConfig(name="linucb"), num_rounds=6
)
JOB = run_job_of(RUN, "run")
HERE = {"node": "here"}


def compute(receiver: RunReceiver, *, stop_after: int | None = None, node: str = "here") -> list:
    """Send the messages of a job to its receiver; return them."""
    sent = messages(receiver.job, receiver.checkpoint(), {"node": node}, every=0.0)
    found = []
    for message in islice(sent, stop_after):
        receiver.receive(message)
        found.append(message)
    return found


def rows_of(directory: Path) -> bytes:
    return (directory / "rows.csv").read_bytes()


def fail() -> list:
    raise LookupError("no rows")


def test_messages_fill_a_run_directory_with_the_bytes_of_a_local_run(tmp_path):
    run_jobs([JOB], tmp_path / "local")
    receiver = RunReceiver(JOB, tmp_path)
    found = compute(receiver)
    receiver.close()
    assert isinstance(found[0], Started) and isinstance(found[-1], Finished)
    assert isinstance(found[1], Computed) and found[1].checkpoint
    assert rows_of(tmp_path / "run") == rows_of(tmp_path / "local" / "run")
    assert is_finished(tmp_path / "run") and read_provenance(tmp_path / "run")["node"] == "here"
    assert not (tmp_path / "run" / "checkpoint.safetensors").exists()


def test_rows_are_collected_for_some_time():
    found = list(messages(JOB, None, HERE, every=1000.0))
    assert [type(message) for message in found] == [Started, Computed, Finished]
    assert [row["round"] for row in found[1].rows] == [1, 2, 3, 4, 5, 6]


def test_a_run_continues_in_another_process_and_the_directory_is_locked_meanwhile(tmp_path):
    run_jobs([JOB], tmp_path / "local")
    receiver = RunReceiver(JOB, tmp_path)
    compute(receiver, stop_after=2)
    with pytest.raises(RunLockedError):
        RunReceiver(JOB, tmp_path)
    with (tmp_path / "run" / "rows.csv").open("a") as file:
        file.write("a row that no checkpoint covers\n")
    compute(receiver, node="there")
    receiver.close()
    assert rows_of(tmp_path / "run") == rows_of(tmp_path / "local" / "run")
    provenance = read_provenance(tmp_path / "run")
    assert provenance["node"] == "here"
    assert [(r["node"], r["after_rows"]) for r in provenance["resumed"]] == [("there", 1)]


def test_a_run_without_a_checkpoint_starts_over_and_names_its_new_machine(tmp_path):
    job = Job("rows", partial(list, [{"a": 1}, {"a": 2}]))
    receiver = RunReceiver(job, tmp_path)
    compute(receiver, stop_after=2)
    compute(receiver, node="there")
    receiver.close()
    assert rows_of(tmp_path / "rows") == b"a\n1\n2\n"
    provenance = read_provenance(tmp_path / "rows")
    assert provenance["node"] == "there" and "resumed" not in provenance


def test_an_error_of_a_job_is_a_message_with_its_line(tmp_path):
    (started, failed) = messages(Job("fails", fail), None, HERE, every=0.0)
    assert isinstance(started, Started) and isinstance(failed, Failed)
    assert failed.error.startswith("LookupError: no rows (line ")
    assert failed.error.endswith(f"of {__file__})")


def test_a_damaged_checkpoint_is_an_error_before_anything_changes(tmp_path):
    receiver = RunReceiver(JOB, tmp_path)
    compute(receiver, stop_after=2)
    (tmp_path / "run" / "checkpoint.safetensors").write_bytes(b"damaged")
    with pytest.raises(SavedStateError, match="damaged"):
        receiver.checkpoint()
    receiver.close()
    assert len(rows_of(tmp_path / "run").splitlines()) == 2


def test_failed_jobs_are_named_after_all_others_have_ended(tmp_path):
    class Half:
        def outcomes(self, jobs, parent, device, progress):
            for job in jobs:
                is_odd = int(job.name) % 2
                yield job, Outcome("failed", "is odd") if is_odd else Outcome("finished")

    ended, problems = [], {}
    progress = Progress(
        lambda job: ended.append(job.name), problem=lambda j, t: problems.update({j.name: t})
    )
    with pytest.raises(FailedJobsError, match=r"2 of 4 jobs failed, for example 1: is odd"):
        run_jobs([Job(n, fail) for n in "1234"], tmp_path, engine=Half(), progress=progress)
    assert ended == ["2", "4"]
    assert problems == {"1": "failed: is odd", "3": "failed: is odd"}


def test_engines_have_names_and_plugins_may_add_some(restored_registries):
    assert ENGINES["local"].factory(EngineSettings(default_processes=3)) == LocalEngine(3)
    assert ENGINES["local"].factory(EngineSettings(2, 3)) == LocalEngine(2)
    with pytest.raises(InvalidInputError, match="engine local has no address"):
        ENGINES["local"].factory(EngineSettings(address="auto"))
    with pytest.raises(UnknownNameError, match="unknown engine 'slurm'; the known ones are: local"):
        ENGINES["slurm"]
    register_engine("slurm", description="Mine.")(lambda settings: LocalEngine())
    assert ENGINES["slurm"].factory(EngineSettings()) == LocalEngine()


def test_ray_counts_all_cpus_of_a_cluster_but_not_of_this_machine(monkeypatch):
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'gfucb[ray]'")
    make = ENGINES["ray"].factory
    monkeypatch.setenv("GFUCB_DATA_DIR", "data/of/variable")
    assert make(EngineSettings(default_processes=2)).processes == 2
    cluster = make(EngineSettings(default_processes=2, address="auto"))
    assert cluster.processes is None and cluster.data_dir == "data/of/variable"
    assert make(EngineSettings(5, address="auto", data_dir="own")).data_dir == "own"


def test_without_ray_the_error_names_the_cure(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("gfucb.runs.ray_")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(InvalidInputError, match=r"needs ray: pip install 'gfucb\[exp"):
        ENGINES["ray"].factory(EngineSettings())


def test_plugins_are_imported_from_their_text_where_their_file_is_not(
    tmp_path, restored_registries
):
    path = tmp_path / "sent_plugin.py"
    path.write_text("def answer():\n    return 42\n")
    load_plugins([path])
    (source,) = [s for s in plugin_sources() if s.path == path]
    path.unlink()
    restored_registries()
    del sys.modules["gfucb_plugin_sent_plugin"]
    load_plugin_sources([source])
    module = sys.modules["gfucb_plugin_sent_plugin"]
    assert module.answer() == 42 and module.__file__ == str(path)
    load_plugin_sources([source])
    assert sys.modules["gfucb_plugin_sent_plugin"] is module
    with pytest.raises(InvalidInputError, match="have the same file name"):
        load_plugin_sources([PluginSource(tmp_path / "other" / "sent_plugin.py", "")])
    with pytest.raises(InvalidInputError, match="cannot be imported: SyntaxError"):
        load_plugin_sources([PluginSource(tmp_path / "wrong.py", "def")])
    assert "gfucb_plugin_wrong" not in sys.modules and plugins._loaded
