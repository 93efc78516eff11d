"""A class of representations and the size of a problem: settings of `gfucb theory`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from gfucb.core.errors import InvalidInputError, lookup
from gfucb.theory.bounds import (
    BanditSize,
    finite_generalised_dimension,
    linear_generalised_dimension,
)
from gfucb.theory.lemma_radii import (
    CorrectedRadius,
    PrintedRadius,
)
from gfucb.theory.requirements import (
    require_counts,
    require_not_negative,
    require_positive,
    require_probability,
)


@dataclass(frozen=True)
class TheoryProblem:
    """A class of representations and the size of a problem; features and inputs in unit balls."""

    kind: Literal["finite", "linear"] = "finite"
    """finite: a list of representations. linear: x -> B x with orthonormal rows."""
    num_tasks: int = 10
    """M, the number of tasks."""
    feature_dim: int = 2
    """k, the number of features of a representation."""
    num_rounds: int = 1000
    """T, the number of rounds or episodes."""
    num_representations: int = 8
    """Finite class: number of representations (the linear class ignores it)."""
    input_dim: int = 6
    """Linear class: d, the number of inputs (the finite class ignores it)."""
    noise_scale: float = 0.1
    """Standard deviation of the rewards (the printed radius assumes 1)."""
    ridge: float = 0.1
    """Penalty on heads in fit and set (the printed radius has none)."""
    failure_probability: float = 0.05
    """delta, the probability with which the bounds may fail."""
    horizon: int = 5
    """H, for the MDP part."""
    bellman_error: float = 0.0
    """I, the inherent Bellman error, for the MDP part."""

    def __post_init__(self) -> None:
        lookup({"finite": None, "linear": None}, self.kind, "class")
        require_counts(
            num_tasks=self.num_tasks,
            feature_dim=self.feature_dim,
            num_rounds=self.num_rounds,
            num_representations=self.num_representations,
            input_dim=self.input_dim,
            horizon=self.horizon,
        )
        require_positive(noise_scale=self.noise_scale, ridge=self.ridge)
        require_not_negative(bellman_error=self.bellman_error)
        if self.kind == "linear" and self.feature_dim > self.input_dim:
            raise InvalidInputError(
                "a linear representation has at most as many features as inputs, got feature_dim="
                f"{self.feature_dim} and input_dim={self.input_dim}"
            )
        require_probability(failure_probability=self.failure_probability)

    @property
    def size(self) -> BanditSize:
        """M, k and T."""
        return BanditSize(self.num_tasks, self.feature_dim, self.num_rounds)

    def log_covering_number(self, scale: float) -> float:
        """Log N(Phi, scale): log of the list, or k d log(1 + 2 sqrt(k) / scale)."""
        if self.kind == "finite":
            return math.log(self.num_representations)
        from gfucb.theory.covering import linear_log_covering  # not at the top: it needs torch

        root = math.sqrt(self.feature_dim)
        return linear_log_covering(self.feature_dim, self.input_dim, scale, norm_bound=root)

    def eluder_dimension(self, scale: float) -> float:
        """Upper bound on dim_E at `scale` for one task's class; O(1).

        Linear: `linear_eluder_bound`. Finite: N (N + 1) / 2 times that bound in 2 k dimensions.
        One pair of members makes an input independent. The inputs of one pair are independent
        for the linear class on [phi ; phi'], so a sequence splits into one part per pair.
        """
        from gfucb.theory.eluder_bounds import linear_eluder_bound  # not at the top: it needs torch

        if self.kind == "linear":
            root = math.sqrt(self.feature_dim)
            return linear_eluder_bound(
                input_dim=self.input_dim, norm_bound=root, input_bound=1.0, scale=scale
            )
        pairs = self.num_representations * (self.num_representations + 1) / 2
        return pairs * linear_eluder_bound(
            input_dim=2 * self.feature_dim,
            norm_bound=math.sqrt(2 * self.feature_dim) / 2,
            input_bound=math.sqrt(2),
            scale=scale,
        )

    def printed_radius(self, round_index: int) -> float:
        """beta_t of Lemma 1 as printed."""
        scale, size = self.size.cover_scale, self.size
        log_number = self.log_covering_number(scale)
        return PrintedRadius(
            size.num_tasks, size.feature_dim, log_number, scale, self.failure_probability
        )(round_index)

    def corrected_radius(self, round_index: int) -> float:
        """beta_t of Lemma 1, corrected, for the noise and the ridge of this problem."""
        scale, size = self.size.cover_scale, self.size
        return CorrectedRadius(
            num_tasks=size.num_tasks,
            feature_dim=size.feature_dim,
            log_covering_number=self.log_covering_number(scale),
            # A finite class covers itself, so its cover has no error.
            cover_scale=0.0 if self.kind == "finite" else scale,
            noise_scale=self.noise_scale,
            ridge=self.ridge,
            failure_probability=self.failure_probability,
        )(round_index)

    def generalised_dimension(self, regulariser: float = 1.0) -> float:
        """Upper bound on sum_t min(1, D_t^2) of one task."""
        if self.kind == "linear":
            return linear_generalised_dimension(
                input_dim=self.input_dim,
                num_rounds=self.num_rounds,
                norm_bound=math.sqrt(self.feature_dim),
                input_bound=1.0,
                regulariser=regulariser,
            )
        return finite_generalised_dimension(
            num_representations=self.num_representations,
            feature_dim=self.feature_dim,
            num_rounds=self.num_rounds,
            regulariser=regulariser,
        )
