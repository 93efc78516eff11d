"""Sweeps on a Ray of two workers: the same bytes as local ones, also when workers die."""

import signal
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
from killing import is_locked, num_rows, wait_until

from gfucb.cli.main import main
from gfucb.core.errors import FailedJobsError, InvalidInputError
from gfucb.runs import BanditAgentConfig, Comparison, ImageBanditConfig, RunConfig, run_comparison
from gfucb.runs.jobs import Job, Progress, run_jobs
from gfucb.runs.plugins import load_plugins
from gfucb.runs.single import run_job_of
from gfucb.runs.store import read_provenance, read_rows
from gfucb.runs.text_files import read_json

ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'gfucb[ray]'")

from gfucb.runs import ray_engine  # noqa: E402  (it needs Ray)
from gfucb.runs.ray_engine import RayEngine  # noqa: E402
from gfucb.runs.ray_task import Context, Files, require_same_code  # noqa: E402

PLUGIN = Path(__file__).parents[1] / "plugins" / "worker_jobs.py"
RUN = RunConfig(
    ImageBanditConfig(num_tasks=2, num_actions=3), BanditAgentConfig(fit_steps=3), num_rounds=8
)


@pytest.fixture(scope="module")
def cluster():
    """The address of a Ray that the engine starts for two workers, and stops."""
    psutil = pytest.importorskip("psutil", reason="part of Ray")
    engine = RayEngine(processes=2)
    with engine._connected() as is_own:
        assert is_own
        children = [
            child
            for child in psutil.Process().children(recursive=True)
            if "ray" in " ".join(child.cmdline())  # not the resource tracker of multiprocessing
        ]
        assert any("raylet" in child.name() for child in children)
        yield ray.get_runtime_context().gcs_address
    assert not ray.is_initialized()
    _, alive = psutil.wait_procs(children, timeout=30)
    assert not alive


@pytest.fixture
def jobs(restored_registries):
    """The functions of the plugin."""
    load_plugins([PLUGIN])
    return sys.modules["gfucb_plugin_worker_jobs"]


def rows_of(directory: Path) -> bytes:
    return (directory / "rows.csv").read_bytes()


@pytest.mark.slow
def test_a_comparison_has_the_rows_of_a_local_one_and_says_where_it_was_computed(
    cluster, jobs, tmp_path
):
    agents = (RUN.agent, jobs.WorkerAgentConfig(name="worker-agent", fast_if=str(tmp_path)))
    comparison = Comparison(RUN.environment, agents, seeds=(0,), num_rounds=8)
    run_comparison(comparison, tmp_path / "local")
    run_comparison(comparison, tmp_path / "ray", engine=RayEngine())
    for name in comparison.runs():
        local, remote = tmp_path / "local" / name, tmp_path / "ray" / name
        assert rows_of(remote) == rows_of(local)
        assert sorted(p.name for p in remote.iterdir()) == sorted(p.name for p in local.iterdir())
        computed, here = read_provenance(remote), read_provenance(local)
        assert computed.pop("engine") == f"ray {ray.__version__}" and computed.pop("node")
        assert computed["finished"] and computed["cpu_seconds"] > 0
        different = {"started", "finished", "cpu_seconds"}
        assert {k for k in here if computed[k] != here[k]} <= different


@pytest.mark.slow
def test_a_run_whose_worker_is_killed_continues_byte_for_byte(cluster, jobs, tmp_path):
    dying = partial(jobs.DyingRun, RUN, tmp_path / "ray" / "dying", tmp_path / "marker")
    problems, quick = [], partial(RayEngine, report_seconds=0.0)
    run_jobs(
        [Job("dying", dying, resumable=True)],
        tmp_path / "ray",
        engine=quick(),
        progress=Progress(problem=lambda job, text: problems.append((job.name, text))),
    )
    assert (tmp_path / "marker").exists()
    (problem,) = problems
    assert problem[0] == "dying" and "its worker died (WorkerCrashedError)" in problem[1]
    run_jobs([run_job_of(RUN, "whole")], tmp_path)
    assert rows_of(tmp_path / "ray" / "dying") == rows_of(tmp_path / "whole")
    (resumed,) = read_provenance(tmp_path / "ray" / "dying")["resumed"]
    assert resumed["after_rows"] >= 1 and resumed["node"]


@pytest.mark.slow
def test_failed_jobs_are_reported_and_the_rest_goes_on(cluster, jobs, tmp_path, monkeypatch):
    monkeypatch.setattr(ray_engine, "MOST_DEATHS", 1)
    data = tmp_path / "data"
    (data / "deep").mkdir(parents=True)
    (data / "deep" / "file.txt").write_text("sent")
    given = [
        Job("fails", partial(jobs.fail, 7), relative_cost=3),
        Job("dies", jobs.die, relative_cost=2),
        Job("facts", partial(jobs.facts, str(data))),
    ]
    problems = {}
    with pytest.raises(FailedJobsError, match=r"2 of 3 jobs failed, .* The others are stored"):
        run_jobs(
            given,
            tmp_path / "out",
            engine=RayEngine(processes=2, data_dir=str(data)),
            progress=Progress(problem=lambda job, text: problems.update({job.name: text})),
        )
    assert problems["fails"].startswith("failed: LookupError: there is no row 7 (line ")
    assert problems["fails"].endswith("worker_jobs.py)")
    assert problems["dies"].startswith("failed: 1 workers died: WorkerCrashedError")
    (row,) = read_rows(tmp_path / "out" / "facts")
    assert row == {"threads": "1", "text": "sent", "is_copy": "True", "by_default": "True"}
    assert not any(is_locked(tmp_path / "out" / job.name) for job in given)


@pytest.mark.slow
def test_a_command_that_is_stopped_resumes_and_leaves_the_cluster_running(cluster, jobs, tmp_path):
    agent = jobs.WorkerAgentConfig(name="worker-agent", fast_if=str(tmp_path / "marker"))
    config = replace(RUN, agent=agent, num_rounds=300)
    words = [
        *["compare", "--plugin", PLUGIN, "--agents", agent.name, "--agent.fast-if", agent.fast_if],
        *["--environment.num-tasks", 2, "--environment.num-actions", 3, "--num-rounds", 300],
        *["--seeds", 0, "--engine", "ray", "--address", cluster, "--out", tmp_path / "ray"],
    ]
    command = [sys.executable, "-m", "gfucb.cli.main", *map(str, words)]
    run = tmp_path / "ray" / agent.name / "seed=0"
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        saved = run / "checkpoint.safetensors"
        wait_until(lambda: saved.exists() or process.poll() is not None, "there is a checkpoint")
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=100)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 130 and "repeat the command to resume" in errors, errors
    assert ray.get(ray.put(1)) == 1 and not is_locked(run)
    assert 0 < num_rows(run) < 300
    (tmp_path / "marker").touch()
    for out in ("ray", "whole"):
        run_jobs([run_job_of(config, f"{agent.name}/seed=0")], tmp_path / out)
    assert rows_of(run) == rows_of(tmp_path / "whole" / agent.name / "seed=0")
    assert read_provenance(run)["resumed"][0]["after_rows"] > 0


@pytest.mark.slow
def test_reproduce_and_bench_run_on_ray(cluster, restored_registries, tmp_path, capsys):
    figure = ["reproduce", "squares", "--plugin", str(PLUGIN.with_name("squares.py"))]
    for engine in ("local", "ray"):
        main([*figure, "--engine", engine, "--out", str(tmp_path / engine)])
        assert "y is x squared: holds" in capsys.readouterr().out
    assert rows_of(tmp_path / "ray") == rows_of(tmp_path / "local")
    (record,) = read_json(tmp_path / "ray" / "provenance.json")["provenance"]
    assert record["engine"].startswith("ray") and len(record["jobs"]) == 2
    bench = ["bench", "--quick", "--only", "catalogue", "--engine", "ray"]
    main([*bench, "--out", str(tmp_path / "bench")])
    assert "measured catalogue" in capsys.readouterr().out


@pytest.mark.slow
def test_a_cluster_without_gpus_refuses_jobs_that_need_one(cluster, tmp_path):
    with pytest.raises(InvalidInputError, match="need a GPU each"):
        run_jobs([run_job_of(RUN, "run")], tmp_path, engine=RayEngine(), device="cuda")
    with pytest.raises(InvalidInputError, match="connected to Ray at"):
        run_jobs([run_job_of(RUN, "run")], tmp_path, engine=RayEngine("10.0.0.1:6379"))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("resource", "num_gpus"), [("CPU", 0), ("GPU", 1)])
def test_a_task_takes_one_cpu_and_on_gpus_one_gpu(tmp_path, monkeypatch, resource, num_gpus):
    given = []
    fake = SimpleNamespace(
        put=lambda value: value,
        remote=lambda **options: (
            lambda function: (
                given.append(options) or SimpleNamespace(remote=lambda *arguments: "task")
            )
        ),
        cancel=lambda stream, force: None,
    )
    monkeypatch.setattr(ray_engine, "ray", fake)
    sweep = ray_engine._Sweep(None, tmp_path, resource, 1, Progress())
    assert sweep._start(run_job_of(RUN, "run")) is None
    assert is_locked(tmp_path / "run")
    sweep.stop()
    assert not is_locked(tmp_path / "run")
    assert [(o["num_cpus"], o["num_gpus"], o["max_retries"]) for o in given] == [(1, num_gpus, 0)]


def test_a_machine_with_other_code_is_refused():
    own = {"gfucb": "1.0", "commit": "abc"}
    for same in (Context("1.0", "abc"), Context("1.0", "")):
        require_same_code(same, own)
    for other in (Context("1.1", "abc"), Context("1.0", "abd")):
        with pytest.raises(InvalidInputError, match="install the same on all machines"):
            require_same_code(other, own)


def test_the_files_of_a_data_directory_are_sent_unless_they_are_too_large(tmp_path, monkeypatch):
    assert Files.read(str(tmp_path / "none")) is None
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "c").write_bytes(b"12345")
    files = Files.read(str(tmp_path / "a"))
    assert files.contents == {"b/c": b"12345"}
    files.write(tmp_path / "copy")
    assert (tmp_path / "copy" / "b" / "c").read_bytes() == b"12345"
    monkeypatch.setattr("gfucb.runs.ray_task.LARGEST_DATA", 4)
    assert Files.read(str(tmp_path / "a")) is None


def test_invalid_settings_are_refused():
    with pytest.raises(InvalidInputError, match="processes must be at least 1, got 0"):
        RayEngine(processes=0)
    for address in ("ray://head:10001", "head"):
        with pytest.raises(InvalidInputError, match="run this command on a machine of the cl"):
            RayEngine(address)


def test_an_address_without_a_cluster_is_refused_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr(ray_engine.ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray_engine.ray, "init", lambda **settings: pytest.fail("waits for minutes"))
    monkeypatch.setattr(ray_engine.ray, "shutdown", lambda: None)
    with pytest.raises(InvalidInputError, match=r"no Ray cluster at localhost:1 .*`ray start"):
        run_jobs([run_job_of(RUN, "run")], tmp_path, engine=RayEngine("localhost:1"))
