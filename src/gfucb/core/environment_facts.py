"""Optional members of environments, which agents that are built by name use.

Of a `BanditEnvironment`:

* `value_range`: (low, high), which contain all mean rewards, or None if no bounds are known. An
  environment without this member has mean rewards in [0, 1].
* `representation_class`: the `RepresentationClass` that agents use. Without it, or if it is None,
  they use a network.
* `noise_scale`: the standard deviation of the reward noise, for the radii of Lemma 1.

Of an `EpisodicEnvironment`:

* `values_lie_in` or `value_range`: (low, high), which contain the expected sums of rewards.
* `reward_range`: (low, high), which contain the expected rewards of one stage.
* `observation_dim`: the length of observations, if inputs are (observation, one-hot action).
* `representation_class`: as above.
"""

from __future__ import annotations

from gfucb.core.errors import InvalidInputError
from gfucb.core.protocols import Environment, EpisodicEnvironment, RepresentationClass
from gfucb.core.validation.settings import validate_count, validate_number, validate_pair

DEFAULT_VALUE_RANGE = (0.0, 1.0)


def value_range_of(environment: Environment) -> tuple[float, float] | None:
    """Bounds of the mean rewards: [0, 1] if the environment states none, None if unknown."""
    stated = getattr(environment, "value_range", DEFAULT_VALUE_RANGE)
    return None if stated is None else validate_pair(stated, "value_range of the environment")


def episode_range_of(environment: EpisodicEnvironment) -> tuple[float, float] | None:
    """Bounds of the sum of rewards of an episode; None if the environment states none."""
    stated = getattr(environment, "values_lie_in", getattr(environment, "value_range", None))
    return None if stated is None else validate_pair(stated, "value_range of the environment")


def reward_range_of(environment: EpisodicEnvironment) -> tuple[float, float] | None:
    """Bounds of the rewards of a stage; None if the environment states none."""
    stated = getattr(environment, "reward_range", None)
    return None if stated is None else validate_pair(stated, "reward_range of the environment")


def observation_dim_of(environment: EpisodicEnvironment) -> int | None:
    """The length of observations; None if inputs are not (observation, one-hot action)."""
    stated = getattr(environment, "observation_dim", None)
    return None if stated is None else validate_count(stated, "observation_dim of the environment")


def representation_class_of(environment: Environment) -> RepresentationClass | None:
    """The class that the environment states; None if it states none."""
    stated = getattr(environment, "representation_class", None)
    if stated is None or isinstance(stated, RepresentationClass):
        return stated
    raise InvalidInputError(
        "representation_class of the environment must be a representation class, such as "
        f"FiniteClass(members), got {type(stated).__name__}"
    )


def noise_scale_of(environment: Environment) -> float | None:
    """The standard deviation of the reward noise; None if the environment does not state it."""
    stated = getattr(environment, "noise_scale", None)
    if stated is None:
        return None
    return validate_number(stated, "noise_scale of the environment", at_least=0.0)
