"""Auxiliary targets of a representation: ranks of rewards, directions of next observations.

In a linear MDP the expectation of *any* function of the reward and the next observation is linear
in phi. Such functions are therefore valid targets for phi, and informative before values are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gfucb.episodic.buffer import StageBuffer
from gfucb.episodic.distinct_rows import Floats

# Lower bound of the spread of inputs, against division by zero.
SMALLEST_SPREAD = 1e-6


@dataclass(frozen=True, eq=False)
class AuxiliaryTargets:
    """The scales on which rewards and next observations become targets.

    All stages that share a representation share the scales. A stage that leads to one latent state
    only has next observations that differ by noise; with a scale of its own, that noise would
    weigh as much as the differences between states in other stages.

    Rewards are replaced by their ranks among all rewards, so that a rare large reward weighs no
    more than a small one.

    Attributes:
        center: the mean next observation, [observation].
        directions: principal directions of next observations, scaled, [observation, target].
        rewards: distinct rewards in increasing order, [reward].
        ranks: the target of each of them, of mean 0 and standard deviation `reward_weight`; all 0
            if rewards do not vary: [reward].
    """

    center: Floats
    directions: Floats
    rewards: Floats
    ranks: Floats

    @classmethod
    def of(
        cls, buffers: Sequence[StageBuffer], num_directions: int, reward_weight: float
    ) -> AuxiliaryTargets:
        """The scales for the transitions of these stages, with at most `num_directions` directions.

        Next observations (the inputs of their first actions) are measured in units of the spread
        of all inputs.
        """
        rewards, ranks = _ranks(np.concatenate([buffer.rewards for buffer in buffers]))
        ranks = reward_weight * ranks
        followed = [buffer for buffer in buffers if len(buffer.next_observations)]
        if not followed:
            return cls(np.zeros(0), np.zeros((0, 0)), rewards, ranks)
        observations = np.concatenate([_observations(buffer) for buffer in followed])
        counts = np.concatenate([_next_counts(buffer) for buffer in followed])
        center = counts @ observations / counts.sum()
        distinct = np.unique(observations, axis=0)
        _, _, principal = np.linalg.svd(distinct - distinct.mean(axis=0), full_matrices=False)
        inputs = np.concatenate(
            [buffer.inputs.arrays()[0].reshape(len(buffer.inputs), -1) for buffer in buffers]
        )
        spread = max(float(np.sqrt(inputs.var(axis=0).sum())), SMALLEST_SPREAD)
        directions = principal[:num_directions].T / spread
        return cls(center, directions, rewards, ranks)

    def __call__(self, buffer: StageBuffer) -> Floats:
        """The targets of every input, means over its samples: [input, 1 + target].

        Where an episode ended, the targets of the next observation are 0.
        """
        columns = [self.ranks[np.searchsorted(self.rewards, buffer.rewards)]]
        if len(buffer.next_observations):
            scaled = (_observations(buffer) - self.center) @ self.directions
            # The index -1 of an ended episode selects the row of zeros.
            columns += list(np.vstack([scaled, 0 * scaled[:1]])[buffer.next_indices].T)
        else:
            columns += [np.zeros(len(buffer)) for _ in self.directions.T]
        indices, size = buffer.input_indices, len(buffer.inputs)
        counts = np.bincount(indices, minlength=size)
        sums = [np.bincount(indices, weights=column, minlength=size) for column in columns]
        return np.asarray(np.stack(sums, axis=1) / counts[:, None])


def _ranks(rewards: Floats) -> tuple[Floats, Floats]:
    """Distinct rewards, and the mean rank of each, of mean 0 and variance 1: both [reward]."""
    distinct, counts = np.unique(rewards, return_counts=True)
    ranks = (counts.cumsum() - counts / 2) / len(rewards) - 0.5
    spread = float(np.sqrt(counts @ ranks**2 / len(rewards)))
    return distinct, ranks / spread if len(distinct) > 1 else ranks


def _observations(buffer: StageBuffer) -> Floats:
    """Next observations as the inputs of their first actions: [next_observation, observation]."""
    candidates, _ = buffer.next_observations.arrays()
    return candidates[:, 0].reshape(len(candidates), -1)


def _next_counts(buffer: StageBuffer) -> NDArray[np.int64]:
    """How often each next observation followed, [next_observation]."""
    indices = buffer.next_indices
    return np.bincount(indices[indices >= 0], minlength=len(buffer.next_observations))
