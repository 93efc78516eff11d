"""Linear UCB on fixed features, matrix factorisation, and one agent for all tasks pooled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gfucb.core.environment_facts import value_range_of
from gfucb.core.errors import InvalidInputError
from gfucb.core.protocols import BanditAgent, BanditEnvironment
from gfucb.runs.agents.options import learning_options, squared_radius
from gfucb.runs.config import AgentConfig, BanditAgentConfig
from gfucb.runs.registry import register_agent

if TYPE_CHECKING:
    from gfucb.bandits.linear_baselines import Sharing
    from gfucb.bandits.linear_features import FeatureMap


@dataclass(frozen=True)
class LinearAgentConfig(AgentConfig):
    """Settings of linear UCB agents. An agent ignores the settings that it does not have."""

    name: str = "linear-task"
    """Which agent; an unknown name lists the known ones."""
    alpha: float = 0.1
    """Multiplier of the standard deviation in the bonus, in units of the value range."""
    ridge: float = 1.0
    """Penalty on the weights; of hierarchical agents, on the shared weights."""
    own_ridge: float = 1.0
    """Hierarchical agents: penalty on the difference of a task's weights from the shared ones."""
    center: bool = True
    """Whether rewards are centred by their running mean."""
    num_features: int = 150
    """Fourier agents: number of random features."""
    length: float = 0.3
    """Fourier agents: length scale, relative to the root of the number of inputs."""


@dataclass(frozen=True)
class FactorisationConfig(AgentConfig):
    """Settings of matrix factorisation."""

    name: str = "als"
    """Which agent; an unknown name lists the known ones."""
    alpha: float = 0.0
    """Multiplier of the bonus, in units of the value range."""
    rank: int = 5
    """Length of the factors of tasks and items."""
    ridge: float = 1.0
    """Penalty on factors."""
    bias_ridge: float = 5.0
    """Penalty on the biases of tasks and items."""


def range_length(environment: BanditEnvironment) -> float:
    """The length of the range of mean rewards that an environment states; 1 if it states none.

    An environment that gives agents no range may state it for baselines, as `true_range`.
    """
    stated = value_range_of(environment)
    low, high = stated if stated else getattr(environment, "true_range", (0.0, 1.0))
    return float(high - low)


def _register_linear(name: str, label: str, sharing: Sharing, *, fourier: bool, arms: bool) -> None:
    features = "random Fourier features" if fourier else "the inputs"
    weights = {
        "task": "own weights for each task",
        "pooled": "one weight vector for all tasks",
        "hierarchical": "own weights around shared ones",
    }[sharing]
    description = f"Linear UCB on {features}, {weights}{', for each arm' if arms else ''}."

    @register_agent(name, label=label, description=description, config=LinearAgentConfig)
    def make(config: LinearAgentConfig, environment: BanditEnvironment, seed: int) -> BanditAgent:
        from gfucb.bandits.linear_baselines import LinearUCB

        return LinearUCB(
            environment.num_tasks,
            alpha=config.alpha * range_length(environment),
            ridge=config.ridge,
            own_ridge=config.own_ridge,
            sharing=sharing,
            center=config.center,
            num_arms=_num_arms(environment) if arms else 0,
            features=_features(config, environment, seed, fourier),
        )


def _num_arms(environment: BanditEnvironment) -> int:
    found = getattr(environment, "discrete_actions", None)
    if not found:
        raise InvalidInputError(
            f"disjoint arms need `discrete_actions`, the number of arms whose one-hot vector ends "
            f"the inputs; {type(environment).__name__} does not state it"
        )
    return int(found)


def _features(
    config: LinearAgentConfig, environment: BanditEnvironment, seed: int, fourier: bool
) -> FeatureMap:
    from gfucb.bandits.linear_features import FourierInputs, InputFeatures, OneHotItems

    items = getattr(environment, "num_items", None)
    if items is not None:
        return OneHotItems(int(items))
    if fourier:
        return FourierInputs(config.num_features, config.length, seed)
    return InputFeatures()


SHARING: tuple[tuple[Sharing, str, str], ...] = (
    ("task", "task", "per task"),
    ("pooled", "pooled", "pooled"),
    ("hierarchical", "shared", "own around shared"),
)
for _sharing, _name, _title in SHARING:
    for _kind, _label, _fourier in (("linear", "linear", False), ("fourier", "Fourier", True)):
        _register_linear(
            f"{_kind}-{_name}", f"{_label} UCB, {_title}", _sharing, fourier=_fourier, arms=False
        )
        _register_linear(
            f"{_kind}-arms-{_name}",
            f"{_label} UCB, disjoint arms, {_title}",
            _sharing,
            fourier=_fourier,
            arms=True,
        )


@register_agent(
    "als",
    label="alternating least squares",
    description="Matrix factorisation of tasks (users) and items; inputs are item numbers.",
    config=FactorisationConfig,
)
def als(config: FactorisationConfig, environment: BanditEnvironment, seed: int) -> BanditAgent:
    """Alternating least squares."""
    from gfucb.bandits.matrix_factorisation import MatrixFactorisation

    items = getattr(environment, "num_items", None)
    if items is None:
        raise InvalidInputError(
            "als needs `num_items`, the number of items whose numbers are the inputs; "
            f"{type(environment).__name__} does not state it"
        )
    return MatrixFactorisation(
        environment.num_tasks,
        int(items),
        rank=config.rank,
        ridge=config.ridge,
        bias_ridge=config.bias_ridge,
        alpha=config.alpha * range_length(environment),
        seed=seed,
    )


@register_agent(
    "gfucb-pooled",
    label="GFUCB, tasks pooled",
    description="GFUCB with one head for all tasks.",
    relative_cost=20,
)
def gfucb_pooled(
    config: BanditAgentConfig, environment: BanditEnvironment, seed: int
) -> BanditAgent:
    """One agent for all tasks."""
    from gfucb.bandits import GFUCB
    from gfucb.bandits.pooled_tasks import PooledTasks

    options = learning_options(config, environment, seed)
    radius = squared_radius(config, environment)
    return PooledTasks(environment.num_tasks, GFUCB(1, squared_radius=radius, **options))
