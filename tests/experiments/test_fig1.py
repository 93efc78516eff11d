"""Figure 1: what its verdicts say of made-up rows."""

import numpy as np
import pandas as pd
import pytest

from gfucb.experiments.reproductions.fig1 import FIG1, best_epsilon
from gfucb.experiments.reproductions.fig1_rows import Line

LINES = {
    Line("gfucb", 10): 10.0,
    Line("gfucb", 5): 14.0,
    Line("gfucb", 1): 20.0,
    Line("greedy"): 12.0,
    Line("oracle-ucb", 1): 4.0,
    Line("eps-greedy", 1, epsilon=0.1): 40.0,
    Line("eps-greedy", 1, epsilon=0.05): 30.0,
    Line("eps-greedy", 1, epsilon=0.01): 35.0,
}


def made_up(finals: dict[Line, float], num_seeds: int = 8, spread: float = 0.5) -> pd.DataFrame:
    """Rows whose final regrets are those given, up to a spread over seeds."""
    rows = []
    for index, (line, final) in enumerate(finals.items()):
        lots = np.random.default_rng(index).normal(0, spread, num_seeds)
        for seed in range(num_seeds):
            for done in (300, 600):
                rows.append(
                    {
                        "agent": line.agent,
                        "epsilon": line.epsilon,
                        "group_size": line.group_size,
                        "num_actions": line.num_actions,
                        "round": done,
                        "seed": seed,
                        "regret": final * done / 600 + lots[seed],
                        "seconds": 2.0,
                    }
                )
    return pd.DataFrame(rows)


def verdicts(rows: pd.DataFrame) -> dict[str, tuple[bool, str]]:
    return {v.claim: (v.holds, v.measured) for v in FIG1.verdicts(rows)}


def test_a_clear_ordering_holds_and_ratios_are_those_of_the_means():
    found = verdicts(made_up(LINES))
    for claim in (
        "GFUCB M = 10 below GFUCB M = 5",
        "GFUCB M = 5 below GFUCB M = 1",
        "GFUCB M = 1 below independent ε-greedy (0.1)",
        "GFUCB M = 1 below independent ε-greedy (0.05)",
    ):
        assert found[claim][0]
    holds, measured = found["sharing among ten pays: R(M = 1) / R(M = 10) at least 1.5"]
    assert holds and float(measured.split("= ")[1].split()[0]) == pytest.approx(2.0, abs=0.1)
    assert found["GFUCB at M = 10 is within 3 times the oracle's regret"][0]


def test_an_ordering_within_the_noise_does_not_hold():
    close = LINES | {Line("gfucb", 5): 10.1}
    found = verdicts(made_up(close, spread=2.0))
    assert not found["GFUCB M = 10 below GFUCB M = 5"][0]
    assert not verdicts(made_up(LINES | {Line("gfucb", 10): 30.0}))[
        "sharing among ten pays: R(M = 1) / R(M = 10) at least 1.5"
    ][0]


def test_the_best_epsilon_is_the_one_with_the_least_regret():
    assert best_epsilon(made_up(LINES)) == 0.05


def test_a_run_that_ended_early_is_compared_at_its_last_round():
    rows = made_up(LINES | {Line("paper"): 24.0})
    short = rows[(rows["agent"] != "paper") | (rows["round"] == 300)]
    _, measured = verdicts(short)[
        "the paper's procedure (stable) has more regret than our default at M = 10"
    ]
    assert float(measured.split("= ")[1].split()[0]) == pytest.approx(12 / 5, rel=0.1)


def test_lots_of_the_resampling_are_fixed():
    rows = made_up(LINES)
    assert FIG1.verdicts(rows) == FIG1.verdicts(rows)
