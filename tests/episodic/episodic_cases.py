"""Small agents and environments shared by the tests of episodic agents."""

import torch

import gfucb
from gfucb import ConstantRadius, EpisodicGFUCB, FiniteClass
from gfucb.core.random import global_randomness_from, random_stream
from gfucb.environments import linear_mdps
from gfucb.models import IdentityRepresentation
from gfucb.runs.loop import play, play_episode

ONE_HOT = FiniteClass([IdentityRepresentation()])
BACKUPS = ["pointwise", "literal", "joint", "randomised"]


def small_network(input_dim=6, feature_dim=3):
    with global_randomness_from(random_stream(0, "network")):
        return torch.nn.Sequential(
            torch.nn.Linear(input_dim, 8), torch.nn.Tanh(), torch.nn.Linear(8, feature_dim)
        )


def trained(backup="pointwise", episodes=15, environment=None, **options):
    environment = environment or linear_mdps(
        num_tasks=2, horizon=3, num_states=5, num_actions=3, seed=4
    )
    known = options.pop("representation", None) or environment.representation_class
    settings = {"seed": 1, "squared_radius": ConstantRadius(0.2)} | options
    agent = EpisodicGFUCB(
        environment.num_tasks, environment.horizon, known, backup=backup, **settings
    )
    for index in range(1, episodes + 1):
        play_episode(agent, environment.episode(index), environment.horizon, environment.num_tasks)
    return agent, environment


def check_continuation(make, environment, tmp_path, episodes=8):
    full, first, continued = make(), make(), make()
    rows = list(play(full, environment, num_rounds=2 * episodes))
    list(play(first, environment, num_rounds=episodes))
    gfucb.save(first, tmp_path / "agent.safetensors")
    gfucb.restore(continued, tmp_path / "agent.safetensors")
    rest = play(
        continued,
        environment,
        num_rounds=2 * episodes,
        rounds_done=episodes,
        cumulative_regret=rows[episodes - 1]["cumulative_regret"],
    )
    assert list(rest) == rows[episodes:]


def states_equal(one, other) -> bool:
    """Whether two saved states have the same names and numbers."""
    return one.keys() == other.keys() and all(torch.equal(one[n], other[n]) for n in one)
