"""What a shard keeps on disk: checkpoints of its agent, and the rewards since the last one.

A checkpoint is written after each fit. The one before it stays until the next rewards come: then
all shards have written theirs. So there is always a checkpoint that all shards have, and the
rewards after it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from safetensors.torch import load_file, save_file
from torch import Tensor

from gfucb.core import checkpoint
from gfucb.core.files import atomic_write, is_temporary
from gfucb.core.protocols import Agent

CHECKPOINT, REWARDS, SUFFIX = "checkpoint", "rewards", ".safetensors"


class ShardDirectory:
    """The directory of one shard. Calls of `observe` are counted from 1."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir(parents=True, exist_ok=True)
        for file in filter(is_temporary, path.iterdir()):  # of a process that was killed
            file.unlink()

    @property
    def checkpoints(self) -> list[int]:
        """After which calls there are checkpoints; 0 is the agent without data."""
        return [0, *self._numbers(CHECKPOINT)]

    @property
    def last(self) -> int:
        """The last call that is in the directory."""
        return max(*self.checkpoints, *self._numbers(REWARDS), 0)

    def log(self, call: int, tensors: Mapping[str, Tensor]) -> None:
        """Keep the arguments of a call, and forget what no longer is needed."""
        newest = self.checkpoints[-1]
        for number in self._numbers(CHECKPOINT):
            if number < newest:
                self._file(CHECKPOINT, number).unlink()
        for number in self._numbers(REWARDS):
            if number <= newest:
                self._file(REWARDS, number).unlink()
        tensors = {name: x.detach().cpu().contiguous() for name, x in tensors.items()}
        atomic_write(self._file(REWARDS, call), lambda path: save_file(tensors, path))

    def logged(self, call: int) -> dict[str, Tensor]:
        """The arguments of a call."""
        return load_file(self._file(REWARDS, call))

    def save(self, agent: Agent, call: int) -> None:
        """Write a checkpoint after a call."""
        checkpoint.save(agent, self._file(CHECKPOINT, call))

    def restore(self, agent: Agent, call: int) -> None:
        """Continue from the checkpoint after a call, and forget all that came later."""
        if call:
            checkpoint.restore(agent, self._file(CHECKPOINT, call))
        for number in self._numbers(CHECKPOINT):
            if number > call:
                self._file(CHECKPOINT, number).unlink()

    def forget_after(self, call: int) -> None:
        """Forget the arguments of calls that some shard does not have."""
        for number in self._numbers(REWARDS):
            if number > call:
                self._file(REWARDS, number).unlink()

    def _file(self, kind: str, call: int) -> Path:
        return self.path / f"{kind}-{call:012d}{SUFFIX}"

    def _numbers(self, kind: str) -> list[int]:
        names = self.path.glob(f"{kind}-*{SUFFIX}")
        return sorted(int(path.name[len(kind) + 1 : -len(SUFFIX)]) for path in names)
