"""Checksums of events and decisions: a log in which a bit has changed is refused."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import astuple
from typing import Any

from gfucb.core.log_records import LogEvent, LoggedDecision

SIZE = 16


def event_checksum(event: LogEvent, before: bytes) -> bytes:
    """Of an event and, by the checksum `before`, of all events before it."""
    changes = [(c.decision, c.row, int(c.status), c.reward) for c in event.changes]
    content = (event.number, event.time, event.kind, event.detail, changes)
    return _digest(before, content)


def decision_checksum(decision: LoggedDecision, digests: Sequence[bytes | None]) -> bytes:
    """Of all that is known when a decision is made; `digests` are those of its arrays."""
    rows = [astuple(row) for row in decision.rows]
    numbers = (decision.number, decision.session, decision.event, decision.monte_carlo_samples)
    content = (*numbers, decision.time, rows)
    arrays = b"".join(digest or b"-" for digest in digests)
    return _digest(arrays + bytes([decision.is_shared]), content)


def _digest(start: bytes, content: Any) -> bytes:
    # JSON writes the shortest digits that give the same float, so equal numbers are equal texts.
    text = json.dumps(content, sort_keys=True)
    return hashlib.blake2b(start + text.encode(), digest_size=SIZE).digest()
