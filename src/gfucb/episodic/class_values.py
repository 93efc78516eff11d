"""Lines 4 to 8 of Algorithm 2 on latent classes: fits, radii and optimistic values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gfucb.episodic.class_data import sums_by
from gfucb.episodic.distinct_rows import Floats, Integers
from gfucb.episodic.episodic_settings import Range

# The bonus of features with squared width w = phi^T V^-1 phi is
#     SPREAD_BONUS * (standard deviation of the targets) * sqrt(w)
#     + COUNT_BONUS * max(1, log(N) / 2) * range * w
# for N samples of the task in the stage. On one-hot features with n samples, w is about 1 / n, and
# this is the bonus of `StageValues`, halved: classes are few, and all pairs show them.
SPREAD_BONUS = 0.5
COUNT_BONUS = 0.1
RIDGE = 0.1


@dataclass(frozen=True, eq=False)
class StageTransitions:
    """Distinct transitions of one stage.

    Attributes:
        tasks: [row].
        pairs: the index of the input among the inputs of the stage, [row].
        next_states: the index of the observation that followed, -1 at an end, [row].
        counts: [row].
        rewards: sums of rewards, [row].
        squares: sums of squared rewards, [row].
        candidates: the pairs of each observation of the stage, [observation, action].
    """

    tasks: Integers
    pairs: Integers
    next_states: Integers
    counts: Floats
    rewards: Floats
    squares: Floats
    candidates: Integers


@dataclass(frozen=True, eq=False)
class ClassValues:
    """The optimistic values of one stage as a function of features.

    Attributes:
        heads: [task, class].
        inverses: V^-1, [task, class, class].
        variances: of the targets of each class, [task, class].
        count_bonus: the factor of squared widths, [task].
        spread_bonus: the factor of standard deviations.
        value_range: bounds of the values.
    """

    heads: Floats
    inverses: Floats
    variances: Floats
    count_bonus: Floats
    spread_bonus: float
    value_range: Range

    @classmethod
    def of(
        cls,
        stage: StageTransitions,
        features: Floats,
        next_values: Floats,
        value_range: Range,
        bonus: float = 1.0,
    ) -> ClassValues:
        """The values of a stage.

        `features` [pair, class] are those of its inputs, `next_values` [task, observation] the
        values of the next stage, and `bonus` multiplies all bonuses.
        """
        (low, high), num_tasks = value_range, len(next_values)
        tasks, counts, phi = stage.tasks, stage.counts, features[stage.pairs]
        size = phi.shape[1]
        padded = np.concatenate([next_values, np.zeros((num_tasks, 1))], axis=1)
        following = padded[tasks, stage.next_states] - low
        sums = stage.rewards + counts * following  # of R + V_{h+1}(s') - low
        products = (counts[:, None, None] * phi[:, :, None] * phi[:, None, :]).reshape(-1, size**2)
        grams = sums_by(tasks, products, num_tasks).reshape(num_tasks, size, size)
        moments = sums_by(tasks, sums[:, None] * phi, num_tasks)
        # Line 4: program (1) for this phi.
        inverses: Floats = np.linalg.inv(grams + RIDGE * np.eye(size)).astype(np.float64)
        heads = np.einsum("ijk,ik->ij", inverses, moments)
        errors = following - np.einsum("nk,nk->n", phi, heads[tasks])
        residuals = stage.squares + 2 * errors * stage.rewards + counts * errors**2
        numbers = sums_by(tasks, counts[:, None] * phi, num_tasks)
        # Each class also has one sample of the mean variance, over all tasks.
        variances = sums_by(tasks, phi * np.maximum(residuals, 0.0)[:, None], num_tasks)
        variances = (variances + residuals.sum() / max(counts.sum(), 1.0)) / (numbers + 1)
        # Paper: one radius for all of a stage, see `StageValues`.
        samples = np.maximum(numbers.sum(axis=1), 1.0)
        count_bonus = COUNT_BONUS * np.maximum(1.0, 0.5 * np.log(samples)) * (high - low)
        return cls(
            heads, inverses, variances, bonus * count_bonus, bonus * SPREAD_BONUS, value_range
        )

    def __call__(self, features: Floats, tasks: Integers) -> Floats:
        """Optimistic values of features [n, class] of tasks [n]: [n]."""
        low, high = self.value_range
        means = np.einsum("nk,nk->n", features, self.heads[tasks])
        widths = np.einsum("nj,njk,nk->n", features, self.inverses[tasks], features, optimize=True)
        variances = np.einsum("nk,nk->n", features, self.variances[tasks])
        bonus = self.spread_bonus * np.sqrt(np.maximum(variances * widths, 0.0))
        return np.clip(low + means + bonus + self.count_bonus[tasks] * widths, low, high)

    def state_values(self, stage: StageTransitions, features: Floats) -> Floats:
        """V_h of every task and observation of the stage: [task, observation]."""
        number, values = len(stage.candidates), []
        for task in range(len(self.heads)):
            own = self(features, np.full(len(features), task))
            values.append(own[stage.candidates].max(axis=1) if number else np.zeros(0))
        return np.stack(values)
