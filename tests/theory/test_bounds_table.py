import math

import numpy as np
import pytest
import torch

from gfucb.core.errors import GFUCBError
from gfucb.core.random import random_stream
from gfucb.environments import linear_bandit
from gfucb.theory import (
    MDPStage,
    TheoryProblem,
    d2_uncertainties,
    eluder_dimension,
    eluder_lower_bound,
    evaluate_bounds,
    is_independent,
    linear_log_covering,
    sum_class,
)


def bounds_by_name(problem: TheoryProblem) -> dict:
    return {bound.name: bound for bound in evaluate_bounds(problem)}


def test_the_table_contains_the_values_of_its_functions():
    problem = TheoryProblem(num_tasks=4, feature_dim=2, num_rounds=50, num_representations=3)
    table = bounds_by_name(problem)
    assert table["log covering number"].holds == math.log(3)
    assert table["beta_T, Lemma 1"].printed == pytest.approx(problem.printed_radius(50))
    assert table["beta_T, Lemma 1"].holds == pytest.approx(problem.corrected_radius(50))
    assert table["regret, trivial"].holds == 400


def test_the_linear_table_has_rates_and_the_covering_number_of_the_class():
    problem = TheoryProblem(kind="linear", input_dim=6, feature_dim=2)
    table = bounds_by_name(problem)
    known = linear_bandit(input_dim=6, feature_dim=2).representation_class
    scale = problem.size.cover_scale
    assert table["log covering number"].holds == pytest.approx(known.log_covering_number(scale))
    assert table["rate, lower bound"].printed > 0


def test_invalid_numbers_are_refused_with_a_message():
    values = np.eye(3)
    generator = random_stream(0, "search")
    tasks = torch.zeros(2, dtype=torch.int64)
    for call, message in [
        (lambda: eluder_lower_bound(values, 0.5, generator, beam_width=1.5), "beam_width"),
        (lambda: is_independent(values, [0.5], 0, 0.5), "numbered 0 to 2"),
        (lambda: eluder_dimension([["a"]], 0.5), "real numbers"),
        (lambda: eluder_dimension([[0.0, 1e200], [1e200, 0.0]], 0.5), "rescale"),
        (lambda: sum_class(np.zeros((4, 3, 9)), 12), "more than the limit"),
        (lambda: linear_log_covering(-2, -3, 0.1, norm_bound=1.0), "feature_dim"),
        (lambda: MDPStage(np.array([[["a"]]]), np.zeros((1, 1))), "real numbers"),
        (lambda: d2_uncertainties(1e8 * torch.ones(2, 2), tasks, 1e-8), "double precision"),
        (lambda: TheoryProblem(kind="cubic"), "finite, linear"),
    ]:
        with pytest.raises(GFUCBError, match=message):
            call()


def test_the_gain_of_sharing_grows_with_tasks_up_to_their_root():
    gains = [
        bounds_by_name(TheoryProblem(num_tasks=m, num_representations=10**6))[
            "gain of sharing"
        ].printed
        for m in (1, 4, 16)
    ]
    assert gains[0] == pytest.approx(1.0)
    assert gains[0] < gains[1] < gains[2] < 4


def test_the_printed_theorem_2_is_vacuous():
    table = bounds_by_name(TheoryProblem())
    assert table["regret, Theorem 2"].printed > 1e6 * table["regret, Theorem 2"].holds
