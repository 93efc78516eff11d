"""What else a representation is to predict: ranks of rewards, directions of next observations.

In a linear MDP the expectation of *any* function of what follows is linear in phi, so each such
function teaches phi, long before values do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gfucb.episodic.buffer import Floats, StageBuffer

# What varies less than this says nothing.
SMALLEST_SPREAD = 1e-6


@dataclass(frozen=True, eq=False)
class AuxiliaryTargets:
    """How rewards and next observations are put on scales of their own.

    All stages that share a representation share the scales: where only one state was ever entered,
    the next observation is noise, and a scale of its own would make it as loud as news.

    Rewards are replaced by their ranks among all: a rare large one says no more than a small one.

    Attributes:
        center: the mean next observation, [observation].
        directions: principal directions of next observations, scaled, [observation, target].
        rewards: distinct rewards in increasing order, [reward].
        ranks: what each of them counts as, of mean 0 and standard deviation `reward_weight`; all
            0 if rewards do not vary: [reward].
    """

    center: Floats
    directions: Floats
    rewards: Floats
    ranks: Floats

    @classmethod
    def of(
        cls, buffers: Sequence[StageBuffer], num_directions: int, reward_weight: float
    ) -> AuxiliaryTargets:
        """The scales for what these stages have seen; at most `num_directions` directions.

        Next observations (the inputs of their first actions) are measured in units of the
        spread of all inputs played.
        """
        rewards, ranks = _ranks(np.concatenate([memory.rewards for memory in buffers]))
        ranks = reward_weight * ranks
        entered = [_observations(memory) for memory in buffers if len(memory.places)]
        if not entered:
            return cls(np.zeros(0), np.zeros((0, 0)), rewards, ranks)
        places = np.concatenate(entered)
        followed = [memory for memory in buffers if len(memory.places)]
        counts = np.concatenate(
            [np.bincount(m.entered[m.entered >= 0], minlength=len(m.places)) for m in followed]
        )
        center = counts @ places / counts.sum()
        distinct = np.unique(places, axis=0)
        _, _, principal = np.linalg.svd(distinct - distinct.mean(axis=0), full_matrices=False)
        inputs = np.concatenate(
            [memory.inputs.arrays()[0].reshape(len(memory.inputs), -1) for memory in buffers]
        )
        unit = max(float(np.sqrt(inputs.var(axis=0).sum())), SMALLEST_SPREAD)
        directions = principal[:num_directions].T / unit
        return cls(center, directions, rewards, ranks)

    def __call__(self, memory: StageBuffer) -> Floats:
        """Means over the samples of every input: [input, 1 + target]; after the end, nothing."""
        columns = [self.ranks[np.searchsorted(self.rewards, memory.rewards)]]
        if len(memory.places):
            seen = (_observations(memory) - self.center) @ self.directions
            columns += [column for column in np.vstack([seen, 0 * seen[:1]])[memory.entered].T]
        else:
            columns += [np.zeros(len(memory)) for _ in self.directions.T]
        played, size = memory.played, len(memory.inputs)
        counts = np.bincount(played, minlength=size)
        sums = [np.bincount(played, weights=column, minlength=size) for column in columns]
        return np.asarray(np.stack(sums, axis=1) / counts[:, None])


def _ranks(rewards: Floats) -> tuple[Floats, Floats]:
    """Distinct rewards, and the mean rank of each, of mean 0 and variance 1: both [reward]."""
    distinct, counts = np.unique(rewards, return_counts=True)
    ranks = (counts.cumsum() - counts / 2) / len(rewards) - 0.5
    spread = float(np.sqrt(counts @ ranks**2 / len(rewards)))
    return distinct, ranks / spread if len(distinct) > 1 else ranks


def _observations(memory: StageBuffer) -> Floats:
    """What was entered, seen as the inputs of first actions: [place, observation]."""
    places, _ = memory.places.arrays()
    return places[:, 0].reshape(len(places), -1)
