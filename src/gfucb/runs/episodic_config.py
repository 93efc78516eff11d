"""Environments, presets and runs of episodic MDPs: what the command line can set."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from gfucb.core.errors import InvalidInputError, lookup
from gfucb.environments import TabularMDPs, linear_mdps, rich_lock, tabular_lock
from gfucb.runs.episodic_agents import EpisodicAgentConfig


@dataclass(frozen=True)
class EpisodicEnvironmentConfig:
    """The problem: which environment, how many tasks, how long an episode is."""

    kind: Literal["lock", "rich-lock", "linear-mdp"] = "linear-mdp"
    """lock: combination locks whose states are seen. rich-lock: seen through a shared emission.
    linear-mdp: linear MDPs on one of several representations."""
    num_tasks: int = 10
    """M, the number of tasks."""
    num_actions: int = 10
    """A, the number of actions."""
    horizon: int = 5
    """H, the number of stages."""
    num_states: int = 30
    """Linear MDPs: number of states."""
    feature_dim: int = 5
    """Linear MDPs: length of the true representation."""
    input_dim: int = 20
    """Linear MDPs: length of an input."""
    num_representations: int = 64
    """Linear MDPs: how many representations the agent must tell apart."""
    mix: float = 0.0
    """Linear MDPs: the dial that takes them away from linear."""
    observation_dim: int = 16
    """Rich locks: length of an observation."""
    bank_size: int = 16
    """Rich locks: observations of each latent state."""
    noise_scale: float = 0.1
    """Linear MDPs: of the rewards; rich locks: of the observations."""


@dataclass(frozen=True)
class EpisodicRunConfig:
    """One run: one agent in one environment of episodic MDPs under one seed."""

    environment: EpisodicEnvironmentConfig = field(default_factory=EpisodicEnvironmentConfig)
    agent: EpisodicAgentConfig = field(default_factory=EpisodicAgentConfig)
    num_rounds: int = 500
    """T, the number of episodes."""
    seed: int = 0
    """Environment and agent derive all their randomness from it."""

    def __post_init__(self) -> None:
        if self.num_rounds < 1:
            raise InvalidInputError(f"num_rounds must be at least 1, got {self.num_rounds}")


def make_episodic_environment(config: EpisodicEnvironmentConfig, seed: int) -> TabularMDPs:
    """Build the environment of a config."""
    tasks, actions, horizon = config.num_tasks, config.num_actions, config.horizon
    makers: dict[str, Callable[[], TabularMDPs]] = {
        "lock": lambda: tabular_lock(
            horizon=horizon, num_tasks=tasks, num_actions=actions, seed=seed
        ),
        "rich-lock": lambda: rich_lock(
            horizon=horizon,
            num_tasks=tasks,
            num_actions=actions,
            observation_dim=config.observation_dim,
            bank_size=config.bank_size,
            noise_scale=config.noise_scale,
            seed=seed,
        ),
        "linear-mdp": lambda: linear_mdps(
            num_tasks=tasks,
            horizon=horizon,
            num_states=config.num_states,
            num_actions=actions,
            feature_dim=config.feature_dim,
            input_dim=config.input_dim,
            num_representations=config.num_representations,
            noise_scale=config.noise_scale,
            mix=config.mix,
            seed=seed,
        ),
    }
    return lookup(makers, config.kind, "environment")()


@dataclass(frozen=True)
class EpisodicPreset:
    """A named experiment on episodic MDPs: a environment, a length, agents, their settings, seeds."""

    description: str
    environment: EpisodicEnvironmentConfig
    num_rounds: int
    agents: tuple[str, ...]
    seeds: tuple[int, ...]
    agent: EpisodicAgentConfig = field(default_factory=EpisodicAgentConfig)


EPISODIC_PRESETS: Mapping[str, EpisodicPreset] = {
    "lock": EpisodicPreset(
        "a combination lock with 20 stages: Algorithm 2 as printed against its repair",
        EpisodicEnvironmentConfig("lock", num_tasks=1, num_actions=2, horizon=20),
        num_rounds=1000,
        agents=("gfucb-mdp", "gfucb-mdp-literal", "ucbvi", "randomised-lsvi", "uniform-mdp"),
        seeds=tuple(range(5)),
    ),
    "rich-lock": EpisodicPreset(
        "five locks of 10 stages seen through one unknown emission",
        EpisodicEnvironmentConfig("rich-lock", num_tasks=5, num_actions=4, horizon=10),
        num_rounds=400,
        agents=("gfucb-mdp", "oracle-lsvi-ucb", "lsvi-ucb"),
        seeds=tuple(range(3)),
        agent=EpisodicAgentConfig(
            representation="network",
            share_stages=True,
            next_targets=3,
            reward_weight=3.0,
            warm_start=False,
            fit_steps=200,
            fit_batch=1600,
            fit_window=32,
        ),
    ),
    "linear-mdp": EpisodicPreset(
        "ten linear MDPs on one of 64 representations",
        EpisodicEnvironmentConfig(),
        num_rounds=500,
        agents=("gfucb-mdp", "oracle-lsvi-ucb", "independent-mdp", "fitted-q", "uniform-mdp"),
        seeds=tuple(range(5)),
        agent=EpisodicAgentConfig(bonus_scale=0.2),
    ),
}
