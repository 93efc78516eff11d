"""Kinds of columns whose values become vectors: hashed text, embeddings, vectors."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from gfucb.core.errors import InvalidInputError
from gfucb.core.validation.arrays import LARGEST_INPUT
from gfucb.core.validation.settings import validate_count
from gfucb.tables.column_values import (
    Array,
    fitted_missing,
    refuse,
    texts_of,
    validate_missing,
)
from gfucb.tables.raw_columns import RawColumn

# Inputs are dense: every row has as many numbers.
MOST_HASHED = 10**5


@dataclass(frozen=True)
class Hashed:
    """Text with many different values: a pseudo-random vector of `size` signs for each value.

    Values need not be known before: equal texts have equal vectors, others nearly orthogonal ones.
    """

    size: int = 16
    missing: bool | None = None
    kind: ClassVar[str] = "hashed"

    def __post_init__(self) -> None:
        validate_count(self.size, "size", at_most=MOST_HASHED)
        validate_missing(self.missing)

    def fitted(self, column: RawColumn) -> Hashed:
        """Whether values are missing."""
        return replace(self, missing=fitted_missing(self.missing, column))

    def feature_names(self) -> list[str]:
        """Numbered."""
        return [f" hash {index}" for index in range(self.size)]

    def encode(self, column: RawColumn) -> Array:
        """Signs divided by the root of their number, [row, size]."""
        encoded = np.zeros((len(column), self.size))
        vectors: dict[str, Array] = {}
        for row, text in enumerate(texts_of(column)):
            if text is not None:
                if text not in vectors:
                    vectors[text] = _signs(text, self.size)
                encoded[row] = vectors[text]
        return encoded


@dataclass(frozen=True)
class Embedding:
    """Categories that have vectors, such as learned embeddings, and a feature for unknown ones.

    Attributes:
        vectors: the vector of each known value; all have one length.
    """

    vectors: Mapping[str, Sequence[float]]
    missing: bool | None = None
    kind: ClassVar[str] = "embedding"

    def __post_init__(self) -> None:
        validate_missing(self.missing)
        if not isinstance(self.vectors, Mapping) or not self.vectors:
            raise InvalidInputError("vectors must be a dict with a vector for each known text")
        found = {}
        for level, vector in self.vectors.items():
            text = str(level).strip()  # as values are read
            if text in found:
                raise InvalidInputError(f"vectors must have one vector for {text!r}, got two")
            try:
                found[text] = tuple(float(value) for value in vector)
            except (TypeError, ValueError):
                raise InvalidInputError(f"the vector of {level!r} must be numbers") from None
            if not all(abs(value) <= LARGEST_INPUT for value in found[text]):
                raise InvalidInputError(
                    f"the vector of {level!r} must be numbers of at most {LARGEST_INPUT:g}"
                )
        sizes = {len(vector) for vector in found.values()}
        if len(sizes) > 1 or 0 in sizes:
            raise InvalidInputError(
                f"all vectors must have one length of at least 1, got {sorted(sizes)}"
            )
        object.__setattr__(self, "vectors", found)

    @property
    def size(self) -> int:
        """The length of a vector."""
        return len(next(iter(self.vectors.values())))

    def fitted(self, column: RawColumn) -> Embedding:
        """Whether values are missing."""
        return replace(self, missing=fitted_missing(self.missing, column))

    def feature_names(self) -> list[str]:
        """Numbered, and "unknown"."""
        return [*(f" {index}" for index in range(self.size)), " unknown"]

    def encode(self, column: RawColumn) -> Array:
        """The vectors, or zeros and a 1 for unknown values: [row, size + 1]."""
        encoded = np.zeros((len(column), self.size + 1))
        for row, text in enumerate(texts_of(column)):
            if text is not None and text in self.vectors:
                encoded[row, :-1] = self.vectors[text]
            elif text is not None:
                encoded[row, -1] = 1
        return encoded


@dataclass(frozen=True)
class Vector:
    """A vector of numbers in each row, such as the embedding of a text."""

    size: int | None = None
    missing: bool | None = None
    kind: ClassVar[str] = "vector"

    def __post_init__(self) -> None:
        if self.size is not None:
            validate_count(self.size, "size")
        validate_missing(self.missing)

    def fitted(self, column: RawColumn) -> Vector:
        """The length of the vectors."""
        if column.kind != "vector":
            refuse(column, self.kind, 0, "a list of numbers")
        size = column.values.shape[1] if self.size is None else self.size
        return replace(self, size=size, missing=fitted_missing(self.missing, column))

    def feature_names(self) -> list[str]:
        """Numbered."""
        assert self.size is not None
        return [f" {index}" for index in range(self.size)]

    def encode(self, column: RawColumn) -> Array:
        """The vectors, [row, size]."""
        assert self.size is not None
        if column.kind == "empty":
            return np.zeros((len(column), self.size))
        if column.kind != "vector" or column.values.shape[1] != self.size:
            row = int(np.flatnonzero(~column.missing)[0])
            refuse(column, self.kind, row, f"a list of {self.size} numbers")
        return np.where(column.missing[:, None], 0.0, column.values)


def _signs(text: str, size: int) -> Array:
    digest = hashlib.shake_256(text.encode("utf-8", "surrogatepass")).digest((size + 7) // 8)
    bits = np.unpackbits(np.frombuffer(digest, dtype=np.uint8))[:size]
    return (2 * bits.astype(np.float64) - 1) / math.sqrt(size)
