"""Environments without optimal values: runs are compared by their mean reward."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest

import gfucb
from gfucb.cli.main import main
from gfucb.environments import tabular_lock
from gfucb.episodic import UCBVI
from gfucb.runs import (
    AgentConfig,
    EnvironmentConfig,
    register_agent,
    register_environment,
    summarise,
)
from gfucb.runs.plots import comparison_curves, paired_results
from gfucb.runs.report import report_page
from gfucb.runs.summary import summarise_rows

NUM_ROUNDS, SEEDS = 20, (0, 1, 2)
pytestmark = pytest.mark.usefixtures("restored_registries")


class OwnEnvironment:
    """Combination locks that do not tell their optimal values, as a simulator would not."""

    def __init__(self, seed: int) -> None:
        self._lock = tabular_lock(horizon=2, num_tasks=2, num_actions=2, seed=seed)
        self.num_tasks, self.num_actions, self.horizon = 2, 2, 2
        self.episode = self._lock.episode

    def describe(self):
        return {}


def explorer(environment, seed):
    return UCBVI(environment.num_tasks, environment.horizon, bonus=0.3)


def shy(environment, seed):
    return gfucb.episodic.EpisodicEpsilonGreedy(explorer(environment, seed), epsilon=1.0, seed=seed)


AGENTS = {"random": shy, "explorer": explorer}


@dataclass(frozen=True)
class OwnConfig(EnvironmentConfig):
    name: str = "own-lock"
    num_tasks: int = 2


def register_components() -> None:
    register_environment("own-lock", kind="episodic", config=OwnConfig)(
        lambda config, seed: OwnEnvironment(seed)
    )
    for name, make in AGENTS.items():
        register_agent(name, kind="episodic", config=AgentConfig)(
            lambda config, environment, seed, make=make: make(environment, seed)
        )


@pytest.fixture
def result():
    return gfucb.compare(OwnEnvironment, AGENTS, seeds=SEEDS, num_rounds=NUM_ROUNDS)


def test_a_comparison_keeps_its_rows_and_ranks_agents_by_mean_reward(result):
    assert len(result.rows) == 2 * len(SEEDS) * NUM_ROUNDS
    assert list(result.table["agent"]) == ["explorer", "random"]
    by_seed = result.rows.groupby(["agent", "seed"])["reward"].mean().unstack("seed")
    table = result.table.set_index("agent")
    for agent in AGENTS:
        values = by_seed.loc[agent].to_numpy()
        assert table.loc[agent, "reward"] == pytest.approx(values.mean())
        expected = 4.302652729911275 * values.std(ddof=1) / np.sqrt(3)  # t quantile, 2 degrees
        assert table.loc[agent, "reward_half_width"] == pytest.approx(expected)
    assert not [name for name in table.columns if "regret" in name]
    assert repr(result).startswith("Mean reward per task and round after 20 rounds")


def test_paired_differences_of_rewards_are_those_of_the_seeds(result):
    seconds = pd.Series({"explorer": 1.0, "random": 2.0})
    table = summarise_rows(result.rows, seconds, "random").set_index("agent")
    by_seed = result.rows.groupby(["agent", "seed"])["reward"].mean().unstack("seed")
    difference = by_seed.loc["explorer"] - by_seed.loc["random"]
    assert table.loc["explorer", "versus_reference"] == pytest.approx(difference.mean())
    assert table.loc["random", "versus_reference"] == 0


def test_the_figure_has_means_of_rewards(result, tmp_path):
    axes = result.figure().axes[0]
    assert axes.get_ylabel() == "reward per task\n(mean of 2 rounds)" and len(axes.lines) == 2
    own = result.rows[result.rows["agent"] == "explorer"]
    smooth = own.pivot(index="round", columns="seed", values="reward").rolling(2).mean().dropna()
    np.testing.assert_allclose(axes.lines[1].get_ydata(), smooth.mean(axis=1))
    result.save(tmp_path)
    assert (tmp_path / "reward.png").stat().st_size > 1000
    assert not (tmp_path / "regret.png").exists()
    assert paired_results(result.rows).axes[0].get_xlabel() == "mean reward per task and round"


def test_the_band_of_negative_rewards_lies_around_the_curve():
    spread = np.array([-3.0, -1.0])
    rows = pd.DataFrame(
        [
            {"agent": "a", "seed": seed, "round": index, "reward": spread[seed]}
            for seed in (0, 1)
            for index in (1, 2, 3)
        ]
    )
    (band,) = comparison_curves(rows).axes[0].collections
    heights = band.get_paths()[0].vertices[:, 1]
    assert heights.min() < -3 and heights.max() > -1


def test_commands_print_and_draw_the_mean_reward(tmp_path, capsys):
    register_components()
    words = ["--environment.name", "own-lock", "--num-rounds", "6"]
    main(["run", *words, "--agent.name", "explorer", "--out", str(tmp_path / "one")])
    printed = capsys.readouterr().out
    rows = pd.read_csv(tmp_path / "one" / "rows.csv")
    assert f"mean reward per task and round {rows['reward'].mean():.3f} after 6" in printed
    assert "nan" not in printed and "regret" not in printed
    out = tmp_path / "runs"
    agents = ["--agents", "explorer", "random", "--seeds", "0", "1", "--processes", "1"]
    main(["compare", *words, *agents, "--out", str(out)])
    printed = capsys.readouterr().out
    assert "explorer, seed 1: mean reward" in printed and "nan" not in printed
    assert "Mean reward per task and round after 6 rounds" in " ".join(printed.split())
    assert (out / "reward.svg").exists() and not (out / "regret.png").exists()
    page = report_page(out)
    assert page.count("<svg") == 4 and "Mean reward: of a task and round" in page
    shown = summarise(out).set_index("agent").loc["explorer"]
    assert f"{shown['reward']:.2f} ± {shown['reward_half_width']:.2f}" in page
