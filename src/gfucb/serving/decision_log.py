"""The decision log: an SQLite file that holds all an agent has decided and learned."""

from __future__ import annotations

import json
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import astuple
from functools import lru_cache, partial
from itertools import takewhile
from typing import Any

from torch import Tensor

from gfucb.core.closing import ClosedAtExit
from gfucb.core.errors import DecisionLogError
from gfucb.core.log_records import LogEvent, LoggedDecision, LoggedRow, RowChange, RowStatus
from gfucb.core.processes import OwnerProcess
from gfucb.serving.checksums import decision_checksum, event_checksum
from gfucb.serving.connections import MEMORY, SameFile, connect, exclusive_log, resolved, time_of
from gfucb.serving.log_schema import prepare
from gfucb.serving.stored_arrays import StoredArray

ROW_COLUMNS = "row, task, action, probability, optimistic_value, mean, variance, low, high"
# Arrays and decisions that were used last are kept in memory, at most so many.
KEPT_ARRAYS, KEPT_DECISIONS = 32, 128


class DecisionLog(ClosedAtExit):
    """Decisions, rewards and fits of one agent, durable when the call that made them returns.

    SQLite in WAL mode with `synchronous=FULL`. Every call of an agent is one transaction; rows past
    their time limit are closed in one before it. One process writes; others may read with
    `read_only=True`. Without a path, or with ":memory:", the log is in memory.

    Args:
        path: of the file; it is created if it does not exist.
        read_only: open an existing file without the right to write.
        clock: returns the time, in seconds since 1970.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        read_only: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.path = resolved(path)
        self.clock = partial(time_of, clock)
        self._owner, self._failure = OwnerProcess(), ""
        self.is_read_only = read_only
        self._mutex = threading.RLock()
        self._tensor = lru_cache(KEPT_ARRAYS)(lambda digest: self._get(digest).tensor())
        self._decision = lru_cache(KEPT_DECISIONS)(self._read_decision)
        self._writer_lock: sqlite3.Connection | None = None
        if read_only and (self.path is None or not self.path.is_file()):
            raise DecisionLogError(f"there is no decision log at {path}")
        if self.path is not None and not self.path.parent.is_dir():
            raise DecisionLogError(f"there is no directory {self.path.parent} for a decision log")
        try:
            if not read_only and self.path is not None:
                self._writer_lock = exclusive_log(self.path)
            self._connection = connect(self.path, read_only=read_only)
        except BaseException:
            self._release()
            raise
        try:
            with self._readable():
                if not read_only:
                    self._connection.execute("PRAGMA journal_mode = WAL")
                    self._connection.execute("PRAGMA synchronous = FULL")
                prepare(self._connection, self.name, read_only=read_only)
                found = self._connection.execute("PRAGMA quick_check(1)").fetchone()[0]
                if found != "ok":
                    raise DecisionLogError(f"{self.name} is damaged: {found}; use a backup")
            self._file = SameFile(self.path)
        except BaseException:
            self.close()
            raise

    @property
    def name(self) -> str:
        """The path, for messages."""
        return "the log in memory" if self.path is None else str(self.path)

    def __repr__(self) -> str:
        return f"DecisionLog({MEMORY if self.path is None else str(self.path)!r})"

    def close(self) -> None:
        """Close the file; a closed log refuses all calls. Closing twice is allowed.

        In a fork nothing happens: the file belongs to the process that has opened it.
        """
        if not self._owner.is_this:
            return
        with self._mutex:
            self._connection.close()
            self._release()

    def _release(self) -> None:
        if self._writer_lock is not None:
            self._writer_lock.close()
            self._writer_lock = None

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All writes in the block are stored together when it ends, or none if it raises."""
        self._owner.require(self.name)
        with self._mutex, self._readable():
            self._file.require()
            try:
                self._connection.execute("BEGIN IMMEDIATE")
                yield
                self._commit()
            except BaseException:
                with suppress(sqlite3.ProgrammingError):  # the connection is closed
                    if self._connection.in_transaction:  # a full disk ends it already
                        self._connection.execute("ROLLBACK")
                raise

    def _commit(self) -> None:
        try:
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            # Whether the disk has the changes is not known until the log is opened again.
            self.close()
            self._failure = f"it could not be written: {error}; open it again with a new agent"
            raise DecisionLogError(f"{self.name} was closed: {self._failure}") from error

    @contextmanager
    def _readable(self) -> Iterator[None]:
        """Errors of SQLite as errors of the log."""
        try:
            yield
        except sqlite3.ProgrammingError as error:
            why = self._failure or str(error)
            raise DecisionLogError(f"{self.name} is closed or not usable: {why}") from error
        except sqlite3.OperationalError as error:
            # Text that is not UTF-8 is one of these errors.
            why = "is damaged" if "decode" in str(error) else "cannot be used"
            raise DecisionLogError(f"{self.name} {why}: {error}") from error
        except (sqlite3.DatabaseError, UnicodeDecodeError, json.JSONDecodeError) as error:
            raise DecisionLogError(
                f"{self.name} is damaged or not a decision log: {error}; use a backup"
            ) from error

    def _query(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        self._owner.require(self.name)
        with self._mutex, self._readable():
            return self._connection.execute(statement, values).fetchall()

    # Arrays

    def put_tensor(self, tensor: Tensor) -> str:
        """Store a tensor, equal ones once; return its digest in hexadecimal digits."""
        return self._put(StoredArray.of_tensor(tensor)).hex()

    def tensor(self, digest: str) -> Tensor:
        """Return the tensor with this digest, verified."""
        return self._tensor(bytes.fromhex(digest))

    def _put(self, array: StoredArray) -> bytes:
        digest = array.digest
        self._connection.execute(
            "INSERT OR IGNORE INTO arrays VALUES (?, ?, ?, ?)",
            (digest, array.dtype, json.dumps(array.shape), array.content),
        )
        return digest

    def _get(self, digest: bytes) -> StoredArray:
        """The array with this digest, which is verified."""
        found = self._query("SELECT dtype, shape, content FROM arrays WHERE digest = ?", (digest,))
        if found:
            dtype, shape, content = found[0]
            try:
                array = StoredArray(str(dtype), tuple(json.loads(shape)), content)
                if array.digest == digest:
                    return array
            except (TypeError, ValueError):
                pass
        raise DecisionLogError(f"an array of {self.name} is missing or damaged; use a backup")

    # Events

    def last_event(self) -> tuple[int, bytes]:
        """The number and the checksum of the last event; 0 and nothing before the first."""
        found = self._query("SELECT event, checksum FROM events ORDER BY event DESC LIMIT 1")
        return (int(found[0][0]), bytes(found[0][1])) if found else (0, b"")

    def checksum(self, event: int) -> bytes | None:
        """The chained checksum of an event; None if there is no such event."""
        found = self._query("SELECT checksum FROM events WHERE event = ?", (event,))
        return bytes(found[0][0]) if found else (b"" if event == 0 else None)

    def add_event(
        self, kind: str, detail: Mapping[str, Any], changes: Sequence[RowChange] = ()
    ) -> LogEvent:
        """Store an event with its changes of rows; call it in a transaction."""
        last, before = self.last_event()
        event = LogEvent(last + 1, self.clock(), kind, detail, tuple(changes))
        self._connection.execute(
            "INSERT INTO events VALUES (?, ?, ?, ?, ?)",
            (event.number, event.time, kind, json.dumps(detail), event_checksum(event, before)),
        )
        self._connection.executemany(
            "UPDATE rows SET status = ?, reward = ?, change_event = ?, change_position = ? "
            "WHERE decision = ? AND row = ?",
            [
                (int(c.status), c.reward, event.number, position, c.decision, c.row)
                for position, c in enumerate(changes)
            ],
        )
        return event

    def events(self, after: int = 0, kinds: Sequence[str] | None = None) -> Iterator[LogEvent]:
        """The events after number `after`, in order, verified."""
        condition, values = "", [after, *(kinds or ())]
        if kinds is not None:
            condition = f" AND kind IN ({', '.join('?' * len(kinds))})"
        numbers = self._query(f"SELECT event FROM events WHERE event > ?{condition}", values)
        for (number,) in sorted(numbers):
            yield self.event(number)

    def event(self, number: int) -> LogEvent:
        """One event, verified by its checksum and that of the event before."""
        found = self._query(
            "SELECT time, kind, detail, checksum FROM events WHERE event = ?", (number,)
        )
        before = self.checksum(number - 1)
        changes = self._query(
            "SELECT decision, row, status, reward FROM rows WHERE change_event = ? "
            "ORDER BY change_position",
            (number,),
        )
        try:
            moment, kind, detail, checksum = found[0]
            rows = tuple(RowChange(d, r, RowStatus(s), reward) for d, r, s, reward in changes)
            event = LogEvent(number, moment, kind, json.loads(detail), rows)
            if before is not None and event_checksum(event, before) == checksum:
                return event
        except (IndexError, TypeError, ValueError):
            pass
        raise DecisionLogError(
            f"event {number} of {self.name} is missing or damaged: its checksum is wrong; "
            "use a backup"
        )

    # Decisions

    def last_decision(self) -> int:
        """The number of the last decision; 0 before the first."""
        return int(self._query("SELECT coalesce(max(decision), 0) FROM decisions")[0][0])

    def add_decision(self, decision: LoggedDecision) -> None:
        """Store a decision; call it in a transaction."""
        given = (decision.offered, decision.available, decision.action_probabilities)
        offered, available, probabilities = (
            None if tensor is None else self._put(StoredArray.of_tensor(tensor)) for tensor in given
        )
        names = decision.action_names
        names_digest = None if names is None else self._put(StoredArray.of_json(names))
        digests = (offered, available, names_digest, probabilities)
        self._connection.execute(
            "INSERT INTO decisions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                decision.number,
                decision.session,
                decision.event,
                decision.time,
                offered,
                int(decision.is_shared),
                *digests[1:],
                decision.monte_carlo_samples,
                decision_checksum(decision, digests),
            ),
        )
        self._connection.executemany(
            "INSERT INTO rows VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, NULL, NULL, NULL)",
            [(decision.number, *astuple(row)) for row in decision.rows],
        )

    def decision(self, number: int) -> LoggedDecision | None:
        """One decision, verified; None if there is none of this number."""
        try:
            return self._decision(number)
        except LookupError:
            return None

    def _read_decision(self, number: int) -> LoggedDecision:
        found = self._query("SELECT * FROM decisions WHERE decision = ?", (number,))
        _, session, event, moment, offered, is_shared, *digests, samples, checksum = found[0]
        available, names, probabilities = digests
        try:
            decision = LoggedDecision(
                number,
                session,
                event,
                moment,
                self._tensor(offered),
                bool(is_shared),
                None if available is None else self._tensor(available),
                None if names is None else tuple(self._get(names).value()),
                self._rows(number),
                None if probabilities is None else self._tensor(probabilities),
                samples,
            )
            if decision_checksum(decision, (offered, *digests)) == checksum:
                return decision
        except (TypeError, ValueError):
            pass
        raise DecisionLogError(
            f"decision {number} of {self.name} is damaged: its checksum is wrong; use a backup"
        )

    def _rows(self, number: int) -> tuple[LoggedRow, ...]:
        found = self._query(
            f"SELECT {ROW_COLUMNS} FROM rows WHERE decision = ? ORDER BY row", (number,)
        )
        return tuple(LoggedRow(*row) for row in found)

    def row_states(self, number: int) -> list[tuple[RowStatus, float | None]]:
        """What is known of the rewards of all rows of a decision."""
        found = self._query(
            "SELECT status, reward FROM rows WHERE decision = ? ORDER BY row", (number,)
        )
        return [(RowStatus(status), reward) for status, reward in found]

    def open_rows(self, before: float, limit: int) -> list[tuple[int, int]]:
        """The first rows without a reward of decisions before this time: (decision, row).

        None after a decision that is later: the cost does not grow with the number of open rows.
        """
        found = self._query(
            "SELECT rows.decision, row, time FROM rows JOIN decisions USING (decision) "
            "WHERE status = 0 ORDER BY rows.decision, row LIMIT ?",
            (limit,),
        )
        overdue = takewhile(lambda row: row[2] <= before, found)
        return [(int(number), int(row)) for number, row, _ in overdue]
