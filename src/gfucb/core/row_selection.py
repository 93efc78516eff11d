"""Rows that callers select: by a number, a list, a slice or a mask."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gfucb.core.errors import InvalidInputError


def selected_rows(rows: Any, count: int) -> Tensor:
    """The numbers of the selected ones of `count` rows, [n].

    Columns of data frames select by position, whatever their index. A number that is too large is
    an IndexError, which ends a loop over the rows.
    """
    is_number = isinstance(rows, int | np.integer) and not isinstance(rows, bool)
    if not isinstance(rows, slice | Tensor) and not is_number:
        rows = torch.tensor(_positions(rows, count))
    if isinstance(rows, Tensor):
        _require_selection(rows, count)
    elif is_number and not -count <= rows < count:
        raise _no_such_row(rows, count)
    return torch.arange(count)[rows].reshape(-1)


def _positions(rows: Any, count: int) -> NDArray[Any]:
    try:
        array = np.asarray(rows)
        if array.dtype.kind == "O":  # nullable booleans
            array = np.asarray(array.tolist())
    except ValueError:  # lists of several lengths
        array = np.asarray(None)
    if array.shape == (0,):
        return np.zeros(0, dtype=np.int64)
    if array.dtype.kind not in "biu":
        raise InvalidInputError(f"{_expected(count)}, got {rows!r:.80}")
    return array if array.dtype.kind == "b" else array.astype(np.int64)


def _require_selection(rows: Tensor, count: int) -> None:
    if rows.ndim > 1 or rows.is_floating_point() or rows.is_complex():
        raise InvalidInputError(f"{_expected(count)}, got {rows.dtype} of shape {list(rows.shape)}")
    if rows.dtype == torch.bool and tuple(rows.shape) != (count,):
        raise InvalidInputError(f"{_expected(count)}, got a mask of shape {list(rows.shape)}")
    is_mask = rows.dtype in (torch.bool, torch.uint8)
    if not is_mask and bool(((rows < -count) | (rows >= count)).any()):
        raise _no_such_row(rows.tolist(), count)


def _no_such_row(found: Any, count: int) -> IndexError:
    known = f"rows are numbered 0 to {count - 1}" if count else "there are no rows"
    return IndexError(f"{known}, got {found!s:.80}")


def _expected(count: int) -> str:
    return f"select rows by a number, a list of numbers, a slice or a mask of {count} booleans"
