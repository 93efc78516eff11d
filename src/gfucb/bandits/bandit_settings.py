"""Defaults, checks and descriptions of the settings of GFUCB."""

from __future__ import annotations

from gfucb.bandits.candidate_learning import describe_candidate_learning
from gfucb.bandits.learner import Learner
from gfucb.core.protocols import ActionSelector, Radius, SquaredRadius
from gfucb.core.setting_descriptions import (
    INITIAL_WEIGHTS,
    describe_initial_weights,
    describe_setting,
)
from gfucb.core.validation.settings import validate_component, validate_ridge
from gfucb.estimation.calibration import CalibratedRadius, RelativeRadius
from gfucb.estimation.reward_scaling import AUTO, ValueRange
from gfucb.models import HeadPenalty

# The default radius before calibration: this share of the value range, for each task.
INITIAL_RADIUS = 0.2
# The value range that defaults assume if none is given.
UNKNOWN_RANGE = (-1.0, 1.0)


def default_radius(value_range: ValueRange) -> CalibratedRadius:
    """Starts at a share of the value range for each task, then follows the prediction errors."""
    if value_range == AUTO:
        return RelativeRadius(initial_radius=INITIAL_RADIUS)
    low, high = value_range or UNKNOWN_RANGE
    return CalibratedRadius(initial_radius=INITIAL_RADIUS * (high - low))


def validate_radius(
    radius: Radius | SquaredRadius | None, value_range: ValueRange
) -> Radius | SquaredRadius:
    """The radius, by default that of the range; refuse what is no `Radius` or function of t."""
    if radius is None:
        return default_radius(value_range)
    if isinstance(radius, Radius) and not isinstance(radius, type):
        return radius
    example = f"{radius:g}" if isinstance(radius, int | float) else "1.0"
    expected = f"a function of the round such as ConstantRadius({example})"
    return validate_component(radius, "squared_radius", expected)


def validate_penalty(ridge: float, head_norm_bound: float | None) -> HeadPenalty:
    """The penalty on heads with a positive ridge and a positive bound, or none."""
    return HeadPenalty(validate_ridge(ridge), head_norm_bound)


def describe_agent(
    learner: Learner, squared_radius: Radius | SquaredRadius, action_selector: ActionSelector
) -> dict[str, str]:
    """Everything an agent must be built with to continue from the state of one like this."""
    is_located = learner.scaling.is_located
    # Stated only if they are used, so that files from before these settings can be read.
    keeping = {
        name: describe_setting(value)
        for name, value in vars(learner.keeping).items()
        if value is not None
    }
    return {
        "representation": describe_setting(learner.representation_class),
        "fit": describe_setting(learner.fit),
        # Before the radius, whose default depends on it: it is what a user has stated.
        "value_range": str(learner.scaling.value_range),
        "squared_radius": describe_setting(squared_radius),
        "action_selector": describe_setting(action_selector),
        "ridge": str(learner.penalty.ridge),
        "head_norm_bound": str(learner.penalty.norm_bound),
        "offset": str(learner.scaling.initial().location if is_located else None),
        "refit_growth": str(learner.refit_growth),
        **keeping,
        "self_supervision": describe_candidate_learning(learner.candidates),
        "seed": str(learner.seed),
        INITIAL_WEIGHTS: describe_initial_weights(learner.representation_class),
    }
