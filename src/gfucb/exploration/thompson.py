"""Thompson sampling of the heads, as probabilities of all actions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from gfucb.core.action_sets import ActionSets
from gfucb.core.records import require_finite_values
from gfucb.core.validation.settings import validate_count, validate_seed
from gfucb.exploration.draws import generator_for
from gfucb.exploration.last_layer import center_ellipsoid
from gfucb.models import ConfidenceSet

# Values of samples that are stored at once.
LARGEST_BLOCK = 4_000_000


@dataclass(frozen=True)
class ThompsonSampling:
    """The probability that an action is the best one under a sampled head.

        w_task  ~  N( center_task, squared_radius * covariance_task )

    The probability of an action is the share of samples in which it has the largest value. The
    action is then drawn with that probability, so the logged probabilities are exactly those of
    the draw. They are Monte Carlo estimates of those of Thompson sampling with the whole posterior,
    with a standard error of at most 0.5 / sqrt(samples). An action that no sample prefers has
    probability 0; `Randomised(epsilon=...)` gives each action a positive one.

    For tables and ids the heads have their posterior. For other models the squared radius stands
    for the noise variance, as in `HeadSampling`, and the uncertainty of the representation is
    ignored. Cost of a row of K actions: an eigendecomposition of size K, and K^2 for each sample.

    Args:
        samples: for each row.
        seed: of the samples, which stay the same until the next reward.
    """

    samples: int = 1000
    seed: int = 0

    def __post_init__(self) -> None:
        validate_count(self.samples, "samples")
        validate_seed(self.seed)

    @property
    def monte_carlo_samples(self) -> int:
        """How many samples estimate a probability."""
        return self.samples

    def distribution(self, confidence_set: ConfidenceSet, action_sets: ActionSets) -> Tensor:
        """Probabilities of all actions for `Randomised`: [row, action]."""
        center, ellipsoid = confidence_set.center, center_ellipsoid(confidence_set)
        features, tasks = action_sets.features(center.representation), action_sets.tasks
        means = ellipsoid.center_values(features, tasks)
        covariances = ellipsoid.squared_radius * ellipsoid.value_covariances(features, tasks)
        require_finite_values(means)
        require_finite_values(covariances)
        # Candidates that are alike have a singular covariance, which has no Cholesky factor.
        eigenvalues, vectors = torch.linalg.eigh(covariances)
        factors = vectors * eigenvalues.clamp_min(0).sqrt()[:, None, :]
        generator = generator_for(self.seed, "thompson", confidence_set, action_sets)
        rows = [
            self._shares(means[row], factors[row], action_sets.available[row], generator)
            for row in range(len(tasks))
        ]
        return torch.stack(rows)

    def _shares(
        self, means: Tensor, factor: Tensor, available: Tensor, generator: torch.Generator
    ) -> Tensor:
        """Shares of samples in which each action is the best: [action]."""
        counts = torch.zeros_like(means)
        for size in self._blocks(len(means)):
            normal = torch.randn(size, len(means), generator=generator, dtype=torch.float64)
            values = means + normal.to(means.device) @ factor.T
            best = values.masked_fill(~available, -torch.inf).argmax(1)
            counts += torch.bincount(best, minlength=len(means))
        return counts / self.samples

    def _blocks(self, num_actions: int) -> Iterator[int]:
        """Sizes of blocks of samples that fit into memory."""
        size = max(1, LARGEST_BLOCK // num_actions)
        for start in range(0, self.samples, size):
            yield min(size, self.samples - start)
