"""Dates as parts: the day of the week, the time of the year, the time of the day."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from gfucb.core.errors import InvalidInputError
from gfucb.core.validation.settings import validate_number
from gfucb.tables.column_values import (
    Array,
    fitted_missing,
    mean_and_spread,
    refuse,
    validate_missing,
)
from gfucb.tables.raw_columns import RawColumn

WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
DAYS_OF_A_YEAR = 365.2425
# Dates within fewer days say little about the time of the year.
SHORTEST_SEASON = 60.0
FEATURES = {
    "weekday": [f" {day}" for day in WEEKDAYS],
    "season": [" season sin", " season cos"],
    "hour": [" hour sin", " hour cos"],
    "elapsed": [" elapsed"],
}


@dataclass(frozen=True)
class Date:
    """Dates and times, in the local time that they state.

    Attributes:
        parts: any of "weekday" (one-hot), "season" and "hour" (sine and cosine), and "elapsed",
            the days since `center` divided by `scale`. By default those of the first three that
            vary in the table: seasons if it has dates of more than 60 days. A model with
            "elapsed" extrapolates to later dates, so it is only used if stated.
        center: days since 1970-01-01.
        scale: days.
    """

    parts: Sequence[str] | None = None
    center: float | None = None
    scale: float | None = None
    missing: bool | None = None
    kind: ClassVar[str] = "date"

    def __post_init__(self) -> None:
        validate_missing(self.missing)
        if self.center is not None:
            validate_number(self.center, "center")
        if self.scale is not None:
            validate_number(self.scale, "scale", above=0.0)
        if self.parts is None:
            return
        is_list = isinstance(self.parts, list | tuple)
        if not is_list or not self.parts or any(part not in FEATURES for part in self.parts):
            raise InvalidInputError(
                f"parts must be a list of some of {', '.join(FEATURES)}, got {self.parts!r:.80}"
            )
        object.__setattr__(self, "parts", tuple(p for p in FEATURES if p in self.parts))

    def fitted(self, column: RawColumn) -> Date:
        """The parts that vary, and the mean and spread of the dates."""
        days = _days(column)[~column.missing]
        center, scale = mean_and_spread(days)
        parts = self.parts
        if parts is None:
            span = float(np.ptp(days)) if len(days) else 0.0
            varies = {
                "weekday": len(np.unique(np.floor(days) % 7)) > 1,
                "season": span > SHORTEST_SEASON,
                "hour": len(np.unique(days % 1)) > 1,
            }
            parts = tuple(part for part, varied in varies.items() if varied) or ("weekday",)
        return replace(
            self,
            parts=parts,
            center=center if self.center is None else self.center,
            scale=scale if self.scale is None else self.scale,
            missing=fitted_missing(self.missing, column),
        )

    def feature_names(self) -> list[str]:
        """The names of all parts."""
        assert self.parts is not None
        return [name for part in self.parts for name in FEATURES[part]]

    def encode(self, column: RawColumn) -> Array:
        """The parts, [row, feature]."""
        assert self.parts is not None and self.center is not None and self.scale is not None
        days = np.where(column.missing, 0.0, _days(column))
        encoded = {
            "weekday": np.eye(7)[((np.floor(days) + 3) % 7).astype(int)],  # 1970-01-01: Thursday
            "season": _circle(days / DAYS_OF_A_YEAR),
            "hour": _circle(days % 1),
            "elapsed": ((days - self.center) / self.scale)[:, None],
        }
        features = np.concatenate([encoded[part] for part in self.parts], axis=1)
        return np.where(column.missing[:, None], 0.0, features)


def _days(column: RawColumn) -> Array:
    """Days since 1970-01-01 with fractions, [row]; NaN where missing."""
    parsed = column.parsed()
    if parsed.kind == "empty":
        return np.full(len(column), np.nan)
    if parsed.kind != "date":
        row = int(np.flatnonzero(~column.missing)[0])
        refuse(column, Date.kind, row, "dates, or texts such as 2026-01-31")
    days: Array = (parsed.values - np.datetime64("1970-01-01", "us")) / np.timedelta64(1, "D")
    return days


def _circle(turns: Array) -> Array:
    """Sine and cosine of a number of turns: [row] -> [row, 2]."""
    angles = 2 * math.pi * turns
    return np.stack([np.sin(angles), np.cos(angles)], axis=1)
