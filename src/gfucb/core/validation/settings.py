"""Validation of constructor arguments: what was expected, what was given, what to do."""

from __future__ import annotations

import math
import numbers
import operator
from collections.abc import Sequence
from typing import Any, TypeVar

from gfucb.core.errors import InvalidInputError

Component = TypeVar("Component")

# With a smaller ridge the Gram matrix of a single sample cannot be factorised in float64.
SMALLEST_RIDGE = 1e-12
# Squares of larger rewards, or of larger values, leave no correct digits when they are summed.
LARGEST_REWARD = 1e12
# Predictions, heads and sums over accepted data are far smaller; squares of larger ones overflow.
LARGEST_COMPUTED = 1e100
# Counts are sizes of tensors, which are 64-bit integers.
LARGEST_COUNT = 2**63 - 1
# Objects that are made one after another, such as agents and networks: more take minutes.
MOST_OBJECTS = 10**5


def validate_count(
    value: Any, name: str, *, at_least: int = 1, at_most: int = LARGEST_COUNT
) -> int:
    """`value` as an integer of at least 1 (or `at_least`), and at most `at_most`."""
    number = _integer(value)
    if number is None or number < at_least:
        raise InvalidInputError(f"{name} must be an integer of at least {at_least}, got {value!r}")
    if number > at_most:
        raise InvalidInputError(f"{name} must be an integer of at most {at_most}, got {number}")
    return number


def validate_agents(number: int, cure: str) -> None:
    """Refuse more agents than can be made one after another."""
    if number > MOST_OBJECTS:
        raise InvalidInputError(
            f"at most {MOST_OBJECTS} agents can be made one after another, got {number}; choose "
            f"{cure}"
        )


def validate_seed(value: Any, name: str = "seed") -> int:
    """`value` as an integer; None is refused, because a run without a seed cannot be repeated."""
    number = _integer(value)
    if number is None:
        raise InvalidInputError(f"{name} must be an integer, such as 0, got {value!r}")
    return number


def _integer(value: Any) -> int | None:
    """`value` as an integer; None if it is a boolean or no single integer."""
    try:
        return None if isinstance(value, bool) else operator.index(value)
    except TypeError:  # also for an array of several numbers
        return None


def validate_flag(value: Any, name: str) -> bool:
    """True or False."""
    if not isinstance(value, bool):
        raise InvalidInputError(f"{name} must be True or False, got {value!r}")
    return value


def validate_choice(value: Any, name: str, choices: Sequence[str]) -> None:
    """Refuse a value that is not one of `choices`."""
    if not isinstance(value, str) or value not in choices:
        raise InvalidInputError(f"{name} must be one of {list(choices)}, got {value!r}")


def validate_instance(value: Any, name: str, kind: type, expected: str) -> None:
    """Refuse what is not of type `kind`; `expected` says what it should be, with an example."""
    if not isinstance(value, kind):
        raise InvalidInputError(f"{name} must be {expected}, got {value!r}")


def validate_number(
    value: Any,
    name: str,
    *,
    at_least: float = -math.inf,
    above: float = -math.inf,
    at_most: float = math.inf,
    is_finite: bool = True,
) -> float:
    """`value` as a float within the bounds given; finite unless `is_finite` is False."""
    bounds = [
        *([f"of at least {at_least:g}"] if at_least > -math.inf else []),
        *([f"above {above:g}"] if above > -math.inf else []),
        *([f"of at most {at_most:g}"] if at_most < math.inf else []),
    ]
    expected = " ".join(["a finite number" if is_finite else "a number", " and ".join(bounds)])
    is_real = isinstance(value, numbers.Real) and not isinstance(value, bool)
    try:
        number = float(value) if is_real else math.nan
    except OverflowError:
        raise InvalidInputError(f"{name} must be {expected.strip()}, got a larger one") from None
    in_bounds = at_least <= number <= at_most and (above == -math.inf or number > above)
    if not in_bounds or (is_finite and not math.isfinite(number)):
        raise InvalidInputError(f"{name} must be {expected.strip()}, got {value!r}")
    return number


def validate_not_negative(value: Any, name: str) -> float:
    """`value` as a finite float of at least 0."""
    return validate_number(value, name, at_least=0.0)


def validate_offset(value: Any, name: str = "offset") -> float:
    """`value` as a float of at most `LARGEST_REWARD` in magnitude."""
    return validate_number(value, name, at_least=-LARGEST_REWARD, at_most=LARGEST_REWARD)


def validate_ridge(value: Any, name: str = "ridge") -> float:
    """`value` as a float between `SMALLEST_RIDGE` and its inverse."""
    return validate_number(value, name, at_least=SMALLEST_RIDGE, at_most=1 / SMALLEST_RIDGE)


def validate_pair(value: Any, name: str) -> tuple[float, float]:
    """`value` as two floats, low < high, of at most `LARGEST_REWARD` in magnitude."""
    try:
        low, high = (float(part) for part in value)
    except (TypeError, ValueError):
        raise InvalidInputError(f"{name} must be (low, high), got {value!r}") from None
    if isinstance(value, str | bytes | dict | set):
        raise InvalidInputError(f"{name} must be (low, high), got {value!r}")
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise InvalidInputError(
            f"{name} must be (low, high) with low < high, both finite, got ({low:g}, {high:g})"
        )
    if max(abs(low), abs(high)) > LARGEST_REWARD:
        raise InvalidInputError(
            f"{name} must be at most {LARGEST_REWARD:g} in magnitude, got ({low:g}, {high:g}); "
            "rescale the rewards"
        )
    return low, high


def validate_ranges(
    value_range: tuple[float, float] | None, reward_range: tuple[float, float] | None
) -> tuple[tuple[float, float] | None, tuple[float, float] | None]:
    """The ranges of values and of rewards; those of the last stage are in both, so they overlap."""
    if value_range is not None:
        value_range = validate_pair(value_range, "value_range")
    if reward_range is not None:
        reward_range = validate_pair(reward_range, "reward_range")
    if value_range is None or reward_range is None:
        return value_range, reward_range
    # The ranges of earlier stages contain that of the last one.
    low, high = max(value_range[0], reward_range[0]), min(value_range[1], reward_range[1])
    if not low < high:
        raise InvalidInputError(
            "value_range and reward_range must overlap: in the last stage a value is one reward; "
            f"got value_range {value_range} and reward_range {reward_range}, which leave "
            f"({low:g}, {high:g}). Widen value_range, or pass reward_range=None"
        )
    return value_range, reward_range


def validate_component(value: Component, name: str, expected: str) -> Component:
    """`value` if it can be called; `expected` says what it should be, with an example."""
    if isinstance(value, type):
        raise InvalidInputError(
            f"{name} must be {expected}, got the class {value.__name__}; pass an instance, such as "
            f"{value.__name__}()"
        )
    if not callable(value):
        raise InvalidInputError(f"{name} must be {expected}, got {value!r}")
    return value


def validate_methods(
    value: Component, name: str, methods: tuple[str, ...], example: str = ""
) -> Component:
    """`value` if it is an instance that has all of these methods, such as the `example`."""
    missing = [m for m in methods if not callable(getattr(value, m, None))]
    if missing or isinstance(value, type):
        shown = f"the class {value.__name__}" if isinstance(value, type) else repr(value)
        raise InvalidInputError(
            f"{name} must be an object with the methods {', '.join(methods)}"
            f"{example and f', such as {example}'}, got {shown}"
        )
    return value
