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

If the groups are in several shards, steps 1 to 3 need sums and maxima over shards only. Step 4
needs the groups that are not yet decided, which are few.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from gfucb.core.errors import InvalidInputError
from gfucb.core.shards import ONE_SHARD, Shards, first_largest, in_any, totals

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


def choose_jointly(
    means: Floats, squared_widths: Floats, squared_radius: float, shards: Shards = ONE_SHARD
) -> JointChoice:
    """Solve the problem above for means and squared widths [group, option].

    An option with a mean of minus infinity is not available; every group has an available one.
    With several shards the groups, maybe none, and the chosen options are those of one shard; the
    value is that of the groups of all.

    Raises:
        InvalidInputError: a mean or a squared width of an available option is not finite, or
            their sums overflow.
    """
    with np.errstate(over="ignore", invalid="ignore"):  # `_magnitude` refuses the result
        widths = squared_radius * np.where(np.isneginf(means), 0.0, squared_widths)
    sizes = _Sizes.of(means, widths, shards)
    if sizes.num_groups == 1:
        return _choose_alone(means, widths, shards)
    tolerance = ROUNDING * sizes.magnitude  # smaller differences are rounding errors
    scale = _best_scale(means, widths, sizes, shards)
    scores = means + _over(widths, 2 * scale)
    first = _first_best(scores, tolerance)
    incumbent, value = _improve(means, widths, first, tolerance, sizes.num_options, shards)
    best_scores = scores.max(1)
    bound = scale / 2 + totals(shards, float(best_scores.sum()))[0]
    to_beat = value + tolerance
    if bound <= to_beat:
        return JointChoice(incumbent, value, is_exact=True)

    promising = bound - (best_scores[:, None] - scores) > to_beat
    found = _best_on_fronts(means, widths, scores, scale, promising, to_beat, shards)
    if found is None:
        return JointChoice(incumbent, value, is_exact=False)
    return found if found.value > value else JointChoice(incumbent, value, is_exact=True)


def _choose_alone(means: Floats, widths: Floats, shards: Shards) -> JointChoice:
    """The best option of a single group, which is in one of the shards."""
    values = means + np.sqrt(widths)
    rounding = ROUNDING * float(np.abs(values.max())) if len(values) else 0.0
    best = _first_best(values, rounding)
    (value,) = totals(shards, float(values[np.arange(len(values)), best].sum()))
    return JointChoice(best, value, is_exact=True)


@dataclass(frozen=True)
class _Sizes:
    """Sums over the groups of all shards.

    Attributes:
        magnitude: an upper bound of the absolute value of every tuple.
        most: the largest sum of widths of a tuple.
        least: the smallest.
        num_groups: the number of groups.
        num_options: the number of options of all groups.
    """

    magnitude: float
    most: float
    least: float
    num_groups: int
    num_options: int

    @classmethod
    def of(cls, means: Floats, widths: Floats, shards: Shards) -> _Sizes:
        """The sums in one exchange; an error if they are not finite."""
        sizes = np.abs(means, where=~np.isneginf(means), out=np.zeros_like(means))
        with np.errstate(over="ignore", invalid="ignore"):
            # max propagates NaN and infinity; a negative width is visible only in the minimum.
            is_negative = not widths.min(initial=0.0) >= 0
            size, most, least, num_negative, num_groups, num_options = totals(
                shards,
                sizes.max(1).sum(),
                widths.max(1).sum(),
                widths.min(1).sum(),
                float(is_negative),
                len(means),
                means.size,
            )
            magnitude = float(size + np.sqrt(most))
        if not np.isfinite(magnitude) or num_negative:
            raise InvalidInputError(
                "predicted values and squared widths must be finite, widths not negative, and "
                "their sums representable; rewards or inputs are too large, or the fit has diverged"
            )
        return cls(magnitude, most, least, int(num_groups), int(num_options))


def _first_best(scores: Floats, tolerance: float) -> Indices:
    """The first option of each group whose score equals the best up to rounding."""
    return (scores >= scores.max(1, keepdims=True) - tolerance).argmax(1)


def _over(widths: Floats, scale: float) -> Floats:
    """Widths divided by a scale; zero at scale zero, where all widths are zero."""
    return widths / scale if scale > 0 else np.zeros_like(widths)


def _best_scale(means: Floats, widths: Floats, sizes: _Sizes, shards: Shards) -> float:
    """An s close to the minimiser of D(s). Every s gives a valid bound, so it need not be exact.

    D is convex in 1/s, and stationary where s^2 equals the sum of the widths of the options that
    attain D(s). That sum decreases in s, so the stationary point lies between the brackets.
    """
    high = float(np.sqrt(sizes.most))
    # The smallest sum of widths can be zero; the scale must be positive.
    low = max(float(np.sqrt(sizes.least)), 1e-6 * high)
    groups, scale = np.arange(len(means)), high
    for _ in range(MAX_SCALES):
        if high <= low * (1 + 1e-6):
            break
        taken = (means + widths / (2 * scale)).argmax(1)
        attained = float(np.sqrt(totals(shards, widths[groups, taken].sum())[0]))
        if attained == scale:
            break
        low, high = (scale, high) if attained > scale else (low, scale)
        scale = attained if low < attained < high else (low + high) / 2
    return scale


def _improve(
    means: Floats,
    widths: Floats,
    options: Indices,
    tolerance: float,
    most_changes: int,
    shards: Shards,
) -> tuple[Indices, float]:
    """Apply the best change of one option while it helps; return the options and their value.

    Every change increases the value by more than rounding. The number of changes is bounded all
    the same: an incumbent that could be improved further only makes elimination weaker.
    """
    groups = np.arange(len(options))
    for _ in range(most_changes):
        mean, width = means[groups, options], widths[groups, options]
        all_means, all_widths = totals(shards, mean.sum(), width.sum())
        other_means = all_means - mean
        other_widths = np.maximum(all_widths - width, 0.0)
        values = other_means[:, None] + means + np.sqrt(other_widths[:, None] + widths)
        value = float(all_means + np.sqrt(all_widths))
        best, owner = first_largest(shards, float(values.max(initial=-np.inf)))
        if not best > value + tolerance:
            return options, value
        if owner == shards.index:
            group, option = np.unravel_index(values.argmax(), values.shape)
            options = options.copy()
            options[group] = option
    mean, width = means[groups, options], widths[groups, options]
    all_means, all_widths = totals(shards, mean.sum(), width.sum())
    return options, float(all_means + np.sqrt(all_widths))


def _best_on_fronts(
    means: Floats,
    widths: Floats,
    scores: Floats,
    scale: float,
    promising: Mask,
    to_beat: float,
    shards: Shards,
) -> JointChoice | None:
    """The best tuple of promising options with a value above `to_beat`.

    Its value is minus infinity if there is no such tuple. The result is None if a front exceeds
    `LARGEST_FRONT`.
    """
    nothing = JointChoice(np.zeros(len(means), dtype=np.intp), -np.inf, is_exact=True)
    num_promising = promising.sum(1)
    if in_any(shards, bool((num_promising == 0).any())):
        return nothing
    # A group with one promising option is decided. With many groups most are.
    decided, undecided = np.flatnonzero(num_promising == 1), np.flatnonzero(num_promising > 1)
    taken = promising.argmax(1)
    mean, width = means[decided, taken[decided]].sum(), widths[decided, taken[decided]].sum()
    sums, spreads = (np.array([total]) for total in totals(shards, mean, width))
    left = _undecided(means, widths, scores, promising, undecided, shards)
    best_scores = left.scores.max(1)
    remaining = best_scores.sum() - best_scores.cumsum()  # bound of the groups not yet combined
    history: list[tuple[Indices, Indices]] = []
    for group, rest in enumerate(remaining):
        options = np.flatnonzero(left.promising[group])
        new_sums = (sums[:, None] + left.means[group, options]).ravel()
        new_spreads = (spreads[:, None] + left.widths[group, options]).ravel()
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
    own = {left.first + position: group for position, group in enumerate(undecided)}
    for position, (parents, picks) in reversed(list(enumerate(history))):
        if position in own:
            chosen[own[position]] = picks[state]
        state = int(parents[state])
    return JointChoice(chosen, value, is_exact=True)


@dataclass(frozen=True)
class _Undecided:
    """The undecided groups of all shards, [group, option] each; the own ones begin at `first`."""

    means: Floats
    widths: Floats
    scores: Floats
    promising: Mask
    first: int = 0


def _undecided(
    means: Floats,
    widths: Floats,
    scores: Floats,
    promising: Mask,
    undecided: Indices,
    shards: Shards,
) -> _Undecided:
    parts = (means[undecided], widths[undecided], scores[undecided])
    if shards.count == 1:
        return _Undecided(*parts, promising[undecided])
    sizes = shards.gather(torch.tensor([[len(undecided), means.shape[1]]]))
    # Options that a shard does not have are not promising. Neither are those without a mean.
    rows = np.full((len(undecided), 4, int(sizes[:, 1].max())), -np.inf)
    for position, part in enumerate((*parts, promising[undecided])):
        rows[:, position, : means.shape[1]] = part
    found = shards.gather(torch.from_numpy(rows)).numpy()
    first = int(sizes[: shards.index, 0].sum())
    return _Undecided(found[:, 0], found[:, 1], found[:, 2], found[:, 3] > 0, first)


def _undominated(sums: Floats, spreads: Floats) -> Indices:
    """Indices of the points that no other point equals or exceeds in both coordinates."""
    order = np.lexsort((-spreads, -sums))
    best_before = np.concatenate([[-np.inf], np.maximum.accumulate(spreads[order])[:-1]])
    return order[spreads[order] > best_before]
