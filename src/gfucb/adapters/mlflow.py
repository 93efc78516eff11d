"""Rows of runs in MLflow. This module needs the extra `mlflow`."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from gfucb.core.errors import GFUCBError
from gfucb.core.records import Row
from gfucb.runs.row_sinks import flat_settings, numbers_of

try:
    from mlflow import MlflowClient
    from mlflow.entities import Metric, Param
    from mlflow.exceptions import MlflowException
except ModuleNotFoundError as error:
    raise ModuleNotFoundError("this sink needs MLflow: pip install 'gfucb[mlflow]'") from error

# Rows of one call. MLflow accepts at most 1,000 metrics and 100 settings in a call.
ROWS_IN_CALL, METRICS_IN_CALL, SETTINGS_IN_CALL = 50, 1000, 100
LONGEST_SETTING = 500
RUN_TAG = "gfucb.run"
CURE = """\
the environment variable MLFLOW_TRACKING_URI must name a server, such as http://localhost:5000; \
for a database, such as sqlite:///mlflow.db, install mlflow: mlflow-skinny has none"""


@dataclass(frozen=True)
class MLflowRows:
    """Logs every column of numbers as a metric and the settings as parameters.

    A run that continues after an interruption is found by its name and continued there.

    Attributes:
        experiment: of MLflow; made if it does not exist.
        tracking_uri: of the server or store; by default that of MLflow, which the environment
            variable MLFLOW_TRACKING_URI sets.
    """

    experiment: str = "gfucb"
    tracking_uri: str | None = None

    def open(self, name: str, settings: Mapping[str, Any], first_round: int) -> MLflowSink:
        """The sink of a run."""
        with _errors_that_processes_can_exchange():
            return self._open(name, settings, first_round)

    def _open(self, name: str, settings: Mapping[str, Any], first_round: int) -> MLflowSink:
        client = MlflowClient(self.tracking_uri)
        known = client.get_experiment_by_name(self.experiment)
        experiment = (
            client.create_experiment(self.experiment) if known is None else known.experiment_id
        )
        if first_round > 1:
            found = client.search_runs([experiment], f"tags.`{RUN_TAG}` = '{name}'", max_results=1)
            if found:
                return MLflowSink(client, found[0].info.run_id)
        run = client.create_run(experiment, tags={RUN_TAG: name}, run_name=name).info.run_id
        given = flat_settings(settings)
        params = [Param(key, value[:LONGEST_SETTING]) for key, value in given.items()]
        for start in range(0, len(params), SETTINGS_IN_CALL):
            client.log_batch(run, params=params[start : start + SETTINGS_IN_CALL])
        return MLflowSink(client, run)


@dataclass(frozen=True)
class MLflowSink:
    """Logs the rows of one run, many in a call."""

    client: Any
    run: str
    pending: list[Any] = field(default_factory=list)

    def write(self, row: Row) -> None:
        """One metric for each number; the step is the round."""
        now, step = int(time.time() * 1000), int(row["round"])
        own = [Metric(name, value, now, step) for name, value in numbers_of(row).items()]
        if len(self.pending) + len(own) > METRICS_IN_CALL or step % ROWS_IN_CALL == 1:
            self._send()
        self.pending.extend(own)

    def close(self) -> None:
        """Log what is left and end the run."""
        self._send()
        with _errors_that_processes_can_exchange():
            self.client.set_terminated(self.run)

    def _send(self) -> None:
        if self.pending:
            with _errors_that_processes_can_exchange():
                self.client.log_batch(self.run, metrics=list(self.pending))
            self.pending.clear()


@contextmanager
def _errors_that_processes_can_exchange() -> Iterator[None]:
    """Replace errors of MLflow: some of them cannot be sent to the process that waits for a run."""
    try:
        yield
    except MlflowException as error:
        text = str(error).partition("\n")[0]
        raise GFUCBError(f"MLflow does not take the rows ({text.strip():.200}); {CURE}") from error
