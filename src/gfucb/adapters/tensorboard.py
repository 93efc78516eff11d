"""Rows of runs in TensorBoard. This module needs the extra `tensorboard`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gfucb.core.records import Row
from gfucb.runs.row_sinks import numbers_of

try:
    from torch.utils.tensorboard import SummaryWriter
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "this sink needs TensorBoard: pip install 'gfucb[tensorboard]'"
    ) from error


@dataclass(frozen=True)
class TensorBoardRows:
    """Writes every column of numbers as a scalar, one directory for each run.

    `tensorboard --logdir DIRECTORY` shows them.

    Attributes:
        directory: of all runs.
    """

    directory: Path | str

    def open(self, name: str, settings: Mapping[str, Any], first_round: int) -> TensorBoardSink:
        """The sink of a run; rows from `first_round` on replace those of an interrupted one."""
        writer = SummaryWriter(str(Path(self.directory) / name), purge_step=first_round)
        writer.add_text("settings", f"```\n{json.dumps(settings, indent=1)}\n```", 0)
        return TensorBoardSink(writer)


@dataclass(frozen=True)
class TensorBoardSink:
    """Writes the rows of one run."""

    writer: Any

    def write(self, row: Row) -> None:
        """One scalar for each number."""
        for column, value in numbers_of(row).items():
            self.writer.add_scalar(column, value, int(row["round"]))

    def close(self) -> None:
        """Write what is buffered."""
        self.writer.close()
