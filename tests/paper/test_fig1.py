"""Figure 1: what its verdicts say of made-up rows."""

import numpy as np
import pandas as pd
import pytest

from gfucb.core.checkpoint import write_state
from gfucb.core.errors import RunDirectoryError
from gfucb.paper.driver import Options, Progress, make, reproduce
from gfucb.paper.fig1.analysis import FIG1
from gfucb.paper.fig1.sweep import GREEDY, TEN, Line, best_epsilon, jobs
from gfucb.paper.results_directory import ResultsDirectory

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
        draws = np.random.default_rng(index).normal(0, spread, num_seeds)
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
                        "regret": final * done / 600 + draws[seed],
                        "seconds": 2.0,
                    }
                )
    return pd.DataFrame(rows)


def verdicts(rows: pd.DataFrame) -> dict[str, tuple[bool, str]]:
    return {v.claim: (v.holds, v.measured) for v in FIG1.verdicts(rows)}


def test_a_line_under_way_counts_as_far_as_all_its_seeds_have_come():
    rows = made_up(LINES | {Line("paper"): 50.0}, num_seeds=3, spread=1e-3)
    ahead = (rows["agent"] == "paper") & (rows["round"] == 600) & (rows["seed"] > 0)
    rows = rows[~ahead]  # one seed is through, two are not
    claim = "the paper's procedure (stable) has more regret than our default at M = 10"
    (found,) = [v for v in FIG1.verdicts(rows) if v.claim == claim]
    assert found.measured.startswith("25.0 / 5.0 = 5.00")
    assert found.margin == "3 seeds, T = 300"
    (line,) = [line for line in FIG1.table(rows).splitlines() if "stable" in line]
    assert "| 10 | 25 ± " in line and "| 300 | 3 |" in line


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


OPTIMISM = "optimism pays: multitask greedy / GFUCB at M = 10 at least 1.11 (10% below)"


def test_a_gain_that_chance_explains_does_not_hold():
    assert verdicts(made_up(LINES, spread=0.5))[OPTIMISM][0]
    holds, measured = verdicts(made_up(LINES | {Line("greedy"): 18.0}, spread=8.0))[OPTIMISM]
    assert float(measured.split("= ")[1].split()[0]) > 1.11  # on average it gains enough
    assert not holds


def test_seeds_that_few_curves_have_count_for_these_only():
    rows, two = made_up(LINES, 4, 1e-3), {line: LINES[line] for line in (TEN, GREEDY)}
    more = made_up({line: 2 * regret for line, regret in two.items()}, 4, 1e-3)
    both = pd.concat([rows, more.assign(seed=more["seed"] + 4)])
    (found,) = [v for v in FIG1.verdicts(both) if v.claim == OPTIMISM]
    assert found.measured.startswith("18.0 / 15.0 = 1.20") and found.margin == "8 seeds, T = 600"
    others = [v for v in FIG1.verdicts(both) if v.claim != OPTIMISM]
    assert others == [v for v in FIG1.verdicts(rows) if v.claim != OPTIMISM]
    assert FIG1.table(both) == FIG1.table(rows)


def test_more_seeds_than_asked_for_are_played_only_where_none_are_named():
    def seeds_of(line, options):
        own = [p.name for p in jobs(options) if p.name.startswith(f"{line.name}-seeds=")]
        return [name.split("seeds=")[1] for name in own]

    in_twenties = ["200-219", "220-239", "240-259", "260-279", "280-299"]
    assert seeds_of(TEN, Options()) == seeds_of(GREEDY, Options()) == in_twenties
    assert seeds_of(Line("gfucb", 5), Options()) == ["200-219"]
    assert seeds_of(Line("paper"), Options()) == ["200-200", "201-201", "202-202"]
    assert seeds_of(TEN, Options(seeds=(3, 4))) == ["3-4"]


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


def the_papers_piece():
    quick = jobs(Options(quick=True))
    return next(p for p in quick if p.name == "paper-M=10-K=10-seeds=0-0")


def killed_midway(directory, monkeypatch):
    """Make the paper's job until it has kept its progress once."""
    write = Progress.write

    def write_and_die(progress, kept):
        write(progress, kept)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Progress, "write", write_and_die)
        with pytest.raises(KeyboardInterrupt):
            make(directory, the_papers_piece())


def test_the_papers_runs_go_on_where_they_were_killed(tmp_path, monkeypatch):
    job = the_papers_piece()
    whole, resumed = (ResultsDirectory.open(tmp_path / name, {}) for name in ("whole", "resumed"))
    make(whole, job)
    killed_midway(resumed, monkeypatch)
    kept = resumed.progress(job.name)
    assert not resumed.job(job.name).exists() and len(Progress.read(kept).rows) == 1
    make(resumed, job)
    assert not kept.exists()
    tables = [pd.read_csv(directory.job(job.name)) for directory in (whole, resumed)]
    pd.testing.assert_frame_equal(*(table.drop(columns="seconds") for table in tables))


def test_pieces_under_way_count_as_far_as_they_have_come(tmp_path, monkeypatch):
    quick, directory = Options(quick=True), ResultsDirectory(tmp_path)
    oracle = next(p for p in jobs(quick) if p.name.startswith("oracle"))
    with pytest.raises(RunDirectoryError, match="no finished job"):
        reproduce("fig1", FIG1, tmp_path, quick, only_what_is_there=True)
    make(directory, oracle)
    directory.sign([], {"jobs": [oracle.name]})
    killed_midway(directory, monkeypatch)
    reproduce("fig1", FIG1, tmp_path, quick, only_what_is_there=True)
    rows = pd.read_csv(tmp_path / "rows.csv")
    assert set(rows["agent"]) == {"oracle-ucb", "paper"}
    assert rows[rows["agent"] == "paper"]["round"].tolist() == [2]
    assert "1 of 14 jobs; 1 more are under way" in (tmp_path / "verdict.md").read_text()


def test_a_finished_piece_counts_once_even_if_its_progress_was_left_behind(tmp_path, monkeypatch):
    quick, job, directory = Options(quick=True), the_papers_piece(), ResultsDirectory(tmp_path)
    with pytest.raises(RunDirectoryError):
        reproduce("fig1", FIG1, tmp_path, quick, only_what_is_there=True)
    killed_midway(directory, monkeypatch)
    kept = directory.progress(job.name)
    left = kept.read_bytes()
    make(directory, job)
    directory.sign([], {"jobs": [job.name]})
    kept.write_bytes(left)
    reproduce("fig1", FIG1, tmp_path, quick, only_what_is_there=True)
    assert pd.read_csv(tmp_path / "rows.csv")["round"].tolist() == [2, 4]


def test_a_foreign_file_is_not_taken_for_progress(tmp_path):
    path = tmp_path / "other.safetensors"
    write_state(path, {}, {"round": "3"})
    with pytest.raises(RunDirectoryError, match="not the progress"):
        Progress.read(path)
