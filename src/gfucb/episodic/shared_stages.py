"""Whether transitions and rewards depend on the stage, and cells that all stages share.

If they do not, the transitions of all stages tell what an action does. The evidence of counts that
all stages share is compared with that of counts for each stage.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from gfucb.episodic.distinct_rows import Floats, Integers
from gfucb.episodic.observation_table import ObservationTable, digest_of
from gfucb.episodic.regions import fit_regions

# Stages are compared on so many regions: with more of them few samples of a region are left for
# each stage, with fewer the stage tells where in its region an observation is.
COMPARED_REGIONS = 16
# Of the Dirichlet prior on the outcomes of a pair.
CONCENTRATION = 0.1
# Rewards are compared as so many levels.
REWARD_LEVELS = 8
# Stages of a finite environment differ if the evidence says so by a factor of e^2, or that of one
# of n pairs of state and action, or of n stages, by a factor of n e^2. The sum over all would not
# do: what is random and does not depend on the stage outweighs what does.
LARGEST_CONTRADICTION = 2.0
# With fewer episodes of all tasks nothing can contradict: in locks stages whose actions differ were
# then shared for up to twelve episodes.
FEWEST_EPISODES = 16
# Of the logarithm of an evidence.
ROUNDING = 1e-6


class SharedCells:
    """Every distinct vector is a cell, the same one in all stages.

    Args:
        tables: of the observations, [stage].
        sizes: the number of vectors of each stage that have cells from the start, [stage].
    """

    def __init__(self, tables: Sequence[ObservationTable], sizes: Sequence[int]) -> None:
        self._index: dict[bytes, int] = {}
        for stage, (table, size) in enumerate(zip(tables, sizes, strict=True)):
            self.add(stage, table.keys.rows[:size], 0)

    def num_cells(self, stage: int) -> int:
        """The number of vectors of all stages."""
        return len(self._index)

    def find(self, stage: int, rows: NDArray[np.generic], known: int) -> Integers:
        """The numbers of the vectors."""
        found = [self._index.get(digest_of(row), -1) for row in rows]
        cells = np.array(found, dtype=np.int64)
        return np.where(cells < known, cells, -1)

    nearest = find

    def add(self, stage: int, rows: NDArray[np.generic], known: int) -> Integers:
        """The numbers of the vectors; the next one for a new vector."""
        found = [self._index.setdefault(digest_of(row), len(self._index)) for row in rows]
        return np.array(found, dtype=np.int64)

    def recentre(self, stage: int, rows: NDArray[np.generic], cells: Integers) -> None:
        """Nothing: a vector is its own cell."""

    def restore(self, stage: int, rows: NDArray[np.generic], cells: Integers) -> None:
        """Give the vectors their numbers again."""
        for row, cell in zip(rows, cells, strict=True):
            self._index.setdefault(digest_of(row), int(cell))


def states_are_alike(tables: Sequence[ObservationTable], num_actions: int) -> bool:
    """Whether transitions and rewards of a task depend on state and action, not on the stage."""
    if len(tables[0]) < FEWEST_EPISODES:
        return False
    decoder = SharedCells(tables, [len(table.keys) for table in tables])
    compared = _Compared(tables, num_actions, [decoder.add(0, t.keys.rows, 0) for t in tables])
    outcomes = compared.next_cells(), compared.reward_levels()
    if any(_contradict(*own) for own in outcomes):
        return False
    # Where no stages have a state in common there is nothing to share.
    return bool(_gains(*outcomes[0]).any())


def stages_are_alike(tables: Sequence[ObservationTable], num_actions: int, seed: int) -> bool:
    """Whether transitions and rewards of a task depend on region and action, not on the stage."""
    if len(tables) < 2:
        return False
    sizes = [len(table.keys) for table in tables]
    decoder = fit_regions(tables, sizes, seed, at_most=COMPARED_REGIONS)
    compared = _Compared(tables, num_actions, [decoder.find(0, t.keys.rows, 0) for t in tables])
    outcomes = compared.next_cells(), compared.reward_levels()
    return all(_gains(*own).sum() >= 0 for own in outcomes)


class _Compared:
    """Transitions by pair and stage.

    Args:
        tables: the transitions, [stage].
        num_actions: A.
        cells: of the keys of each table, the same cells in all stages, [stage][key].
    """

    def __init__(
        self, tables: Sequence[ObservationTable], num_actions: int, cells: Sequence[Integers]
    ) -> None:
        num_cells = 1 + max(int(own.max(initial=0)) for own in cells)
        pairs = [
            (table.tasks * num_cells + own[table.key_indices]) * num_actions + table.actions
            for own, table in zip(cells, tables, strict=True)
        ]
        self._pairs = np.unique(np.concatenate(pairs), return_inverse=True)[1].reshape(-1)
        self._last_stage = len(tables) - 1
        self._stages = np.repeat(np.arange(len(tables)), [len(table) for table in tables])
        self._rewards = np.concatenate([table.rewards for table in tables])
        reached = [
            own[table.observations.rows[:, 0].astype(np.int64)]
            for own, table in zip(cells, tables, strict=True)
        ]
        self._following = np.concatenate(
            [
                np.append(own, num_cells)[table.next_observations]  # -1 is an end
                for table, own in zip(tables[:-1], reached[1:], strict=True)
            ]
        )

    def next_cells(self) -> tuple[Integers, Integers, Integers]:
        """Pair, stage and next cell of the transitions before the last stage, [transition]."""
        goes_on = self._stages < self._last_stage
        return self._pairs[goes_on], self._stages[goes_on], self._following

    def reward_levels(self) -> tuple[Integers, Integers, Integers]:
        """Pair, stage and level of the reward of all transitions, [transition]."""
        rewards = self._rewards
        levels = np.quantile(rewards, np.linspace(0, 1, REWARD_LEVELS)) if len(rewards) else rewards
        return self._pairs, self._stages, np.searchsorted(np.unique(levels), rewards)


def _contradict(pairs: Integers, stages: Integers, outcomes: Integers) -> bool:
    """Whether outcomes [n] of some pair or in some stage depend on the stage.

    The outcomes of a pair have their frequencies in all stages. The alternative is that those of a
    stage differ, with a prior of one sample of these frequencies; stages that agree cost nothing.
    """
    counts = _Counts(pairs, stages, outcomes)
    shares = counts.shared / counts.of_pairs[counts.pairs]
    own = shares[counts.in_shared]
    each = gammaln(own + counts.staged) - gammaln(own) - counts.staged * np.log(own)
    gains = np.bincount(counts.groups, weights=each) - gammaln(1 + counts.of_groups)
    is_compared = np.bincount(counts.group_pairs)[counts.group_pairs] > 1
    for labels in (np.zeros_like(counts.group_pairs), counts.group_pairs, counts.group_stages):
        sums = np.bincount(labels, weights=gains * is_compared)
        number = len(np.unique(labels[is_compared]))
        if number and sums.max() > LARGEST_CONTRADICTION + np.log(number):
            return True
    return False


def _gains(pairs: Integers, stages: Integers, outcomes: Integers) -> Floats:
    """Log evidence of outcomes [n] that depend on the pair, less that by pair and stage, [pair]."""
    counts = _Counts(pairs, stages, outcomes)
    shared = _log_evidence(counts.pairs, counts.shared, counts.size)
    by_stage = _log_evidence(counts.groups, counts.staged, counts.size)
    gains = shared - np.bincount(counts.group_pairs, weights=by_stage, minlength=len(shared))
    return np.where(np.abs(gains) > ROUNDING, gains, 0.0)


class _Counts:
    """How often outcomes [n] occurred in pairs [n], and in groups of one pair and one stage.

    Attributes:
        size: the number of outcomes.
        pairs, shared: of each distinct (pair, outcome), the pair and the count.
        groups, staged, in_shared: of each distinct (group, outcome), the group, the count, and the
            index among those of pairs.
        group_pairs, group_stages: the pair and the stage of each group.
        of_pairs, of_groups: the number of outcomes of each pair and each group.
    """

    def __init__(self, pairs: Integers, stages: Integers, outcomes: Integers) -> None:
        self.size = int(outcomes.max(initial=0)) + 1
        num_stages = int(stages.max(initial=0)) + 1
        codes, self.shared = np.unique(pairs * self.size + outcomes, return_counts=True)
        self.pairs = codes // self.size
        staged, self.staged = np.unique(
            (pairs * num_stages + stages) * self.size + outcomes, return_counts=True
        )
        numbers, groups = np.unique(staged // self.size, return_inverse=True)
        self.groups = groups.reshape(-1)
        self.group_pairs, self.group_stages = np.divmod(numbers, num_stages)
        own = self.group_pairs[self.groups] * self.size + staged % self.size
        self.in_shared = np.searchsorted(codes, own)
        self.of_pairs = np.bincount(self.pairs, weights=self.shared)
        self.of_groups = np.bincount(self.groups, weights=self.staged)


def _log_evidence(groups: Integers, counts: Integers, size: int) -> Floats:
    """The log evidence of the outcomes of groups, given the counts [row] of those that occurred."""
    each = gammaln(CONCENTRATION + counts) - gammaln(CONCENTRATION)
    total = size * CONCENTRATION
    sizes = np.bincount(groups, weights=counts)
    together = np.bincount(groups, weights=each)
    return np.asarray(together + gammaln(total) - gammaln(total + sizes))
