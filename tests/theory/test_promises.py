import math

import pytest

from gfucb.environments import linear_bandit
from gfucb.theory.promises import TheoryProblem, promises


def by_name(problem: TheoryProblem) -> dict:
    return {promise.name: promise for promise in promises(problem)}


def test_the_table_is_what_its_functions_give():
    problem = TheoryProblem(num_tasks=4, feature_dim=2, num_rounds=50, num_representations=3)
    table = by_name(problem)
    assert table["log covering number"].holds == math.log(3)
    assert table["beta_T, Lemma 1"].printed == pytest.approx(problem.printed_radius(50))
    assert table["beta_T, Lemma 1"].holds == pytest.approx(problem.corrected_radius(50))
    assert table["regret, trivial"].holds == 400


def test_the_linear_table_has_rates_and_the_covering_number_of_the_class():
    problem = TheoryProblem(kind="linear", input_dim=6, feature_dim=2)
    table = by_name(problem)
    known = linear_bandit(input_dim=6, feature_dim=2).representation_class
    scale = problem.size.cover_scale
    assert table["log covering number"].holds == pytest.approx(known.log_covering_number(scale))
    assert table["rate, lower bound"].printed > 0


def test_sharing_promises_more_for_more_tasks_up_to_their_root():
    gains = [
        by_name(TheoryProblem(num_tasks=m, num_representations=10**6))["gain of sharing"].printed
        for m in (1, 4, 16)
    ]
    assert gains[0] == pytest.approx(1.0)
    assert gains[0] < gains[1] < gains[2] < 4


def test_the_printed_second_theorem_promises_nothing():
    table = by_name(TheoryProblem())
    assert table["regret, Theorem 2"].printed > 1e6 * table["regret, Theorem 2"].holds
