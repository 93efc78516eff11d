"""All bounds of the theory for a class and a problem size, in one table."""

from __future__ import annotations

import math
from dataclasses import dataclass

from gfucb.theory.bounds import (
    MDPSize,
    linear_rates,
    printed_theorem_1,
    printed_theorem_2,
    repaired_theorem_1,
    repaired_theorem_2,
    sharing_gain,
)
from gfucb.theory.lemma_radii import (
    CorrectedStageRadius,
    PrintedStageRadius,
)
from gfucb.theory.theory_problem import TheoryProblem


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
