"""Figure 1: verdicts on synthetic rows, seeds of the jobs."""

import numpy as np
import pandas as pd
import pytest

from gfucb.paper import Options
from gfucb.paper.fig1 import FIG1
from gfucb.paper.fig1.analysis import best_epsilon
from gfucb.paper.fig1.sweep import GFUCB_TEN, GREEDY_TEN, Curve, jobs

REGRETS = {
    Curve("gfucb", 10): 10.0,
    Curve("gfucb", 5): 14.0,
    Curve("gfucb", 1): 20.0,
    Curve("greedy"): 12.0,
    Curve("oracle-ucb", 1): 4.0,
    Curve("eps-greedy", 1, epsilon=0.1): 40.0,
    Curve("eps-greedy", 1, epsilon=0.05): 30.0,
    Curve("eps-greedy", 1, epsilon=0.01): 35.0,
}


def synthetic_rows(
    finals: dict[Curve, float], num_seeds: int = 8, spread: float = 0.5
) -> pd.DataFrame:
    """Rows with the given final regrets, plus normal noise over seeds."""
    rows = []
    for index, (curve, final) in enumerate(finals.items()):
        draws = np.random.default_rng(index).normal(0, spread, num_seeds)
        for seed in range(num_seeds):
            for done in (300, 600):
                rows.append(
                    {
                        "agent": curve.agent,
                        "epsilon": curve.epsilon,
                        "group_size": curve.group_size,
                        "num_actions": curve.num_actions,
                        "round": done,
                        "seed": seed,
                        "regret": final * done / 600 + draws[seed],
                        "seconds": 2.0,
                    }
                )
    return pd.DataFrame(rows)


SHARING_RATIO = "GFUCB with M = 1 has more regret than with M = 10"
BONUS_RATIO = "M = 10: multitask greedy has more regret than GFUCB"


def verdicts_by_claim(rows: pd.DataFrame) -> dict[str, tuple[bool, str]]:
    return {v.claim: (v.holds, v.measured) for v in FIG1.verdicts(rows)}


def test_an_unfinished_curve_counts_up_to_the_last_round_of_all_its_seeds():
    rows = synthetic_rows(REGRETS | {Curve("paper"): 50.0}, num_seeds=3, spread=1e-3)
    ahead = (rows["agent"] == "paper") & (rows["round"] == 600) & (rows["seed"] > 0)
    rows = rows[~ahead]  # one seed is finished, two are not
    claim = "M = 10: the paper's procedure (stable) has more regret than GFUCB"
    (found,) = [v for v in FIG1.verdicts(rows) if v.claim == claim]
    assert found.measured.startswith("25.0 / 5.0 = 5.00")
    assert found.margin == "3 seeds, T = 300"
    (line,) = [line for line in FIG1.table(rows).splitlines() if "stable" in line]
    assert "| 10 | 25 ± " in line and "| 300 | 3 |" in line


def test_a_clear_ordering_holds_and_ratios_are_ratios_of_means():
    found = verdicts_by_claim(synthetic_rows(REGRETS))
    for claim in (
        "regret of GFUCB with M = 10 is below GFUCB with M = 5",
        "regret of GFUCB with M = 5 is below GFUCB with M = 1",
        "regret of GFUCB with M = 1 is below independent ε-greedy (0.1)",
        "regret of GFUCB with M = 1 is below independent ε-greedy (0.05)",
    ):
        assert found[claim][0]
    holds, measured = found[SHARING_RATIO]
    assert holds and float(measured.split("= ")[1].split()[0]) == pytest.approx(2.0, abs=0.1)
    (oracle,) = [claim for claim in found if claim.endswith("UCB on the true representation")]
    assert found[oracle][0]


def test_an_ordering_within_the_noise_does_not_hold():
    close = REGRETS | {Curve("gfucb", 5): 10.1}
    found = verdicts_by_claim(synthetic_rows(close, spread=2.0))
    assert not found["regret of GFUCB with M = 10 is below GFUCB with M = 5"][0]
    worse = verdicts_by_claim(synthetic_rows(REGRETS | {Curve("gfucb", 10): 30.0}))
    assert not worse[SHARING_RATIO][0]


def test_a_ratio_holds_if_its_interval_is_above_one():
    assert verdicts_by_claim(synthetic_rows(REGRETS, spread=0.2))[BONUS_RATIO][0]
    noisy = synthetic_rows(REGRETS | {Curve("greedy"): 18.0}, spread=8.0)
    holds, measured = verdicts_by_claim(noisy)[BONUS_RATIO]
    assert float(measured.split("= ")[1].split()[0]) > 1  # on average
    assert not holds
    alone = synthetic_rows(REGRETS | {Curve("literal-sum"): 90.0}, num_seeds=1)
    assert verdicts_by_claim(alone) == {}  # one seed has no interval


def test_additional_seeds_count_only_for_the_curves_that_have_them():
    rows = synthetic_rows(REGRETS, 4, 1e-3)
    doubled = {curve: 2 * REGRETS[curve] for curve in (GFUCB_TEN, GREEDY_TEN)}
    more = synthetic_rows(doubled, 4, 1e-3)
    both = pd.concat([rows, more.assign(seed=more["seed"] + 4)])
    (found,) = [v for v in FIG1.verdicts(both) if v.claim == BONUS_RATIO]
    assert found.measured.startswith("18.0 / 15.0 = 1.20") and found.margin == "8 seeds, T = 600"
    others = [v for v in FIG1.verdicts(both) if v.claim != BONUS_RATIO]
    assert others == [v for v in FIG1.verdicts(rows) if v.claim != BONUS_RATIO]
    assert FIG1.table(both) == FIG1.table(rows)


def test_additional_seeds_run_only_if_no_seeds_are_requested():
    def seeds_of(curve, options):
        own = [p.name for p in jobs(options) if p.name.startswith(f"{curve.name}-seeds=")]
        return [name.split("seeds=")[1] for name in own]

    in_twenties = ["200-219", "220-239", "240-259"]
    assert seeds_of(GFUCB_TEN, Options()) == seeds_of(GREEDY_TEN, Options()) == in_twenties
    assert seeds_of(Curve("gfucb", 5), Options()) == ["200-219"]
    assert seeds_of(Curve("paper"), Options()) == [f"{s}-{s}" for s in range(200, 205)]
    in_fives = ["200-204", "205-209", "210-214", "215-219"]
    assert seeds_of(Curve("gfucb", 1), Options()) == in_fives  # ten networks for each seed
    assert seeds_of(Curve("gfucb", 100, num_tasks=100), Options()) == in_fives
    assert seeds_of(GFUCB_TEN, Options(seeds=(3, 4))) == ["3-4"]


def test_the_best_epsilon_has_the_least_regret():
    assert best_epsilon(synthetic_rows(REGRETS)) == 0.05


def test_a_run_that_stopped_early_is_compared_at_its_last_round():
    rows = synthetic_rows(REGRETS | {Curve("paper"): 24.0})
    short = rows[(rows["agent"] != "paper") | (rows["round"] == 300)]
    _, measured = verdicts_by_claim(short)[
        "M = 10: the paper's procedure (stable) has more regret than GFUCB"
    ]
    assert float(measured.split("= ")[1].split()[0]) == pytest.approx(12 / 5, rel=0.1)


def test_the_bootstrap_is_reproducible():
    rows = synthetic_rows(REGRETS)
    assert FIG1.verdicts(rows) == FIG1.verdicts(rows)


def test_runs_of_no_measurable_time_are_drawn():
    rows = synthetic_rows(REGRETS)
    rows.loc[rows["agent"] == "oracle-ucb", "seconds"] = 0.0
    drawn = FIG1.figure(rows)
    drawn.draw_without_rendering()  # matplotlib warns if it cannot lay out the figure
    positions = [line.get_xdata() for line in drawn.axes[2].get_lines()]
    assert len(positions) == 7 and all((np.asarray(x) > 0).all() for x in positions)
