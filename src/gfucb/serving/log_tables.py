"""Decision logs as tables: one row for each row of a decision."""

from __future__ import annotations

import csv
import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from gfucb.core.errors import InvalidInputError
from gfucb.core.files import atomic_write
from gfucb.core.log_protocol import DecisionStore
from gfucb.core.log_records import LoggedDecision, LoggedRow, RowStatus
from gfucb.serving.operations import chosen_input
from gfucb.serving.roster import KINDS, OPEN, TASKS
from gfucb.serving.row_ids import RowId

COLUMNS = (
    "id",
    "time",
    "task",
    "action",
    "action_name",
    "probability",
    "optimistic_value",
    "mean",
    "low",
    "high",
    "status",
    "reward",
    "event",
)


@dataclass(frozen=True)
class RowFilter:
    """Which rows of a log to show.

    Attributes:
        tasks: names as texts; empty for all.
        statuses: such as "open"; empty for all.
        since: the first time, in seconds since 1970.
        until: times before this one.
    """

    tasks: Collection[str] = ()
    statuses: Collection[str] = ()
    since: float = float("-inf")
    until: float = float("inf")

    def __post_init__(self) -> None:
        known = [status.name.lower() for status in RowStatus]
        for status in self.statuses:
            if status not in known:
                raise InvalidInputError(f"status must be one of {known}, got {status!r}")

    def accepts(self, row: dict[str, Any], time: float) -> bool:
        """Whether a row of the table is shown."""
        return (
            (not self.tasks or row["task"] in self.tasks)
            and (not self.statuses or row["status"] in self.statuses)
            and self.since <= time < self.until
        )


def log_rows(
    log: DecisionStore,
    which: RowFilter | None = None,
    *,
    newest_first: bool = False,
    inputs: bool = False,
) -> Iterator[dict[str, Any]]:
    """The rows of all decisions, with the columns `COLUMNS`.

    With `inputs` the chosen candidates are further columns: "input 0", "input 1" and so on.
    """
    tasks, tokens = _names(log)
    for name in which.tasks if which is not None else ():
        if name not in tasks:
            raise InvalidInputError(
                f"{log.name} has no task {name!r}; names that are no texts are written as JSON"
            )
    numbers: Sequence[int] = range(1, log.last_decision() + 1)
    for number in reversed(numbers) if newest_first else numbers:
        decision = log.decision(number)
        if decision is None:
            continue
        for row, (status, reward) in zip(decision.rows, log.row_states(number), strict=True):
            shown = _shown(decision, row, tasks, tokens) | {
                "status": status.name.lower(),
                "reward": reward,
                "event": decision.event,
            }
            if inputs:
                values = chosen_input(decision, row).reshape(-1).tolist()
                shown |= {f"input {index}": value for index, value in enumerate(values)}
            if which is None or which.accepts(shown, decision.time):
                yield shown


def _shown(
    decision: LoggedDecision, row: LoggedRow, tasks: Sequence[str], tokens: dict[int, str]
) -> dict[str, Any]:
    names = decision.action_names
    time = datetime.fromtimestamp(decision.time, UTC).isoformat(timespec="milliseconds")
    return {
        "id": str(RowId(tokens[decision.session], decision.number, row.row)),
        "time": time,
        "task": tasks[row.task],
        "action": row.action,
        "action_name": None if names is None else _text(names[row.action]),
        "probability": row.probability,
        "optimistic_value": row.optimistic_value,
        "mean": row.mean,
        "low": row.low,
        "high": row.high,
    }


def _names(log: DecisionStore) -> tuple[list[str], dict[int, str]]:
    """The names of tasks by number, and the tokens of sessions."""
    tasks: list[str] = []
    tokens: dict[int, str] = {}
    for event in log.events(0, KINDS):
        if event.kind == TASKS:
            tasks += [_text(name) for name in event.detail["names"]]
        elif event.kind == OPEN:
            tokens[event.number] = event.detail["token"]
    return tasks, tokens


def _text(encoded: str) -> str:
    """A name for people: texts without quotes, others as JSON."""
    name = json.loads(encoded)
    return name if isinstance(name, str) else encoded


def write_csv(path: Path, rows: Iterable[dict[str, Any]]) -> int:
    """Write rows as CSV, atomically; return how many. Floats have all their digits."""
    count = 0

    def write(target: Path) -> None:
        nonlocal count
        with open(target, "w", newline="", encoding="utf-8") as file:
            writer: csv.DictWriter[str] | None = None
            for row in rows:
                if writer is None:
                    writer = csv.DictWriter(file, list(row))
                    writer.writeheader()
                if not row.keys() <= set(writer.fieldnames):
                    raise InvalidInputError(
                        f"the inputs of {row['id']} have more numbers than those before; export "
                        "the log without inputs, or a part of it"
                    )
                writer.writerow(row)
                count += 1
            if writer is None:
                csv.DictWriter(file, COLUMNS).writeheader()

    atomic_write(path, write)
    return count


def verify_log(log: DecisionStore) -> tuple[int, int]:
    """Read and verify all events and decisions; return how many there are of each."""
    events = sum(1 for _ in log.events())
    decisions = sum(log.decision(n) is not None for n in range(1, log.last_decision() + 1))
    return events, decisions
