"""All bounds of the theory for a class and a problem size, in one table."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from gfucb.core.errors import InvalidInputError, lookup
from gfucb.theory.bounds import (
    BanditSize,
    MDPSize,
    finite_generalised_dimension,
    linear_generalised_dimension,
    linear_rates,
    printed_theorem_1,
    printed_theorem_2,
    repaired_theorem_1,
    repaired_theorem_2,
    sharing_gain,
)
from gfucb.theory.covering import linear_log_covering
from gfucb.theory.eluder_bounds import linear_eluder_bound
from gfucb.theory.lemma_radii import (
    CorrectedRadius,
    CorrectedStageRadius,
    PrintedRadius,
    PrintedStageRadius,
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
        root = math.sqrt(self.feature_dim)
        return linear_log_covering(self.feature_dim, self.input_dim, scale, norm_bound=root)

    def eluder_dimension(self, scale: float) -> float:
        """Upper bound on dim_E at `scale` for one task's class; O(1).

        Linear: `linear_eluder_bound`. Finite: N (N + 1) / 2 times that bound in 2 k dimensions.
        One pair of members makes an input independent. The inputs of one pair are independent
        for the linear class on [phi ; phi'], so a sequence splits into one part per pair.
        """
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


@dataclass(frozen=True)
class Bound:
    """One line of the table: a quantity as printed in the paper, and the value that holds.

    Either is None where it does not exist.
    """

    name: str
    printed: float | None
    holds: float | None
    remark: str


def evaluate_bounds(problem: TheoryProblem) -> list[Bound]:
    """Covering number, dimensions, radii and regret bounds for `problem`; O(1)."""
    return [*_class_bounds(problem), *_bandit_bounds(problem), *_mdp_bounds(problem)]


def _class_bounds(problem: TheoryProblem) -> list[Bound]:
    scale = problem.size.cover_scale
    log_number = problem.log_covering_number(scale)
    return [
        Bound("log covering number", log_number, log_number, "of Phi at scale 1/(kMT)"),
        Bound("eluder dimension", problem.eluder_dimension(scale), None, "one task, upper bound"),
        Bound(
            "generalised dimension",
            None,
            problem.generalised_dimension(),
            "sum_t min(1, D^2) of one task, upper bound",
        ),
        Bound(
            "gain of sharing",
            sharing_gain(problem.size, log_covering_number=log_number),
            None,
            "bound for M separate tasks over bound for M shared tasks; at most sqrt(M)",
        ),
    ]


def _bandit_bounds(problem: TheoryProblem) -> list[Bound]:
    size, rounds = problem.size, problem.num_rounds
    printed, corrected = problem.printed_radius(rounds), problem.corrected_radius(rounds)
    regret_printed = printed_theorem_1(
        size, eluder_dimension=problem.eluder_dimension(size.cover_scale), squared_radius=printed
    )
    regret = repaired_theorem_1(
        size,
        generalised_dimension=problem.generalised_dimension(),
        squared_radius=corrected,
    )
    lines = [
        Bound("beta_T, Lemma 1", printed, corrected, "squared radius; printed for noise 1"),
        Bound("regret, Theorem 1", regret_printed, regret, "all tasks; |f| <= 1, |w| <= sqrt(k)"),
        Bound(
            "regret, trivial",
            None,
            2.0 * size.num_tasks * rounds,
            "2 M T, the worst actions",
        ),
    ]
    if problem.kind == "linear":
        rates = linear_rates(size, input_dim=problem.input_dim)
        lines += [
            Bound("rate, shared", rates.gfucb, None, "sqrt(MTd(Mk + dk)), as Hu et al. 2021"),
            Bound("rate, separate tasks", rates.independent, None, "M d sqrt(T)"),
            Bound("rate, lower bound", rates.lower, None, "kM sqrt(T) + d sqrt(kMT)"),
        ]
    return lines


def _mdp_bounds(problem: TheoryProblem) -> list[Bound]:
    size, scale = problem.size, problem.size.cover_scale
    common = {
        "num_tasks": size.num_tasks,
        "feature_dim": size.feature_dim,
        "num_episodes": size.num_rounds,
    }
    delta, error = problem.failure_probability, problem.bellman_error
    printed = PrintedStageRadius(
        **common,
        log_covering_number=problem.log_covering_number(scale),
        bellman_error=error,
        failure_probability=delta,
    )(1)
    corrected = CorrectedStageRadius(
        **common,
        horizon=problem.horizon,
        log_covering_number=problem.log_covering_number(scale),
        cover_scale=scale,
        head_bound=math.sqrt(size.feature_dim),
        bellman_error=error,
        failure_probability=delta,
    )(1)
    episodic = MDPSize(size.num_tasks, size.num_rounds, problem.horizon)
    regret_printed = printed_theorem_2(
        episodic,
        eluder_dimension=problem.eluder_dimension(scale),
        squared_radius=printed,
        scale=scale,
        bellman_error=error,
        failure_probability=delta,
    )
    regret = repaired_theorem_2(
        episodic,
        generalised_dimension=problem.generalised_dimension(),
        squared_radius=corrected,
        bellman_error=error,
        failure_probability=delta,
    )
    trivial = float(size.num_tasks * size.num_rounds)
    return [
        Bound(
            "beta_h, Lemma 4",
            printed,
            corrected,
            "squared radius of a stage; printed without alpha",
        ),
        Bound("regret, Theorem 2", regret_printed, regret, "printed proof: a count used as a sum"),
        Bound("regret, trivial (MDP)", None, trivial, "M T: values lie in [0, 1]"),
    ]
