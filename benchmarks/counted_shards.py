"""Shards that count what they exchange."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from gfucb.core.shards import Shards


@dataclass
class CountedShards:
    """Shards that count their exchanges, and the bytes that this shard sends."""

    inner: Shards
    exchanges: int = 0
    sent: int = 0
    seconds: float = 0.0

    @property
    def index(self) -> int:
        """Of the shard."""
        return self.inner.index

    @property
    def count(self) -> int:
        """Of all shards."""
        return self.inner.count

    def sum(self, values: Tensor) -> Tensor:
        """The sum, counted."""
        return self._counted(self.inner.sum, values)

    def gather(self, rows: Tensor) -> Tensor:
        """All rows, counted."""
        return self._counted(self.inner.gather, rows)

    def _counted(self, exchange: Callable[[Tensor], Tensor], values: Tensor) -> Tensor:
        begin = time.perf_counter()
        found = exchange(values)
        self.seconds += time.perf_counter() - begin
        self.exchanges += 1
        self.sent += values.numel() * values.element_size()
        return found

    def taken(self) -> dict[str, float]:
        """What was counted since the last call."""
        found = {"exchanges": self.exchanges, "bytes": self.sent, "seconds": self.seconds}
        self.exchanges, self.sent, self.seconds = 0, 0, 0.0
        return found
