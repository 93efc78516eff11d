"""Lines 4 to 8 of Algorithm 2 on cells: the fit of a stage, its radius, and optimistic values.

The features of a pair of cell and action are one-hot, so the fit is the mean of R + V_{h+1}(s')
over the samples of a pair.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from scipy.sparse import coo_array

from gfucb.core.records import Decision
from gfucb.core.validation.arrays import ArrayLike, to_tensor
from gfucb.episodic.cell_counts import CellCounts
from gfucb.episodic.distinct_rows import Floats, Integers

# The bonus of a pair with n of the N samples of its task in the stage is
#     SPREAD_BONUS * (standard deviation of its targets) / sqrt(n)
#     + COUNT_BONUS * max(1, log(N) / 2) * range / n.
# Where nothing is random only the second term is left. A dead end of H stages then looks better
# than it is by about H COUNT_BONUS / n of the range, and not by the 0.3 H / sqrt(n) of a bonus
# that does not know the variance. The logarithm makes the agent return to a pair whose few samples
# were bad by chance. With N samples of the state of the pair it does not: the agent stays away from
# the way to that state, so they do not grow. For regions of continuous observations N counts the
# samples of the region: neighbours lead the agent back, and in mountain cars it would explore for
# half as many episodes more.
SPREAD_BONUS = 1.0
COUNT_BONUS = 0.2
# Within this share of the range of the highest value.
NEARLY_BEST = 0.05
# Optimistic values that differ by less are equal.
EQUAL = 1e-9
# What is still unknown in a state is worth 1 / (1 + visits), an untried action this much:
#     (sum over known actions of what they lead to + PRIOR_ACTIONS / (1 + visits))
#     / (number of known actions + PRIOR_ACTIONS),
# where known actions are those of the cell in all tasks. The experience of other tasks so tells
# what an unknown action typically does, while codes, goals and values differ.
PRIOR_ACTIONS = 10.0
# The share of this worth that is left when all actions have been tried.
TRIED_SHARE = 0.1
# What is unknown one stage later is worth this share, where all stages share their states: it can
# be reached in any stage, and an agent that waits until the last one does not learn what follows.
# With regions of continuous observations nothing was gained (mountain cars).
DELAYED_SHARE = 0.95
# Of equal means there the one whose rewards come first is the best: with few samples a detour seems
# to be as sure as the direct way, and leaves no time for a move that fails.
SLIGHTLY_LESS = 1 - 1e-6


@dataclass(frozen=True, eq=False)
class StageValues:
    """The optimistic values of one stage, until the next plan.

    Attributes:
        upper: optimistic values of pairs, [task, pair].
        means: values of pairs by the fit, without any bonus, [task, pair].
        preference: decides between pairs whose optimistic values are equal, [task, pair].
        state_upper: V_h, the best optimistic value of each state, [task, state].
        state_means: the best value of the fit without a bonus, [task, state].
        novelty: how unknown the states are that can be reached from a state, [task, state].
    """

    upper: Floats
    means: Floats
    preference: Floats
    state_upper: Floats
    state_means: Floats
    novelty: Floats

    @classmethod
    def after_the_last(cls, num_tasks: int, num_states: int = 0) -> StageValues:
        """Line 2: values are zero after the last stage."""
        none = np.zeros((num_tasks, num_states))
        return cls(none, none, none, none, none, none)

    @classmethod
    def of(
        cls,
        counts: CellCounts,
        state_pairs: Integers,
        num_pairs: int,
        following: StageValues,
        value_range: tuple[float, float],
        *,
        are_regions: bool = False,
        are_shared: bool = False,
    ) -> StageValues:
        """The values of a stage with `state_pairs` [state, action], from those of the next one.

        States may be regions of continuous observations, or the same states in all stages.
        """
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
        samples = n.sum(axis=1, keepdims=True)  # of each task
        if are_regions:
            samples = np.zeros_like(n)
            samples[:, state_pairs] = visits[:, :, None]
        count_bonus = COUNT_BONUS * np.maximum(1.0, 0.5 * np.log(np.maximum(samples, 1.0)))
        # Paper: one radius for all of a stage. Here it follows the variance of the targets of a
        # pair, as in Bernstein's inequality, so that stages without randomness add little.
        bonus = SPREAD_BONUS * np.sqrt(variance / m) + count_bonus * (high - low) / m
        seen = n > 0
        upper = np.where(seen, np.clip(targets + bonus, low, high), high)
        next_means = (SLIGHTLY_LESS if are_shared else 1.0) * following.state_means
        means = np.where(seen, (sums.rewards + sums.next_values(next_means)) / m, low)
        state_upper = upper[:, state_pairs].max(axis=2)
        is_tied = upper[:, state_pairs] >= state_upper[:, :, None] - EQUAL
        next_novelty = (DELAYED_SHARE if are_shared else 1.0) * following.novelty
        leads_to = _novelty_of_pairs(sums, state_pairs, visits, next_novelty)
        reachable = np.where(is_tied, leads_to[:, state_pairs], 0.0).max(axis=2)
        # Of actions that may all be the best possible one, an action known to be so comes first,
        # then those that lead to what is least known.
        is_best = seen & (means >= high - NEARLY_BEST * (high - low))
        return cls(
            upper,
            means,
            is_best + leads_to - 1e-6 * n,
            state_upper,
            means[:, state_pairs].max(axis=2),
            np.maximum(TRIED_SHARE / (1 + visits), reachable),
        )


def _novelty_of_pairs(
    sums: _PairSums, state_pairs: Integers, visits: Floats, next_novelty: Floats
) -> Floats:
    """How unknown the states are to which pairs lead, or are expected to: [task, pair].

    Args:
        sums: over the transitions of pairs.
        state_pairs: the pairs of states, [state, action].
        visits: of states, [task, state].
        next_novelty: of the states of the next stage, [task, next state].
    """
    known, totals = sums.over_all_tasks(state_pairs, next_novelty)
    untried = (totals + PRIOR_ACTIONS / (1 + visits)) / (known + PRIOR_ACTIONS)
    leads_to = sums.next_values(next_novelty) / np.maximum(sums.counts, 1.0)
    by_pair = np.zeros_like(leads_to)
    by_pair[:, state_pairs] = untried[:, :, None]
    return np.where(sums.counts > 0, leads_to, by_pair)


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

    def over_all_tasks(self, state_pairs: Integers, values: Floats) -> tuple[Floats, Floats]:
        """Known actions of states [state], and sums over them of next values [task, state].

        An action that several tasks know is counted once for each. Each has the mean of `values`
        [task, next state] over its transitions, as seen by the task of the row.
        """
        num_states = len(state_pairs)
        state_of = np.full(self._shape[1], num_states)
        state_of[state_pairs] = np.arange(num_states)[:, None]
        states = state_of[self._all.pairs]
        weights = self._all.counts / self.counts[self._tasks, self._all.pairs]
        known = np.bincount(states, weights=weights, minlength=num_states + 1)
        goes_on = self._next >= 0
        shape = (num_states + 1, values.shape[1])
        coordinates = states[goes_on], self._next[goes_on]
        table = coo_array((weights[goes_on], coordinates), shape=shape).tocsr()
        return np.asarray(known[:-1], dtype=np.float64), np.asarray(table @ values.T).T[:, :-1]

    def _sum(self, weights: Floats) -> Floats:
        tasks, pairs = self._shape
        sums = np.bincount(self._rows, weights=weights, minlength=tasks * pairs)
        return np.asarray(sums.reshape(tasks, pairs))


def decision_of(
    candidates: ArrayLike, tasks: Integers, preference: Floats, upper: Floats
) -> Decision:
    """The decision for the action of largest preference [row, action] in every row."""
    actions = preference.argmax(axis=1)
    rows = np.arange(len(actions))
    return Decision(
        torch.from_numpy(tasks),
        torch.from_numpy(actions),
        to_tensor(candidates, "candidates")[torch.from_numpy(rows), actions],
        torch.from_numpy(upper[rows, actions]),
    )
