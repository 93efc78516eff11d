"""Rows of runs in TensorBoard and MLflow, read again by these packages."""

from multiprocessing.reduction import ForkingPickler

import pandas as pd
import pytest

import gfucb
from gfucb.adapters.mlflow import MLflowRows
from gfucb.adapters.tensorboard import TensorBoardRows
from gfucb.cli.main import main
from gfucb.core.errors import InvalidInputError
from gfucb.environments import linear_bandit
from gfucb.runs.row_sinks import OpenSinks, flat_settings, numbers_of

SMALL = ["--preset", "finite", "--agents", "uniform", "--seeds", "0", "1", "--num-rounds", "4"]


def scalars(directory, column):
    # TensorBoard and MLflow load for seconds, in every process that collects tests.
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(directory)).Reload()
    return {event.step: event.value for event in events.Scalars(column)}


@pytest.fixture
def client(tmp_path, monkeypatch):
    """A client of a store in files, which needs no server."""
    import mlflow

    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    uri = (tmp_path / "mlruns").as_uri()
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    mlflow.set_tracking_uri(uri)
    yield mlflow.MlflowClient(uri)
    mlflow.set_tracking_uri("")


def runs_of(client, experiment):
    found = client.search_runs([client.get_experiment_by_name(experiment).experiment_id])
    return {run.data.tags["gfucb.run"]: run for run in found}


def test_the_command_writes_rows_to_both(tmp_path, client, capsys):
    out, board = tmp_path / "runs", tmp_path / "board"
    sinks = ["--sinks", f"tensorboard={board}", "mlflow=digits"]
    main(["compare", "--out", str(out), *SMALL, "--processes", "1", *sinks])
    capsys.readouterr()
    runs = runs_of(client, "digits")
    assert set(runs) == {"uniform/seed=0", "uniform/seed=1"}
    for name, run in runs.items():
        rows = pd.read_csv(out / name / "rows.csv").set_index("round")["cumulative_regret"]
        assert scalars(board / name, "cumulative_regret") == pytest.approx(rows.to_dict())
        history = client.get_metric_history(run.info.run_id, "cumulative_regret")
        assert {metric.step: metric.value for metric in history} == rows.to_dict()
        assert run.data.params["environment.name"] == "finite"
        assert run.info.status == "FINISHED"
    # A repeated command computes nothing and leaves the sinks alone.
    main(["compare", "--out", str(out), *SMALL, "--processes", "1", *sinks])
    assert len(runs_of(client, "digits")) == 2
    assert len(list((board / "uniform/seed=0").iterdir())) == 1


def test_python_takes_sinks_that_worker_processes_can_import(tmp_path):
    board = tmp_path / "board"
    sinks = [TensorBoardRows(board)]
    assert ForkingPickler.loads(ForkingPickler.dumps([*sinks, MLflowRows("x")]))[0] == sinks[0]
    out = tmp_path / "runs"
    gfucb.compare("finite", ["uniform"], seeds=[1], num_rounds=2, out=out, sinks=sinks)
    assert list(scalars(board / "uniform/seed=1", "reward")) == [1, 2]


def test_a_run_that_continues_replaces_the_rows_after_its_checkpoint(tmp_path, client):
    sinks = [TensorBoardRows(tmp_path / "board"), MLflowRows("again")]
    for first, value in ((1, 0.5), (3, 0.25)):
        with OpenSinks(sinks, "a/seed=0", {"seed": 0}) as opened:
            for round_index in range(first, 5):
                opened.write({"round": round_index, "reward": value})
    expected = {1: 0.5, 2: 0.5, 3: 0.25, 4: 0.25}
    assert scalars(tmp_path / "board/a/seed=0", "reward") == expected
    (run,) = runs_of(client, "again").values()
    history = client.get_metric_history(run.info.run_id, "reward")
    assert {metric.step: metric.value for metric in history} == expected  # the later one counts


def test_a_store_that_mlflow_cannot_use_is_refused_with_the_cure(tmp_path, monkeypatch, capsys):
    uri = f"sqlite:///{tmp_path / 'mlflow.db'}"  # the default of MLflow
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    sinks = ["--processes", "2", "--sinks", "mlflow=digits"]
    with pytest.raises(SystemExit):
        main(["compare", "--out", str(tmp_path / "runs"), *SMALL, *sinks])
    found = " ".join(capsys.readouterr().err.split())
    assert "MLFLOW_TRACKING_URI must name a server" in found and "BrokenProcessPool" not in found


def test_one_run_writes_rows_too(tmp_path, capsys):
    words = ["--preset", "finite", "--agent.name", "uniform", "--num-rounds", "3"]
    sinks = ["--sinks", f"tensorboard={tmp_path / 'board'}"]
    main(["run", "--out", str(tmp_path / "one"), *words, *sinks])
    assert list(scalars(tmp_path / "board/one", "regret")) == [1, 2, 3]


def test_texts_are_left_out_and_settings_are_flat():
    row = {"round": 3, "reward": 0.5, "refit": True, "note": "first"}
    assert numbers_of(row) == {"reward": 0.5, "refit": 1.0}
    assert flat_settings({"agent": {"ridge": 1.0}, "seed": 2}) == {
        "agent.ridge": "1.0",
        "seed": "2",
    }


def test_wrong_sinks_are_refused(tmp_path, capsys):
    with pytest.raises(SystemExit):
        main(["compare", "--out", str(tmp_path), *SMALL, "--sinks", "wandb=x"])
    assert "tensorboard=... or mlflow=..." in capsys.readouterr().err
    with pytest.raises(InvalidInputError, match="out="):
        gfucb.compare(
            lambda seed: linear_bandit(seed=seed), ["uniform"], sinks=[TensorBoardRows(tmp_path)]
        )
