"""Objects that only the process that made them may use."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from gfucb.core.errors import DecisionLogError


@dataclass(frozen=True)
class OwnerProcess:
    """The process that made an object with files, locks or threads.

    A fork inherits the object, but neither its threads nor its locks on files, and a lock that
    another thread held stays closed for ever. Ask before a lock is taken.
    """

    number: int = field(default_factory=os.getpid)

    @property
    def is_this(self) -> bool:
        """Whether the caller runs in it."""
        return os.getpid() == self.number

    def require(self, what: str) -> None:
        """Refuse to use an object that a fork has inherited."""
        if not self.is_this:
            raise DecisionLogError(
                f"{what} was opened by process {self.number}, and this process ({os.getpid()}) is "
                "a fork of it; build agents and open logs in the process that uses them"
            )
