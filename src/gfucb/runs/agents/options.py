"""Arguments that several bandit agents share: representation class, fit, radius."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gfucb.core.environment_facts import noise_scale_of, representation_class_of, value_range_of
from gfucb.core.errors import InvalidInputError, lookup
from gfucb.core.protocols import ActionSelector, BanditEnvironment, Radius, SquaredRadius
from gfucb.runs.config import BanditAgentConfig
from gfucb.runs.registry import ACTION_SELECTORS, FITS

if TYPE_CHECKING:
    from gfucb.theory.lemma_radii import CoveredClass

# Scale of the cover of the linear class in the radii of Lemma 1: small enough for its terms to
# vanish.
COVER_SCALE = 1e-4
# With these settings the agent chooses fit and radius, which depend on the inputs.
DEFAULTS_OF_FIT = BanditAgentConfig().variable_projection_arguments()
DEFAULT_RADIUS = (
    BanditAgentConfig().radius,
    BanditAgentConfig().coverage,
    BanditAgentConfig().radius_scale,
)


def learning_options(
    config: BanditAgentConfig, environment: BanditEnvironment, seed: int
) -> dict[str, Any]:
    """Arguments of all agents that learn a representation: its class, the fit, the schedule."""
    known = representation_class_of(environment)
    options: dict[str, Any] = {
        "representation": known,
        "value_range": value_range_of(environment),
        "seed": seed,
        "ridge": config.ridge,
        "refit_growth": config.refit_growth,
        "self_supervision": None if config.self_supervision == "none" else "auto",
    }
    fit = config.fit
    has_fit_settings = config.variable_projection_arguments() != DEFAULTS_OF_FIT
    if fit == "default" and (known is None or known.structure == "neural") and has_fit_settings:
        fit = "variable-projection"
    if fit != "default":
        options["fit"] = FITS[fit].factory(config)
    return options


def action_selector(config: BanditAgentConfig) -> ActionSelector | None:
    """The action selector that the settings name; None for the agent's default."""
    if config.action_selector == "default":
        return None
    return ACTION_SELECTORS[config.action_selector].factory(config)


def squared_radius(
    config: BanditAgentConfig, environment: BanditEnvironment
) -> SquaredRadius | Radius | None:
    """The radius that the settings name; None for the agent's default."""
    from gfucb.bandits.bandit_settings import UNKNOWN_RANGE, default_radius
    from gfucb.estimation import LogRadius, ScaledRadius

    if (config.radius, config.coverage, config.radius_scale) == DEFAULT_RADIUS:
        return None
    if config.radius in ("default", "constant"):
        value_range = value_range_of(environment) or UNKNOWN_RANGE
        target = config.coverage if config.radius == "default" else None
        return replace(
            default_radius(value_range), target_coverage=target, factor=config.radius_scale
        )
    radii: dict[str, Callable[[], SquaredRadius]] = {
        "printed-log": LogRadius,
        "corrected": lambda: _lemma_1_radius(config, environment),
        "printed": lambda: _lemma_1_radius(config, environment),
    }
    return ScaledRadius(lookup(radii, config.radius, "radius")(), config.radius_scale)


def _lemma_1_radius(config: BanditAgentConfig, environment: BanditEnvironment) -> SquaredRadius:
    from gfucb.theory.lemma_radii import CorrectedRadius, CoveredClass, PrintedRadius

    known, noise_scale = representation_class_of(environment), noise_scale_of(environment)
    if not isinstance(known, CoveredClass) or noise_scale is None:
        raise InvalidInputError(
            f"the {config.radius} radius needs the covering number of the class and the scale of "
            "the noise, which the environments finite and linear state; choose one of them with "
            "--environment.name, or another --agent.radius"
        )
    # A class that can be listed is its own cover, at scale zero.
    scale = COVER_SCALE if known.members is None else 0.0
    sizes = (environment.num_tasks, _feature_dim(known, environment))
    log_number = known.log_covering_number(scale)
    if config.radius == "printed":
        return PrintedRadius(*sizes, log_number, scale)
    return CorrectedRadius(*sizes, log_number, scale, noise_scale, config.ridge)


def _feature_dim(known: CoveredClass, environment: BanditEnvironment) -> int:
    from gfucb.core.random import random_stream
    from gfucb.models import features_of

    inputs = environment.round(1).candidates[0, :1]  # [1, *input]
    representation = known.initial(inputs, random_stream(0, "feature dimension"), "cpu")
    return features_of(representation, inputs).shape[1]
