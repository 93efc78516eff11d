"""Ids of decisions and of their rows.

An id is "TOKEN-DECISION" for a decision and "TOKEN-DECISION.ROW" for one of its rows. The token
is drawn at random whenever an agent opens a log, so ids of different agents, and of the same agent
after a restart, are different. It does not follow from the seed: agents often share one.
"""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass
from typing import Any

from gfucb.core.errors import InvalidInputError

PATTERN = re.compile(r"([0-9a-f]{16})-([1-9][0-9]{0,17})(?:\.(0|[1-9][0-9]{0,17}))?")


def new_token() -> str:
    """64 random bits as hexadecimal digits."""
    return secrets.token_hex(8)


@dataclass(frozen=True)
class RowId:
    """The id of a decision, or of one of its rows."""

    token: str
    decision: int
    row: int | None = None

    def __str__(self) -> str:
        text = f"{self.token}-{self.decision}"
        return text if self.row is None else f"{text}.{self.row}"

    @classmethod
    def of(cls, text: Any) -> RowId:
        """Read an id."""
        match = PATTERN.fullmatch(text) if isinstance(text, str) else None
        if match is None:
            raise InvalidInputError(
                "an id must be text such as '0123456789abcdef-7.0', as in `decision.ids`, "
                f"got {text!r}"
            )
        token, decision, row = match.groups()
        return cls(token, int(decision), None if row is None else int(row))
