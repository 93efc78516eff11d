"""Kinds of columns: how the values of a column become numbers.

Every kind is a value: a frozen dataclass whose fields are what JSON can hold. A field that is None
is estimated from a table by `fitted`. All kinds have a feature that is 1 where a value is missing,
if `missing` is true; without it missing values are encoded as the mean, or as no category.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Protocol, Self, runtime_checkable

import numpy as np

from gfucb.core.errors import InvalidInputError
from gfucb.core.validation.arrays import LARGEST_INPUT
from gfucb.core.validation.settings import validate_number
from gfucb.tables.column_values import (
    Array,
    fitted_missing,
    mean_and_spread,
    numbers_of,
    refuse,
    texts_of,
    validate_missing,
)
from gfucb.tables.raw_columns import RawColumn

# Rarer categories share the feature of unknown ones.
MOST_LEVELS = 50


@runtime_checkable
class ColumnKind(Protocol):
    """Encodes the values of a column as features [row, feature]."""

    kind: ClassVar[str]

    @property
    def missing(self) -> bool | None:
        """Whether there is a feature for missing values; None if a table is to decide."""

    def fitted(self, column: RawColumn) -> Self:
        """The same with all fields that were None, from the values of a column."""

    def feature_names(self) -> list[str]:
        """Of the features of a value, without that for missing values."""

    def encode(self, column: RawColumn) -> Array:
        """[row] -> [row, feature], zero where a value is missing."""


@dataclass(frozen=True)
class Number:
    """Numbers, standardised as (value - center) / scale; missing ones are the center.

    Both are estimated as mean and standard deviation. The default agent standardises again, by all
    data it has seen; other agents rely on these.
    """

    center: float | None = None
    scale: float | None = None
    missing: bool | None = None
    kind: ClassVar[str] = "number"

    def __post_init__(self) -> None:
        largest = LARGEST_INPUT
        if self.center is not None:
            validate_number(self.center, "center", at_least=-largest, at_most=largest)
        if self.scale is not None:
            validate_number(self.scale, "scale", above=0.0, at_most=largest)
        validate_missing(self.missing)

    def fitted(self, column: RawColumn) -> Number:
        """Mean and standard deviation of the values."""
        values = numbers_of(column, self.kind)
        center, scale = mean_and_spread(values[~column.missing])
        return replace(
            self,
            center=center if self.center is None else self.center,
            scale=scale if self.scale is None else self.scale,
            missing=fitted_missing(self.missing, column),
        )

    def feature_names(self) -> list[str]:
        """One feature without a name of its own."""
        return [""]

    def encode(self, column: RawColumn) -> Array:
        """Standardised numbers, [row, 1]."""
        assert self.center is not None and self.scale is not None
        numbers = (numbers_of(column, self.kind) - self.center) / self.scale
        return np.where(column.missing, 0.0, numbers)[:, None]


@dataclass(frozen=True)
class Boolean:
    """True and false as 1 and 0; the numbers 1 and 0, and the texts "true" and "false", too."""

    missing: bool | None = None
    kind: ClassVar[str] = "boolean"

    def __post_init__(self) -> None:
        validate_missing(self.missing)

    def fitted(self, column: RawColumn) -> Boolean:
        """Whether values are missing."""
        self.encode(column)
        return replace(self, missing=fitted_missing(self.missing, column))

    def feature_names(self) -> list[str]:
        """One feature without a name of its own."""
        return [""]

    def encode(self, column: RawColumn) -> Array:
        """0 and 1, [row, 1]."""
        expected = "true or false"
        numbers = np.where(column.missing, 0.0, numbers_of(column, self.kind, expected))
        wrong = np.flatnonzero((numbers != 0) & (numbers != 1))
        if len(wrong):
            refuse(column, self.kind, int(wrong[0]), expected)
        return numbers[:, None]


@dataclass(frozen=True)
class Category:
    """A few different values, one-hot, with a last feature for all values that are unknown.

    Attributes:
        levels: the known values, as text; by default those of the table, sorted. Of more than 50
            the 50 most frequent ones are known.
    """

    levels: Sequence[str] | None = None
    missing: bool | None = None
    kind: ClassVar[str] = "category"

    def __post_init__(self) -> None:
        validate_missing(self.missing)
        if self.levels is None:
            return
        if isinstance(self.levels, str) or not all(isinstance(x, str) for x in self.levels):
            raise InvalidInputError(f"levels must be a list of texts, got {self.levels!r:.80}")
        object.__setattr__(self, "levels", tuple(self.levels))
        if len(set(self.levels)) < len(self.levels) or "" in self.levels:
            raise InvalidInputError("levels must be different texts, none of them empty")

    def fitted(self, column: RawColumn) -> Category:
        """The values of the column, or its most frequent ones."""
        levels = self.levels
        if levels is None:
            counts = Counter(text for text in texts_of(column) if text is not None)
            frequent = sorted(counts, key=lambda level: (-counts[level], level))
            levels = tuple(sorted(frequent[:MOST_LEVELS]))
        return replace(self, levels=levels, missing=fitted_missing(self.missing, column))

    def feature_names(self) -> list[str]:
        """The levels, and "unknown"."""
        assert self.levels is not None
        return [*(f"={level}" for level in self.levels), " unknown"]

    def encode(self, column: RawColumn) -> Array:
        """One-hot levels, [row, level + 1]."""
        assert self.levels is not None
        # Values have no spaces around them; levels may, if the schema is of an earlier version.
        number_of = {level.strip(): number for number, level in enumerate(self.levels)}
        number_of |= {level: number for number, level in enumerate(self.levels)}
        encoded = np.zeros((len(column), len(self.levels) + 1))
        for row, text in enumerate(texts_of(column)):
            if text is not None:
                encoded[row, number_of.get(text, -1)] = 1
        return encoded
