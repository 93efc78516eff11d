"""Checkpoints of runs: what one holds, and when the next one is worth its time."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from torch import Tensor

from gfucb.core.checkpoint import parse_state, read_state, state_content, write_state
from gfucb.runs.work import WorkState, number

# A checkpoint follows a row unless checkpoints would take more than this share of the time.
CHECKPOINT_SHARE = 0.1
FILE_NAME = "checkpoint.safetensors"


@dataclass(frozen=True)
class RunCheckpoint:
    """The state of a run after some of its rows."""

    num_rows: int = 0
    cpu_seconds: float = 0.0
    state: WorkState = field(default_factory=WorkState)

    def write(self, directory: Path) -> None:
        """Replace the checkpoint of a run directory."""
        write_state(directory / FILE_NAME, self.state.tensors, self._facts())

    def content(self) -> bytes:
        """The content of the file that `write` writes."""
        return state_content(self.state.tensors, self._facts())

    @classmethod
    def read(cls, directory: Path) -> Self | None:
        """The checkpoint of a run directory, if it has one."""
        path = directory / FILE_NAME
        return cls._of(*read_state(path)) if path.exists() else None

    @classmethod
    def parse(cls, content: bytes) -> Self:
        """The checkpoint from the content of its file."""
        return cls._of(*parse_state(content, FILE_NAME))

    def _facts(self) -> dict[str, str]:
        own = {"rows": str(self.num_rows), "cpu_seconds": repr(self.cpu_seconds)}
        return self.state.facts | own

    @classmethod
    def _of(cls, tensors: dict[str, Tensor], facts: Mapping[str, str]) -> Self:
        num_rows, seconds = number(facts, "rows", int), number(facts, "cpu_seconds", float)
        return cls(num_rows, seconds, WorkState(tensors, dict(facts)))


class CheckpointSchedule:
    """Measures what checkpoints cost, and says when one is due."""

    def __init__(self) -> None:
        self._started, self._spent = time.perf_counter(), 0.0

    def is_due(self) -> bool:
        """Whether checkpoints have taken at most `CHECKPOINT_SHARE` of the time so far."""
        return self._spent <= CHECKPOINT_SHARE * (time.perf_counter() - self._started)

    @contextmanager
    def measured(self) -> Iterator[None]:
        """Count the time of this block as that of a checkpoint."""
        before = time.perf_counter()
        yield
        self._spent += time.perf_counter() - before
