"""Row sinks, which receive the rows of runs besides their directories.

The directory of a run stays the result. A sink gets the rows as they are computed, in the process
that computes them; after an interruption it may get some of them again, with the same round.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

from gfucb.core.closing import ClosedAtExit
from gfucb.core.records import Row
from gfucb.runs.jobs import Job
from gfucb.runs.work import Work, WorkState


class RowSink(Protocol):
    """Receives the rows of one run."""

    def write(self, row: Row) -> None:
        """Receive a row; `row["round"]` counts from 1."""

    def close(self) -> None:
        """Receive no more rows."""


class RowSinks(Protocol):
    """Makes a sink for each run. Worker processes get a copy."""

    def open(self, name: str, settings: Mapping[str, Any], first_round: int) -> RowSink:
        """Return the sink of a run.

        Args:
            name: of the run, such as gfucb/seed=0.
            settings: what config.json records.
            first_round: of the rows to come; above 1 if an interrupted run continues.
        """


class OpenSinks(ClosedAtExit):
    """The sinks of one run, opened with its first row: a finished run leaves them alone."""

    def __init__(self, sinks: Sequence[RowSinks], name: str, settings: Mapping[str, Any]) -> None:
        self._sinks, self._name, self._settings = sinks, name, settings
        self._opened: list[RowSink] = []

    def write(self, row: Row) -> None:
        """Pass a row to all sinks."""
        if not self._opened:
            for own in self._sinks:
                self._opened.append(own.open(self._name, self._settings, int(row["round"])))
        for sink in self._opened:
            sink.write(row)

    def close(self) -> None:
        """Close all that are open."""
        for sink in self._opened:
            sink.close()


@dataclass(frozen=True)
class SunkWork:
    """Work whose rows also go to sinks, in the process that computes them."""

    work: Work
    sinks: OpenSinks

    def rows(self) -> Iterator[Row]:
        """The rows of the work."""
        with self.sinks:
            for row in self.work.rows():
                self.sinks.write(row)
                yield row

    def state(self) -> WorkState | None:
        """That of the work."""
        return self.work.state()

    def load_state(self, state: WorkState) -> None:
        """Continue the work."""
        self.work.load_state(state)


def with_sinks(job: Job, sinks: Sequence[RowSinks]) -> Job:
    """The same job, whose rows also go to the sinks."""
    if not sinks:
        return job
    return replace(job, compute=partial(_sunk_work, job, tuple(sinks)), resumable=True)


def _sunk_work(job: Job, sinks: Sequence[RowSinks]) -> SunkWork:
    return SunkWork(job.work(), OpenSinks(sinks, job.name, job.settings))


def numbers_of(row: Row) -> dict[str, float]:
    """The columns of a row that are numbers, without the round."""
    return {
        name: float(value)
        for name, value in row.items()
        if name != "round" and isinstance(value, int | float)
    }


def flat_settings(settings: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Nested settings with names such as agent.ridge."""
    found: dict[str, str] = {}
    for name, value in settings.items():
        if isinstance(value, Mapping):
            found |= flat_settings(value, f"{prefix}{name}.")
        else:
            found[f"{prefix}{name}"] = str(value)
    return found
