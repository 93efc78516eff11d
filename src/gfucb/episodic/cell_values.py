"""Lines 4 to 8 of Algorithm 2 on cells: the fit of a stage, its radius, and optimistic values.

The features of a pair of cell and action are one-hot, so the fit is the mean of R + V_{h+1}(s')
over the samples of a pair.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gfucb.episodic.cell_counts import CellCounts
from gfucb.episodic.distinct_rows import Floats, Integers

# The bonus of a pair with n of the N samples of its state is
#     SPREAD_BONUS * (standard deviation of its targets) / sqrt(n)
#     + COUNT_BONUS * max(1, log(N) / 2) * range / n.
# Where nothing is random only the second term is left. A dead end of H stages then looks better
# than it is by about H COUNT_BONUS / n of the range, and not by the 0.3 H / sqrt(n) of a bonus
# that does not know the variance. The logarithm makes the agent return to a pair whose few samples
# were bad by chance.
SPREAD_BONUS = 1.0
COUNT_BONUS = 0.2
# Within this share of the range of the highest value.
NEARLY_BEST = 0.05


@dataclass(frozen=True, eq=False)
class StageValues:
    """The optimistic values of one stage, until the next plan.

    Attributes:
        upper: optimistic values of pairs, [task, pair].
        means: values of pairs by the fit, without any bonus, [task, pair].
        preference: decides between pairs whose optimistic values are equal, [task, pair].
        state_upper: V_h, the best optimistic value of each state, [task, state].
        state_means: the best value of the fit without a bonus, [task, state].
        novelty: 1 / (1 + visits) of each state, [task, state].
    """

    upper: Floats
    means: Floats
    preference: Floats
    state_upper: Floats
    state_means: Floats
    novelty: Floats

    @classmethod
    def after_the_last(cls, num_tasks: int) -> StageValues:
        """Line 2: values are zero after the last stage."""
        none = np.zeros((num_tasks, 0))
        return cls(none, none, none, none, none, none)

    @classmethod
    def of(
        cls,
        counts: CellCounts,
        state_pairs: Integers,
        num_pairs: int,
        following: StageValues,
        value_range: tuple[float, float],
    ) -> StageValues:
        """The values of a stage with `state_pairs` [state, action], from those of the next one."""
        low, high = value_range
        num_tasks = len(following.upper)
        sums = _PairSums(counts, num_tasks, num_pairs)
        n = sums.counts
        m = np.maximum(n, 1.0)
        next_upper = sums.next_values(following.state_upper)
        targets = (sums.rewards + next_upper) / m
        mean_next_squares = sums.next_values(following.state_upper**2) / m
        variance = np.maximum(sums.squares / m - (sums.rewards / m) ** 2, 0.0)
        variance += np.maximum(mean_next_squares - (next_upper / m) ** 2, 0.0)
        # The variance of few samples is too small: each pair also has one sample of the mean
        # variance of the stage, over all tasks.
        variance = (n * variance + (n * variance).sum() / max(n.sum(), 1.0)) / (n + 1)
        visits = n[:, state_pairs].sum(axis=2)
        pair_visits = np.zeros_like(n)
        pair_visits[:, state_pairs] = visits[:, :, None]
        count_bonus = COUNT_BONUS * np.maximum(1.0, 0.5 * np.log(np.maximum(pair_visits, 1.0)))
        # Paper: one radius for all of a stage. Here it follows the variance of the targets of a
        # pair, as in Bernstein's inequality, so that stages without randomness add little.
        bonus = SPREAD_BONUS * np.sqrt(variance / m) + count_bonus * (high - low) / m
        seen = n > 0
        upper = np.where(seen, np.clip(targets + bonus, low, high), high)
        means = np.where(seen, (sums.rewards + sums.next_values(following.state_means)) / m, low)
        own_novelty = 1 / (1 + visits)
        pair_novelty = np.zeros_like(n)
        pair_novelty[:, state_pairs] = own_novelty[:, :, None] + 1e-9
        leads_to_novelty = sums.next_values(following.novelty) / m
        # Of actions that may all be the best possible one, an action known to be so comes first,
        # then those that lead to states with fewer visits than this one, then untried ones.
        is_best = means >= high - NEARLY_BEST * (high - low)
        preference = np.where(seen, is_best + leads_to_novelty, pair_novelty) - 1e-6 * n
        return cls(
            upper,
            means,
            preference,
            upper[:, state_pairs].max(axis=2),
            means[:, state_pairs].max(axis=2),
            own_novelty,
        )


class _PairSums:
    """Sums over the transitions of each task and pair, [task, pair]."""

    def __init__(self, counts: CellCounts, num_tasks: int, num_pairs: int) -> None:
        self._all = counts
        self._tasks, self._next = counts.tasks, counts.next_states
        self._rows = self._tasks * num_pairs + counts.pairs
        self._shape = num_tasks, num_pairs
        self.counts = self._sum(counts.counts)
        self.rewards = self._sum(counts.rewards)
        self.squares = self._sum(counts.squares)

    def next_values(self, values: Floats) -> Floats:
        """Sums of values [task, state] of the next states; 0 where an episode ended."""
        padded = np.concatenate([values, np.zeros((len(values), 1))], axis=1)
        return self._sum(self._all.counts * padded[self._tasks, self._next])

    def _sum(self, weights: Floats) -> Floats:
        tasks, pairs = self._shape
        sums = np.bincount(self._rows, weights=weights, minlength=tasks * pairs)
        return np.asarray(sums.reshape(tasks, pairs))
