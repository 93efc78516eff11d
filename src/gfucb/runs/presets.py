"""Named experiments: a environment, a length, the agents to compare and the seeds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gfucb.core.errors import lookup
from gfucb.runs.config import EnvironmentConfig


@dataclass(frozen=True)
class Preset:
    """A named experiment: a environment, a length, the agents to compare and the seeds."""

    description: str
    environment: EnvironmentConfig
    num_rounds: int
    agents: tuple[str, ...]
    seeds: tuple[int, ...]


BASELINES = (
    "gfucb",
    "multitask-greedy",
    "multitask-eps-greedy",
    "independent-eps-greedy",
    "linucb",
    "oracle-ucb",
    "uniform",
)

# In synthetic environments a learner for each task alone is LinUCB.
EXACT_BASELINES = tuple(name for name in BASELINES if name != "independent-eps-greedy")

PRESETS: Mapping[str, Preset] = {
    "demo": Preset(
        "16 tasks on 8x8 digits: does sharing pay, and does optimism? Under two minutes.",
        EnvironmentConfig(num_tasks=16),
        num_rounds=100,
        agents=BASELINES,
        seeds=(0, 1, 2, 3, 4),
    ),
    "digits": Preset(
        "the common problem of the benchmarks: 30 tasks, 400 rounds, 8x8 digits",
        EnvironmentConfig(),
        num_rounds=400,
        agents=BASELINES,
        seeds=tuple(range(20)),
    ),
    "mnist": Preset(
        "section 6.1 of the paper: 10 tasks, 600 rounds, permuted rewards, noise 0.01",
        EnvironmentConfig(kind="mnist", num_tasks=10, reward_map="permutation", noise_scale=0.01),
        num_rounds=600,
        agents=BASELINES,
        seeds=tuple(range(10)),
    ),
    "finite": Preset(
        "eight known representations, one of them true: every step of Algorithm 1 is exact",
        EnvironmentConfig(kind="finite", num_tasks=4, num_actions=5),
        num_rounds=200,
        agents=EXACT_BASELINES,
        seeds=tuple(range(10)),
    ),
    "linear": Preset(
        "a linear representation of rank 2 in 6 dimensions, shared by 10 tasks",
        EnvironmentConfig(kind="linear", num_tasks=10, num_actions=5),
        num_rounds=200,
        agents=EXACT_BASELINES,
        seeds=tuple(range(10)),
    ),
}


def preset(name: str) -> Preset:
    """The preset of that name, or an error that lists them all."""
    return lookup(PRESETS, name, "preset")
