"""Presets: named experiments with an environment, a number of rounds, agents and seeds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gfucb.runs.config import (
    AgentConfig,
    BanditAgentConfig,
    EnvironmentConfig,
    EpisodicAgentConfig,
)
from gfucb.runs.environments import (
    FiniteBanditConfig,
    ImageBanditConfig,
    LinearMDPConfig,
    LockConfig,
    RichLockConfig,
    SyntheticBanditConfig,
)
from gfucb.runs.exploration_problems import CombinationLockConfig
from gfucb.runs.registry import Registry


@dataclass(frozen=True)
class Preset:
    """A named experiment. `agent` has the settings that all its agents share."""

    description: str
    environment: EnvironmentConfig
    num_rounds: int
    agents: tuple[str, ...]
    seeds: tuple[int, ...]
    agent: AgentConfig


PRESETS: Registry[Preset] = Registry("preset")


def register_preset(name: str) -> Callable[[Callable[[], Preset]], Callable[[], Preset]]:
    """Register the preset that the decorated function returns; `--preset name` selects it."""

    def register(make: Callable[[], Preset]) -> Callable[[], Preset]:
        PRESETS.register(name, make(), make)
        return make

    return register


BASELINES = (
    "gfucb",
    "multitask-greedy",
    "multitask-eps-greedy",
    "independent-eps-greedy",
    "linucb",
    "oracle-ucb",
    "uniform",
)

# A comparison of a minute: only two agents train networks. Without a shared representation a
# linear model on random Fourier features has about the regret of a network for each task.
FAST_BASELINES = (
    "gfucb",
    "multitask-greedy",
    "fourier-shared",
    "fourier-task",
    "linucb",
    "oracle-ucb",
    "uniform",
)

# In synthetic environments an independent learner is LinUCB.
EXACT_BASELINES = tuple(name for name in BASELINES if name != "independent-eps-greedy")


@register_preset("demo")
def demo() -> Preset:
    """The first thing to run."""
    return Preset(
        "16 tasks on 8x8 digits: GFUCB against baselines, in about a minute and a half",
        ImageBanditConfig(num_tasks=16),
        num_rounds=100,
        agents=FAST_BASELINES,
        seeds=tuple(range(5)),
        agent=BanditAgentConfig(),
    )


@register_preset("digits")
def digits() -> Preset:
    """The problem of the regret benchmarks."""
    return Preset(
        "the problem of the benchmarks: 30 tasks, 400 rounds, 8x8 digits",
        ImageBanditConfig(),
        num_rounds=400,
        agents=BASELINES,
        seeds=tuple(range(20)),
        agent=BanditAgentConfig(),
    )


@register_preset("mnist")
def mnist() -> Preset:
    """The problem of the paper's experiments."""
    return Preset(
        "section 6.1 of the paper: 10 tasks, 600 rounds, permuted rewards, noise 0.01",
        ImageBanditConfig("mnist", num_tasks=10, reward_map="permutation", noise_scale=0.01),
        num_rounds=600,
        agents=BASELINES,
        seeds=tuple(range(10)),
        agent=BanditAgentConfig(),
    )


@register_preset("finite")
def finite() -> Preset:
    """A class for which no step is approximate."""
    return Preset(
        "eight known representations, one of them true: every step of Algorithm 1 is exact",
        FiniteBanditConfig(num_tasks=4, num_actions=5),
        num_rounds=200,
        agents=EXACT_BASELINES,
        seeds=tuple(range(10)),
        agent=BanditAgentConfig(),
    )


@register_preset("linear")
def linear() -> Preset:
    """A low-rank linear representation."""
    return Preset(
        "a linear representation of rank 2 in 6 dimensions, shared by 10 tasks",
        SyntheticBanditConfig(num_tasks=10, num_actions=5),
        num_rounds=200,
        agents=EXACT_BASELINES,
        seeds=tuple(range(10)),
        agent=BanditAgentConfig(),
    )


@register_preset("lock")
def lock() -> Preset:
    """Exploration over many stages."""
    return Preset(
        "a combination lock with 20 stages: Algorithm 2 as printed and corrected",
        LockConfig(num_tasks=1, num_actions=2, horizon=20),
        num_rounds=1000,
        agents=("gfucb-mdp", "gfucb-mdp-literal", "ucbvi", "randomised-lsvi", "uniform-mdp"),
        seeds=tuple(range(5)),
        agent=EpisodicAgentConfig(),
    )


@register_preset("rich-lock")
def rich_lock() -> Preset:
    """Exploration with a representation to learn."""
    return Preset(
        "five locks of 10 stages observed through one unknown emission",
        RichLockConfig(num_tasks=5, num_actions=4, horizon=10),
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
    )


@register_preset("combination-lock")
def combination_lock() -> Preset:
    """Exploration with fresh noise in every observation."""
    return Preset(
        "five locks of 12 stages and 10 actions, in which no observation is seen twice",
        CombinationLockConfig(),
        num_rounds=300,
        agents=("gfucb-cells", "oracle-lsvi-ucb", "uniform-mdp"),
        seeds=tuple(range(3)),
        agent=EpisodicAgentConfig(bonus_scale=0.02, ridge=0.0004),
    )


@register_preset("linear-mdp")
def linear_mdp() -> Preset:
    """A finite class of representations of linear MDPs."""
    return Preset(
        "ten linear MDPs on one of 64 representations",
        LinearMDPConfig(),
        num_rounds=500,
        agents=("gfucb-mdp", "oracle-lsvi-ucb", "independent-mdp", "fitted-q", "uniform-mdp"),
        seeds=tuple(range(5)),
        agent=EpisodicAgentConfig(bonus_scale=0.2),
    )
