"""The protocol of decision logs; `gfucb.DecisionLog` is the implementation on SQLite."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from torch import Tensor

from gfucb.core.log_records import LogEvent, LoggedDecision, RowChange, RowStatus


@runtime_checkable
class DecisionStore(Protocol):
    """Stores decisions and events of one agent, and returns them as they were stored.

    `add_event`, `add_decision` and `put_tensor` are called in a `transaction`. What is stored in it
    is durable when the block ends, and gone if the block raises an error. Reading verifies what is
    read, and raises `DecisionLogError` where it is damaged.
    """

    @property
    def name(self) -> str:
        """What messages call this log."""

    @property
    def path(self) -> Path | None:
        """The file; None if there is none. Checkpoints are written beside it."""

    @property
    def is_read_only(self) -> bool:
        """Whether it refuses all writes."""

    @property
    def clock(self) -> Callable[[], float]:
        """Returns the time, in seconds since 1970."""

    def close(self) -> None:
        """Refuse all calls from now on."""

    def transaction(self) -> AbstractContextManager[None]:
        """All writes in the block are stored together, or none."""

    def put_tensor(self, tensor: Tensor) -> str:
        """Store a tensor, equal ones once; return its digest in hexadecimal digits."""

    def tensor(self, digest: str) -> Tensor:
        """Return the tensor with this digest."""

    def add_event(
        self, kind: str, detail: Mapping[str, Any], changes: Sequence[RowChange] = ()
    ) -> LogEvent:
        """Store the next event, and the changes of rows that it makes."""

    def events(self, after: int = 0, kinds: Sequence[str] | None = None) -> Iterator[LogEvent]:
        """The events after number `after`, in order; of all kinds, or of some."""

    def last_event(self) -> tuple[int, bytes]:
        """The number and the checksum of the last event; 0 and b"" before the first."""

    def checksum(self, event: int) -> bytes | None:
        """The checksum of an event and of all before it; None if there is no such event."""

    def add_decision(self, decision: LoggedDecision) -> None:
        """Store a decision."""

    def last_decision(self) -> int:
        """The number of the last decision; 0 before the first."""

    def decision(self, number: int) -> LoggedDecision | None:
        """The decision with this number; None if there is none."""

    def row_states(self, number: int) -> list[tuple[RowStatus, float | None]]:
        """Status and reward of each row of a decision."""

    def open_rows(self, before: float, limit: int) -> list[tuple[int, int]]:
        """The first rows without a reward of decisions before this time: (decision, row)."""
