"""The agents of the benchmark. All know the range of the sums of rewards, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from gfucb.core.environment_facts import episode_range_of
from gfucb.core.protocols import EpisodicAgent, EpisodicEnvironment
from gfucb.episodic import (
    LSVIUCB,
    EpisodicEpsilonGreedy,
    EpisodicGFUCB,
    fitted_q,
    randomised_lsvi,
)
from gfucb.runs.policy_evaluator import with_true_features

from .features import on_random_features
from .joining import after_founders
from .problems import Problem

Make = Callable[[EpisodicEnvironment, float, int], EpisodicAgent]


@dataclass(frozen=True)
class Contender:
    """An agent, and what it sees.

    Attributes:
        label: for the table.
        make: the agent for an environment, a scale and a seed.
        sees: "inputs", "random features" or "true features".
        scales: of exploration, in units of the range; tuning chooses one. None: nothing to tune.
        share: of the training episodes of a problem, for agents with slow episodes.
        suits: whether the agent can be used in a problem, by its name.
    """

    label: str
    make: Make
    sees: str = "inputs"
    scales: tuple[float, ...] | None = None
    share: float = 1.0
    suits: Callable[[str], bool] = lambda problem: True

    def shown(self, problem: Problem, environment: EpisodicEnvironment) -> EpisodicEnvironment:
        """The environment as the agent sees it."""
        if self.sees == "random features":
            return on_random_features(environment, problem.length_scale)
        return environment if self.sees == "inputs" else with_true_features(environment)


def _range(environment: EpisodicEnvironment) -> tuple[float, float]:
    stated = episode_range_of(environment)
    assert stated is not None
    return stated


def _width(environment: EpisodicEnvironment) -> float:
    low, high = _range(environment)
    return high - low


def _gfucb(environment: EpisodicEnvironment, scale: float, seed: int) -> EpisodicAgent:
    return EpisodicGFUCB(
        environment.num_tasks, environment.horizon, value_range=_range(environment), seed=seed
    )


def _joining(environment: EpisodicEnvironment, scale: float, seed: int) -> EpisodicAgent:
    return after_founders(environment, seed)


def _lsvi_ucb(environment: EpisodicEnvironment, scale: float, seed: int) -> EpisodicAgent:
    # With this ridge the bonus of an input that was never tried is the whole range.
    return LSVIUCB(
        environment.num_tasks,
        environment.horizon,
        beta=scale * _width(environment),
        ridge=scale**2,
        value_range=_range(environment),
    )


def _randomised(environment: EpisodicEnvironment, scale: float, seed: int) -> EpisodicAgent:
    return randomised_lsvi(
        environment.num_tasks,
        environment.horizon,
        noise_scale=scale * _width(environment),
        ridge=scale**2,
        value_range=_range(environment),
        seed=seed,
    )


def _epsilon_greedy(environment: EpisodicEnvironment, scale: float, seed: int) -> EpisodicAgent:
    greedy = LSVIUCB(
        environment.num_tasks,
        environment.horizon,
        beta=0.0,
        ridge=0.01,
        value_range=_range(environment),
    )
    return EpisodicEpsilonGreedy(greedy, epsilon=scale, seed=seed)


def _fitted_q(environment: EpisodicEnvironment, scale: float, seed: int) -> EpisodicAgent:
    return fitted_q(
        environment.num_tasks,
        environment.horizon,
        epsilon=scale,
        value_range=_range(environment),
        seed=seed,
    )


def _is_lock_alone(problem: str) -> bool:
    return problem.startswith("lock-") and problem.endswith("-alone")


def _has_states(problem: str) -> bool:
    return problem != "mountain-car"


DEFAULT, JOINING = "gfucb", "joining"
CONTENDERS: Mapping[str, Contender] = {
    DEFAULT: Contender("EpisodicGFUCB, default", _gfucb),
    JOINING: Contender(
        "EpisodicGFUCB, default, after five other tasks", _joining, suits=_is_lock_alone
    ),
    "oracle": Contender(
        "LSVI-UCB, knows the state",
        _lsvi_ucb,
        "true features",
        (0.003, 0.02, 0.3),
        suits=_has_states,
    ),
    "lsvi-ucb": Contender(
        "LSVI-UCB, random features", _lsvi_ucb, "random features", (0.01, 0.1, 0.3)
    ),
    "randomised-lsvi": Contender(
        "randomised LSVI, random features", _randomised, "random features", (0.01, 0.1, 0.3)
    ),
    "epsilon-greedy": Contender(
        "epsilon-greedy LSVI, random features",
        _epsilon_greedy,
        "random features",
        (0.05, 0.1, 0.3),
    ),
    "fitted-q": Contender("fitted Q, network, epsilon-greedy", _fitted_q, "inputs", (0.1,), 0.3),
}
