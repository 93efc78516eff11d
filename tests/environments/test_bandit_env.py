"""Bandit environments as Gymnasium environments, and Gymnasium environments on the command line."""

from pathlib import Path

import gymnasium
import numpy as np
import pandas as pd
import pytest
import torch
from gymnasium.utils.env_checker import check_env

from gfucb.cli.main import main
from gfucb.core.errors import InvalidInputError
from gfucb.environments import WheelBandit, linear_bandit
from gfucb.environments.gymnasium import BANDITS, BanditEnv, register_environments
from gfucb.runs import GymnasiumConfig, make_environment

PLUGIN = Path(__file__).parents[1] / "plugins" / "own_gymnasium.py"


@pytest.mark.parametrize("name", BANDITS)
def test_registered_bandits_pass_the_checks_of_gymnasium(name, recwarn):
    register_environments()
    made = gymnasium.make(name)
    check_env(made.unwrapped, skip_render_check=True)
    shown, info = made.reset(seed=1)
    assert info["round"] == 1 and made.observation_space.contains(shown)


def test_rounds_are_those_of_the_environment():
    def make(seed):
        return linear_bandit(num_tasks=3, num_actions=4, seed=seed)

    env = BanditEnv(make, task=1)
    for index, seed in enumerate((7, None), start=1):
        shown, info = env.reset(seed=seed)
        round_ = make(7).round(index)
        assert np.array_equal(shown, round_.candidates[1]) and info == {"round": index}
        _, reward, terminated, truncated, info = env.step(2)
        actions = torch.tensor([0, 2, 0])
        assert reward == float(round_.rewards(actions)[1])
        assert info["regret"] == float(round_.regrets(actions)[1])
        assert terminated and not truncated
    with pytest.raises(InvalidInputError, match="only step; reset"):
        env.step(2)


def test_wrong_tasks_and_actions_are_refused():
    with pytest.raises(InvalidInputError, match="0 to 0, got task 1"):
        BanditEnv(lambda seed: WheelBandit([0.5], seed=seed), task=1)
    env = BanditEnv(lambda seed: WheelBandit([0.5], seed=seed))
    env.reset()
    with pytest.raises(InvalidInputError, match="0 to 4, got 5"):
        env.step(5)


@pytest.mark.usefixtures("restored_registries")
def test_the_command_compares_agents_in_an_environment_of_ones_own(tmp_path, capsys):
    words = ["--plugin", PLUGIN, "--environment.name", "gymnasium", "--environment.env"]
    own = ["Corridor-v0", "--environment.settings", '[{"reward": 1.0}, {"reward": 0.5}]']
    size = ["--environment.horizon", "4", "--num-rounds", "25", "--seeds", "0", "--processes", "1"]
    agents = ["--agents", "lsvi-ucb", "uniform-mdp"]
    given = ["compare", "--out", tmp_path / "runs", *words, *own, *size, *agents]
    main([str(word) for word in given])
    table = pd.read_csv(tmp_path / "runs" / "summary.csv").set_index("agent")
    assert table.loc["lsvi-ucb", "reward"] > 0.45 > 0.4 > table.loc["uniform-mdp", "reward"]
    assert (tmp_path / "runs" / "reward.png").is_file()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"env": "NoSuch-v0"}, "cannot make 'NoSuch-v0'.*--plugin"),
        ({"settings": "{"}, "must be JSON"),
        ({"settings": "[{}]"}, "list of one object for each of the 2 tasks"),
        ({"settings": '{"wings": 2}'}, "cannot make 'FrozenLake-v1'.*wings"),
    ],
)
def test_wrong_settings_are_refused(settings, message):
    with pytest.raises(InvalidInputError, match=message):
        make_environment(GymnasiumConfig(**settings), 0)


def test_tasks_of_the_command_have_objects_of_their_own():
    environment = make_environment(
        GymnasiumConfig(num_tasks=3, settings='{"is_slippery": false}'), 4
    )
    assert environment.num_tasks == 3 and environment.horizon == 20
    assert len({id(own.unwrapped) for own in environment.environments}) == 3
