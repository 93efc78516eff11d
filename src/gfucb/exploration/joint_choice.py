"""The joint choice over tasks.

Take one option from each group, to maximise

    sum_g mean[g, c_g] + sqrt(squared_radius * sum_g squared_width[g, c_g]),

without listing the product of all groups. The square root ties the groups together through
one number only, the sum of squared widths, and that makes the problem small:

1. *Bound.* sqrt(z) = min_s z/(2s) + s/2, so for every s > 0 the value of every tuple is at most
   D(s) = s/2 + sum_g max_c (mean + squared_radius * squared_width / (2s)), which separates over
   groups. D is minimised over the one number s.
2. *Incumbent.* The tuple that attains D(s), improved by single changes.
3. *Elimination.* An option whose own bound falls below the incumbent is in no best tuple.
4. *Fronts.* The remaining options are combined group by group, keeping only partial sums
   (mean, squared width) that are neither dominated nor bounded away. What is left at the end
   is exact.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]
Mask = NDArray[np.bool_]

# Partial sums kept in step 4 before exactness is given up (never seen outside built cases).
LARGEST_FRONT = 100_000
ROUNDING = 1e-12
MOST_SCALES = 30


@dataclass(frozen=True)
class JointChoice:
    """The options taken, their value, and whether no tuple can have a larger one."""

    options: Indices  # [group]
    value: float
    is_exact: bool


def choose_jointly(means: Floats, squared_widths: Floats, squared_radius: float) -> JointChoice:
    """Solve the problem above for means and squared widths [group, option].

    An option with a mean of minus infinity does not exist; every group has one that does.
    """
    widths = squared_radius * np.where(np.isneginf(means), 0.0, squared_widths)
    if len(means) == 1:
        values = means + np.sqrt(widths)
        best = _first_best(values, ROUNDING * float(np.abs(values.max())))
        return JointChoice(best, float(values[0, best[0]]), is_exact=True)
    # Differences below this share of the numbers at hand are rounding.
    size = np.abs(means, where=~np.isneginf(means), out=np.zeros_like(means)).max(1).sum()
    tolerance = ROUNDING * float(size + np.sqrt(widths.max(1).sum()))
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


def _first_best(scores: Floats, tolerance: float) -> Indices:
    """The first option of each group that is as good as its best but for rounding."""
    return (scores >= scores.max(1, keepdims=True) - tolerance).argmax(1)


def _over(widths: Floats, scale: float) -> Floats:
    """Widths over a scale; at scale zero all widths are zero and so is the quotient."""
    return widths / scale if scale > 0 else np.zeros_like(widths)


def _best_scale(means: Floats, widths: Floats) -> float:
    """An s at which D(s) is least or close to it: any s gives a bound, and the rest is exact.

    D is convex in 1/s, and flat where s^2 is the sum of the widths of the options that attain it;
    that sum grows as s falls, so the two meet between brackets.
    """
    high = float(np.sqrt(widths.max(1).sum()))
    # A group may have an option without width; a useful scale is still positive.
    low = max(float(np.sqrt(widths.min(1).sum())), 1e-6 * high)
    groups, scale = np.arange(len(means)), high
    for _ in range(MOST_SCALES):
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
    """Make the best single change while there is one; return the options and their value."""
    groups = np.arange(len(options))
    while True:
        mean, width = means[groups, options], widths[groups, options]
        other_means = mean.sum() - mean
        other_widths = np.maximum(width.sum() - width, 0.0)
        values = other_means[:, None] + means + np.sqrt(other_widths[:, None] + widths)
        value = float(mean.sum() + np.sqrt(width.sum()))
        group, option = np.unravel_index(values.argmax(), values.shape)
        if values[group, option] <= value + tolerance:
            return options, value
        options = options.copy()
        options[group] = option


def _best_on_fronts(
    means: Floats, widths: Floats, scores: Floats, scale: float, promising: Mask, to_beat: float
) -> JointChoice | None:
    """Best tuple of promising options with a value above `to_beat`.

    Its value is minus infinity if there is none; None if the fronts grow too large.
    """
    nothing = JointChoice(np.zeros(len(means), dtype=np.intp), -np.inf, is_exact=True)
    num_promising = promising.sum(1)
    if (num_promising == 0).any():
        return nothing
    # Groups with one promising option are decided; with many groups, most are.
    decided, undecided = np.flatnonzero(num_promising == 1), np.flatnonzero(num_promising > 1)
    taken = promising.argmax(1)
    sums = means[decided, taken[decided]].sum(keepdims=True)
    spreads = widths[decided, taken[decided]].sum(keepdims=True)
    best_scores = scores[undecided].max(1)
    bonuses = best_scores.sum() - best_scores.cumsum()  # of the groups still to come
    history: list[tuple[Indices, Indices]] = []
    for group, bonus_scale in zip(undecided, bonuses, strict=True):
        options = np.flatnonzero(promising[group])
        new_sums = (sums[:, None] + means[group, options]).ravel()
        new_spreads = (spreads[:, None] + widths[group, options]).ravel()
        bounds = new_sums + _over(new_spreads, 2 * scale) + scale / 2 + bonus_scale
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
    """Indices of points no other point is at least as good as in both coordinates."""
    order = np.lexsort((-spreads, -sums))
    best_before = np.concatenate([[-np.inf], np.maximum.accumulate(spreads[order])[:-1]])
    return order[spreads[order] > best_before]
