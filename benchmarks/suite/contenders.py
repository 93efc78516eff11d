"""The default agent and its alternatives, with the grids that are searched on tuning seeds."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import gfucb
from gfucb.bandits.pooled_tasks import PooledTasks
from gfucb.core.protocols import BanditAgent
from gfucb.runs.agents.linear_agents import range_length
from gfucb.runs.agents.simple_baselines import ORACLE_RIDGE
from gfucb.runs.build_run import make_agent
from gfucb.runs.registry import AGENTS

DEFAULT = "gfucb"
Settings = Mapping[str, Any]
Factory = Callable[[Any, int, Settings], BanditAgent]


@dataclass(frozen=True)
class Contender:
    """An agent of the suite.

    Attributes:
        name: in commands, directories and tables.
        make: from (environment, seed, settings) to the agent.
        grid: the settings among which tuning seeds choose; one if there is nothing to tune.
        uses_network: whether it learns a network: such runs are slow, and change with the default.
        is_alternative: whether the default is compared with it. Oracles and uniform are not.
        uses_true_features: whether it receives the true features.
    """

    name: str
    make: Factory
    grid: Sequence[Settings] = ({},)
    uses_network: bool = False
    is_alternative: bool = True
    uses_true_features: bool = False


def stated_range(environment: Any) -> dict[str, Any]:
    """The range that an environment states, as an argument of agents; empty if none."""
    found = getattr(environment, "value_range", None)
    return {} if found is None else {"value_range": found}


def _default(environment: Any, seed: int, settings: Settings) -> BanditAgent:
    return gfucb.GFUCB(environment.num_tasks, seed=seed, **stated_range(environment))


def _pooled(environment: Any, seed: int, settings: Settings) -> BanditAgent:
    agent = gfucb.GFUCB(1, seed=seed, **stated_range(environment))
    return PooledTasks(environment.num_tasks, agent)


def _greedy(environment: Any, seed: int, settings: Settings) -> BanditAgent:
    return gfucb.multitask_greedy(environment.num_tasks, seed=seed, **stated_range(environment))


def _oracle(environment: Any, seed: int, settings: Settings) -> BanditAgent:
    alpha = settings["alpha"] * range_length(environment)
    return gfucb.linucb(environment.num_tasks, alpha=alpha, ridge=ORACLE_RIDGE)


@dataclass(frozen=True)
class Registered:
    """The factory of a registered agent."""

    name: str

    def __call__(self, environment: Any, seed: int, settings: Settings) -> BanditAgent:
        """Build it with these settings."""
        config = AGENTS[self.name].config(name=self.name, **settings)
        return cast(BanditAgent, make_agent(config, environment, seed))


def grid(**values: Sequence[Any]) -> list[dict[str, Any]]:
    """All combinations of values by name."""
    return [
        dict(zip(values, chosen, strict=True)) for chosen in itertools.product(*values.values())
    ]


ALPHAS = (0.0, 0.03, 0.1, 0.3, 0.7)
LINEAR = [
    *grid(alpha=ALPHAS, ridge=(0.1, 1.0)),
    *grid(alpha=(0.03, 0.1, 0.3, 0.7, 1.0), center=(False,)),
]
FOURIER = grid(alpha=(0.03, 0.1, 0.3), length=(0.15, 0.4), ridge=(0.1, 1.0))
SHARED = grid(alpha=(0.0, 0.03, 0.1, 0.3), ridge=(0.1,), own_ridge=(1.0, 10.0))
SHARED_FOURIER = grid(
    alpha=(0.0, 0.03, 0.1), length=(0.15, 0.4), ridge=(0.1,), own_ridge=(1.0, 10.0)
)
FACTORS = grid(alpha=(0.0, 0.05), rank=(5, 10), ridge=(0.5, 1.0, 2.0), bias_ridge=(1.0, 5.0))


def _linear(name: str, settings: Sequence[Settings]) -> Contender:
    return Contender(name, Registered(name), settings)


def _known() -> list[Contender]:
    arms = ("", "arms-")
    return [
        Contender(DEFAULT, _default, uses_network=True, is_alternative=False),
        Contender("gfucb-pooled", _pooled, uses_network=True),
        Contender("multitask-greedy", _greedy, uses_network=True),
        *(_linear(f"linear-{a}{s}", LINEAR) for a in arms for s in ("task", "pooled")),
        *(_linear(f"linear-{a}shared", SHARED) for a in arms),
        *(_linear(f"fourier-{a}{s}", FOURIER) for a in arms for s in ("task", "pooled")),
        *(_linear(f"fourier-{a}shared", SHARED_FOURIER) for a in arms),
        _linear("als", FACTORS),
        Contender("uniform", Registered("uniform"), is_alternative=False),
        Contender(
            "oracle-ucb",
            _oracle,
            grid(alpha=(0.03, 0.1, 0.3, 1.0)),
            is_alternative=False,
            uses_true_features=True,
        ),
    ]


CONTENDERS = {contender.name: contender for contender in _known()}
