"""The joint choice of one action for each task under one shared radius.

Choose one option c_g in each group g to maximise

    sum_g mean[g, c_g] + sqrt(squared_radius * sum_g squared_width[g, c_g])

without listing the product of all groups. The square root couples the groups only through the
sum of squared widths, so branch and bound is fast:

1. *Bound.* sqrt(z) = min_s z/(2s) + s/2, so for every s > 0 the value of every tuple is at most
   D(s) = s/2 + sum_g max_c (mean + squared_radius * squared_width / (2s)), which separates over
   groups. D is minimised over the scalar s.
2. *Incumbent.* The tuple that attains D(s), improved by changes of one option at a time.
3. *Elimination.* An option whose bound is below the incumbent's value is in no best tuple.
4. *Fronts.* The remaining options are combined group by group. Only partial sums
   (mean, squared width) that are not dominated and whose bound exceeds the incumbent's value
   remain. The best complete sum is the exact maximum.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gfucb.core.errors import InvalidInputError

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]
Mask = NDArray[np.bool_]

# With more partial sums than this in step 4, the incumbent is returned as not exact. Only
# constructed examples exceed it.
LARGEST_FRONT = 100_000
ROUNDING = 1e-12
MAX_SCALES = 30


@dataclass(frozen=True)
class JointChoice:
    """The chosen options, their value, and whether the value is proven to be the maximum."""

    options: Indices  # [group]
    value: float
    is_exact: bool


def choose_jointly(means: Floats, squared_widths: Floats, squared_radius: float) -> JointChoice:
    """Solve the problem above for means and squared widths [group, option].

    An option with a mean of minus infinity is not available; every group has an available one.

    Raises:
        InvalidInputError: a mean or a squared width of an available option is not finite, or
            their sums overflow.
    """
    with np.errstate(over="ignore", invalid="ignore"):  # `_magnitude` refuses the result
        widths = squared_radius * np.where(np.isneginf(means), 0.0, squared_widths)
    magnitude = _magnitude(means, widths)
    if len(means) == 1:
        values = means + np.sqrt(widths)
        best = _first_best(values, ROUNDING * float(np.abs(values.max())))
        return JointChoice(best, float(values[0, best[0]]), is_exact=True)
    tolerance = ROUNDING * magnitude  # smaller differences are rounding errors
    scale = _best_scale(means, widths)
    scores = means + _over(widths, 2 * scale)
    incumbent, value = _improve(means, widths, _first_best(scores, tolerance), tolerance)
    best_scores = scores.max(1)
    bound = scale / 2 + float(best_scores.sum())
    to_beat = value + tolerance
    if bound <= to_beat:
        return JointChoice(incumbent, value, is_exact=True)

    promising = bound - (best_scores[:, None] - scores) > to_beat
    found = _best_on_fronts(means, widths, scores, scale, promising, to_beat)
    if found is None:
        return JointChoice(incumbent, value, is_exact=False)
    return found if found.value > value else JointChoice(incumbent, value, is_exact=True)


def _magnitude(means: Floats, widths: Floats) -> float:
    """An upper bound of the absolute value of every tuple; an error if it is not finite."""
    sizes = np.abs(means, where=~np.isneginf(means), out=np.zeros_like(means))
    with np.errstate(over="ignore", invalid="ignore"):
        magnitude = float(sizes.max(1).sum() + np.sqrt(widths.max(1).sum()))
    # max propagates NaN and infinity; a negative width is visible only in the minimum.
    if not (np.isfinite(magnitude) and widths.min() >= 0):
        raise InvalidInputError(
            "predicted values and squared widths must be finite, widths not negative, and their "
            "sums representable; rewards or inputs are too large, or the fit has diverged"
        )
    return magnitude


def _first_best(scores: Floats, tolerance: float) -> Indices:
    """The first option of each group whose score equals the best up to rounding."""
    return (scores >= scores.max(1, keepdims=True) - tolerance).argmax(1)


def _over(widths: Floats, scale: float) -> Floats:
    """Widths divided by a scale; zero at scale zero, where all widths are zero."""
    return widths / scale if scale > 0 else np.zeros_like(widths)


def _best_scale(means: Floats, widths: Floats) -> float:
    """An s close to the minimiser of D(s). Every s gives a valid bound, so it need not be exact.

    D is convex in 1/s, and stationary where s^2 equals the sum of the widths of the options that
    attain D(s). That sum decreases in s, so the stationary point lies between the brackets.
    """
    high = float(np.sqrt(widths.max(1).sum()))
    # The smallest sum of widths can be zero; the scale must be positive.
    low = max(float(np.sqrt(widths.min(1).sum())), 1e-6 * high)
    groups, scale = np.arange(len(means)), high
    for _ in range(MAX_SCALES):
        if high <= low * (1 + 1e-6):
            break
        taken = (means + widths / (2 * scale)).argmax(1)
        attained = float(np.sqrt(widths[groups, taken].sum()))
        if attained == scale:
            break
        low, high = (scale, high) if attained > scale else (low, scale)
        scale = attained if low < attained < high else (low + high) / 2
    return scale


def _improve(
    means: Floats, widths: Floats, options: Indices, tolerance: float
) -> tuple[Indices, float]:
    """Apply the best change of one option while it helps; return the options and their value.

    Every change increases the value by more than rounding. The number of changes is bounded all
    the same: an incumbent that could be improved further only makes elimination weaker.
    """
    groups = np.arange(len(options))
    for _ in range(means.size):
        mean, width = means[groups, options], widths[groups, options]
        other_means = mean.sum() - mean
        other_widths = np.maximum(width.sum() - width, 0.0)
        values = other_means[:, None] + means + np.sqrt(other_widths[:, None] + widths)
        value = float(mean.sum() + np.sqrt(width.sum()))
        group, option = np.unravel_index(values.argmax(), values.shape)
        if values[group, option] <= value + tolerance:
            break
        options = options.copy()
        options[group] = option
    mean, width = means[groups, options], widths[groups, options]
    return options, float(mean.sum() + np.sqrt(width.sum()))


def _best_on_fronts(
    means: Floats, widths: Floats, scores: Floats, scale: float, promising: Mask, to_beat: float
) -> JointChoice | None:
    """The best tuple of promising options with a value above `to_beat`.

    Its value is minus infinity if there is no such tuple. The result is None if a front exceeds
    `LARGEST_FRONT`.
    """
    nothing = JointChoice(np.zeros(len(means), dtype=np.intp), -np.inf, is_exact=True)
    num_promising = promising.sum(1)
    if (num_promising == 0).any():
        return nothing
    # A group with one promising option is decided. With many groups most are.
    decided, undecided = np.flatnonzero(num_promising == 1), np.flatnonzero(num_promising > 1)
    taken = promising.argmax(1)
    sums = means[decided, taken[decided]].sum(keepdims=True)
    spreads = widths[decided, taken[decided]].sum(keepdims=True)
    best_scores = scores[undecided].max(1)
    remaining = best_scores.sum() - best_scores.cumsum()  # bound of the groups not yet combined
    history: list[tuple[Indices, Indices]] = []
    for group, rest in zip(undecided, remaining, strict=True):
        options = np.flatnonzero(promising[group])
        new_sums = (sums[:, None] + means[group, options]).ravel()
        new_spreads = (spreads[:, None] + widths[group, options]).ravel()
        bounds = new_sums + _over(new_spreads, 2 * scale) + scale / 2 + rest
        alive = np.flatnonzero(bounds > to_beat)
        alive = alive[_undominated(new_sums[alive], new_spreads[alive])]
        if len(alive) == 0:
            return nothing
        if len(alive) > LARGEST_FRONT:
            return None
        history.append((alive // len(options), options[alive % len(options)]))
        sums, spreads = new_sums[alive], new_spreads[alive]
    values = sums + np.sqrt(spreads)
    state = int(values.argmax())
    value, chosen = float(values[state]), taken.astype(np.intp)
    for group, (parents, picks) in zip(undecided[::-1], reversed(history), strict=True):
        chosen[group] = picks[state]
        state = int(parents[state])
    return JointChoice(chosen, value, is_exact=True)


def _undominated(sums: Floats, spreads: Floats) -> Indices:
    """Indices of the points that no other point equals or exceeds in both coordinates."""
    order = np.lexsort((-spreads, -sums))
    best_before = np.concatenate([[-np.inf], np.maximum.accumulate(spreads[order])[:-1]])
    return order[spreads[order] > best_before]
