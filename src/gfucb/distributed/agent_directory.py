"""The directory of a sharded agent: whose it is, and who writes to it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from gfucb.core.errors import SavedStateError
from gfucb.core.files import atomic_write
from gfucb.core.sqlite_files import exclusive

FACTS, LOCK = "agent.json", "lock"


@dataclass(frozen=True)
class InputKind:
    """Shape and type of the input of one action, which are the same in all calls."""

    shape: tuple[int, ...]
    dtype: torch.dtype

    def like(self) -> torch.Tensor:
        """No inputs of this kind, [0, *input]."""
        return torch.empty(0, *self.shape, dtype=self.dtype)


class AgentDirectory:
    """The directories of all shards, locked for one `ShardedAgent` until it is closed.

    Args:
        path: of the directory; it is created if it does not exist.
        num_tasks: of the agent; a directory of another number is refused.
        num_shards: the same.
    """

    def __init__(self, path: Path, *, num_tasks: int, num_shards: int) -> None:
        self.path = path
        try:
            path.mkdir(parents=True, exist_ok=True)
            self._lock = exclusive(path / LOCK)
        except BlockingIOError as error:
            raise SavedStateError(f"{path} is in use by another ShardedAgent") from error
        except OSError as error:
            raise SavedStateError(f"{path} cannot be used: {error}") from error
        self._facts: dict[str, Any] = {"num_tasks": num_tasks, "num_shards": num_shards}
        try:
            self._require_own()
        except BaseException:
            self.close()
            raise

    def _require_own(self) -> None:
        file = self.path / FACTS
        if not file.exists():
            self._write()
            return
        try:
            found = json.loads(file.read_text(encoding="utf-8"))
            for name, own in self._facts.items():
                if found[name] != own:
                    raise SavedStateError(
                        f"{self.path} was written by an agent with {name}={found[name]}, this "
                        f"one's is {own}; shards cannot be divided anew"
                    )
        except (ValueError, KeyError, TypeError) as error:
            raise SavedStateError(f"{file} is damaged: {error!r}; use a backup") from error
        self._facts = found

    @property
    def input_kind(self) -> InputKind | None:
        """What the agent has learned from; None before the first rewards."""
        found = self._facts.get("inputs")
        if found is None:
            return None
        return InputKind(tuple(found["shape"]), getattr(torch, found["dtype"]))

    def keep(self, kind: InputKind) -> None:
        """Keep the kind of inputs, before the first rewards."""
        dtype = str(kind.dtype).removeprefix("torch.")
        self._facts |= {"inputs": {"shape": list(kind.shape), "dtype": dtype}}
        self._write()

    def _write(self) -> None:
        text = json.dumps(self._facts)
        atomic_write(self.path / FACTS, lambda file: file.write_text(text, encoding="utf-8"))

    def close(self) -> None:
        """Release the lock."""
        self._lock.close()
