"""Conversion of tensors, arrays and lists to new tensors, with checks of their numbers."""

from __future__ import annotations

import numbers
from collections.abc import Iterator, Mapping, Set
from decimal import Decimal
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from gfucb.core.errors import InvalidInputError
from gfucb.core.offered_candidates import is_repeated
from gfucb.core.validation.settings import LARGEST_REWARD

ArrayLike: TypeAlias = Tensor | npt.ArrayLike
"""What public methods accept: tensors, numpy arrays, data frames of numbers, lists, numbers."""

FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
# Squares of larger inputs, summed over the data, leave no correct digits in float64.
LARGEST_INPUT = 1e15
OF_DECISION = "the decision has"
# What to do about arguments that are no numbers.
ENCODE = "encode such columns as numbers with gfucb.tables, and pass what it returns as *offers"
PAD = "every action needs as many numbers; pad action sets of different sizes, and pass `available`"
CURES = {
    "rewards": "convert them to numbers, and leave out rows without a reward",
    "tasks": "number tasks from 0, or use gfucb.Agent, whose tasks have names",
    "available": "pass True or False for every action",
}


def to_tensor(value: Any, name: str) -> Tensor:
    """A copy of `value` as a tensor: later changes of the caller's array do not change it."""
    if isinstance(value, Tensor):
        _require_dense(value, name)
        return value.detach().clone()
    if hasattr(value, "toarray"):
        raise InvalidInputError(
            f"{name} must be a tensor or array of numbers, got a sparse matrix; "
            "pass its .toarray(), or encode your table with gfucb.tables"
        )
    if isinstance(value, Iterator | Set | Mapping):
        raise InvalidInputError(
            f"{name} must be a tensor or array of numbers, got a {type(value).__name__}; "
            "pass a list, in the order of the rows"
        )
    try:
        # Through numpy: torch would round the numbers of a list to single precision.
        array = np.ascontiguousarray(value) if np.ndim(value) else np.asarray(value)
        if array.dtype.kind == "O":  # such as a data frame of floats and booleans
            array = _plain_numbers(array)
    except (TypeError, ValueError, OverflowError, RuntimeError) as error:
        if "inhomogeneous" in str(error):
            raise InvalidInputError(
                f"{name} must be a tensor or array of numbers, got lists of different lengths; "
                f"{CURES.get(name, PAD)}"
            ) from None
        raise InvalidInputError(f"{name} must be a tensor or array of numbers: {error}") from error
    if array.dtype.kind in "USOMmV":
        raise InvalidInputError(
            f"{name} must be a tensor or array of numbers, got {_found(value, array)}; "
            f"{CURES.get(name, ENCODE)}"
        )
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise InvalidInputError(
            f"{name} must be numbers without gaps, got a masked array; "
            f"{CURES.get(name, 'fill it, or pass `available`')}"
        )
    try:
        return torch.tensor(_of_torch_type(array))
    except (TypeError, ValueError, RuntimeError) as error:
        raise InvalidInputError(f"{name} must be a tensor or array of numbers: {error}") from error


def to_inputs(value: Any, name: str) -> Tensor:
    """A copy of inputs as a tensor of real numbers; booleans become 0.0 and 1.0."""
    inputs = to_tensor(value, name)
    if inputs.dtype == torch.bool:
        inputs = inputs.to(torch.get_default_dtype())
    require_real(inputs, name)
    return inputs


def to_candidates(value: Any, name: str = "candidates") -> Tensor:
    """A copy of candidates as a tensor; a view that repeats one row is not expanded."""
    if isinstance(value, np.ndarray) and len(value.shape) and len(value) > 1:
        is_one_row = value.strides[0] == 0
    elif isinstance(value, Tensor):
        _require_dense(value, name)
        is_one_row = value.ndim > 0 and is_repeated(value)
    else:
        is_one_row = False
    if not is_one_row:
        return to_inputs(value, name)
    row = to_inputs(value[0], name)
    return row.expand(len(value), *row.shape)


def require_real(inputs: Tensor, name: str) -> None:
    """Refuse types that no representation reads: complex numbers and unsigned integers."""
    if inputs.dtype not in (*FLOATS, *INTEGERS):
        raise InvalidInputError(
            f"{name} must be real numbers: floats, bytes (images) or integers (item numbers), "
            f"got {inputs.dtype}"
        )


def require_in_range(inputs: Tensor, name: str, largest: float = LARGEST_INPUT) -> None:
    """Refuse floats that are not finite or larger than `largest` in magnitude."""
    if not inputs.is_floating_point():
        return
    is_valid = inputs.abs() <= largest  # not true of NaN
    if bool(is_valid.all()):
        return
    index = (~is_valid).nonzero()[0].tolist()
    found = float(inputs[tuple(index)])
    if not np.isfinite(found):
        raise InvalidInputError(f"{name} must be finite, got {found} at index {index}")
    raise InvalidInputError(
        f"{name} must be at most {largest:g} in magnitude, got {found:g} at index {index}; "
        "rescale them, for example to mean 0 and variance 1"
    )


def validate_rewards(
    rewards: Any, expected: int, what: str = OF_DECISION, *, rows: str = "rows"
) -> Tensor:
    """Rewards [row] as finite float64 of at most `LARGEST_REWARD` in magnitude; True is 1.0."""
    given = to_tensor(rewards, "rewards")
    if given.is_complex():
        raise InvalidInputError(f"rewards must be real numbers, got {given.dtype}")
    if given.ndim == 0 and expected == 1:
        given = given.reshape(1)
    if tuple(given.shape) != (expected,):
        cure = "to reward some rows only, pass decision[rows]"
        if tuple(given.shape) == (expected, 1):
            cure = "pass one axis, such as rewards[:, 0]"
        elif what != OF_DECISION:
            cure = "pass one reward for each"
        raise InvalidInputError(
            f"{what} {expected} {rows}, so rewards must have the shape [{expected}], "
            f"got {list(given.shape)}; {cure}"
        )
    given = given.to(torch.float64)
    is_valid = given.abs() <= LARGEST_REWARD
    if not bool(is_valid.all()):
        row = int((~is_valid).nonzero()[0])
        found = float(given[row])
        if np.isfinite(found):
            raise InvalidInputError(
                f"rewards must be at most {LARGEST_REWARD:g} in magnitude, got {found:g} in row "
                f"{row}; rescale them, for example to the range 0 to 1"
            )
        raise InvalidInputError(
            f"rewards must be finite, got {found} in row {row}; "
            "leave out rewards that are missing: pass decision[rows]"
        )
    return given


def validate_tasks(tasks: Any, rows: int, num_tasks: int) -> Tensor:
    """The task of each row as int64 on the CPU, [row]; None stands for all tasks in order."""
    if tasks is None:
        if rows != num_tasks:
            raise InvalidInputError(
                f"without tasks there is one row for each of the {num_tasks} tasks, in order, "
                f"but candidates has {rows} rows; pass the task of each row as tasks"
            )
        return torch.arange(num_tasks)
    given = to_tensor(tasks, "tasks").cpu()
    if rows == 0 and given.numel() == 0:
        return torch.zeros(0, dtype=torch.int64)  # an empty list has no integer type
    if given.is_floating_point() or given.is_complex() or given.dtype == torch.bool:
        cure = "gaps make floats of a column of integers: drop them, then call .astype(int)"
        cure = cure if given.is_floating_point() else CURES["tasks"]
        raise InvalidInputError(f"tasks must be integers, got {given.dtype}; {cure}")
    if tuple(given.shape) != (rows,):
        raise InvalidInputError(
            f"tasks must have one number for each of the {rows} rows, got shape {list(given.shape)}"
        )
    given = given.to(torch.int64)
    unknown = given[(given < 0) | (given >= num_tasks)]
    if len(unknown):
        raise InvalidInputError(
            f"tasks are numbered 0 to {num_tasks - 1}, got task {int(unknown[0])}"
        )
    return given


def _require_dense(value: Tensor, name: str) -> None:
    if value.is_nested:
        raise InvalidInputError(
            f"{name} must be a dense tensor, got a nested one; pad it with "
            "torch.nested.to_padded_tensor and pass `available`"
        )
    if value.layout != torch.strided:
        raise InvalidInputError(
            f"{name} must be a dense tensor, got the layout {value.layout}; call .to_dense() first"
        )
    if value.is_quantized or value.is_meta:
        kind = "quantized" if value.is_quantized else "meta"
        raise InvalidInputError(f"{name} must be a tensor of plain numbers, got a {kind} tensor")


def _of_torch_type(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The same numbers in a type of torch: without extended precision, foreign byte orders."""
    kind, size = array.dtype.kind, array.dtype.itemsize
    if kind == "f" and size > 8:
        return array.astype(np.float64)
    if kind == "u" and size > 1 and (array <= np.iinfo(np.int64).max).all():
        return array.astype(np.int64)
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def _plain_numbers(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """An array of objects as numbers, if numpy finds that all of them are."""
    found = np.array(array.tolist())
    if found.dtype.kind == "O" and all(isinstance(v, numbers.Real | Decimal) for v in array.flat):
        found = array.astype(np.float64)  # sums of money from a database
    return found if found.dtype.kind in "biuf" and found.shape == array.shape else array


def _found(value: Any, array: npt.NDArray[Any]) -> str:
    """What an argument holds instead of numbers."""
    where = ""
    for name in getattr(value, "columns", ()):
        column = np.asarray(value[name])
        column = _plain_numbers(column) if column.dtype.kind == "O" else column
        if column.dtype.kind not in "biuf":
            array, where = column, f" in the column {name!r}"
            break
    values = array.ravel().tolist() if array.dtype.kind in "USO" else []
    first = next((v for v in values if not isinstance(v, numbers.Real)), None)
    kinds = {"M": "dates", "m": "times", "V": "records"}
    if isinstance(first, str | bytes):
        found = f"text ({first!r})"
    elif first is None and values:
        found = "missing values (None)"
    else:
        found = kinds.get(array.dtype.kind, f"objects of type {type(first).__name__}")
    return f"{found}{where}"
