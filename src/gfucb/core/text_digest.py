"""A digest of a text, without the packages that `core/digests.py` needs for other values."""

from __future__ import annotations

import hashlib


def text_digest(text: str) -> str:
    """The first 16 digits of the SHA-256 of a text."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]
