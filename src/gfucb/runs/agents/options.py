"""Arguments that several bandit agents share: representation class, fit, radius."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from gfucb.bandits.gfucb import default_radius
from gfucb.core.errors import InvalidInputError, lookup
from gfucb.core.protocols import ActionSelector, BanditEnvironment, SquaredRadius
from gfucb.environments import SyntheticBandit
from gfucb.estimation import CalibratedRadius, LogRadius, ScaledRadius
from gfucb.runs.config import BanditAgentConfig
from gfucb.runs.registry import ACTION_SELECTORS, FITS
from gfucb.theory.lemma_radii import CorrectedRadius, PrintedRadius

# Scale of the cover of the linear class in the radii of Lemma 1: small enough for its terms to
# vanish.
COVER_SCALE = 1e-4


def learning_options(
    config: BanditAgentConfig, environment: BanditEnvironment, seed: int
) -> dict[str, Any]:
    """Arguments of all agents that learn a representation: its class, the fit, the schedule."""
    options: dict[str, Any] = {
        "seed": seed,
        "ridge": config.ridge,
        "refit_growth": config.refit_growth,
    }
    fit = config.fit
    if isinstance(environment, SyntheticBandit):
        options["representation"] = environment.representation_class
        options["value_range"] = (-1.0, 1.0)
    elif fit == "default":
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
) -> SquaredRadius | CalibratedRadius:
    """The radius that the settings name."""
    if config.radius in ("default", "constant"):
        value_range = (-1.0, 1.0) if isinstance(environment, SyntheticBandit) else (0.0, 1.0)
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
    if not isinstance(environment, SyntheticBandit):
        raise InvalidInputError(
            f"the {config.radius} radius needs the covering number of the class, which is known "
            "for the environments finite and linear only; choose one of them with "
            "--environment.name, or another --agent.radius"
        )
    known = environment.representation_class
    # A class that can be listed is its own cover, at scale zero.
    scale = COVER_SCALE if known.members is None else 0.0
    sizes = (environment.num_tasks, environment.true_function.heads.shape[1])
    log_number = known.log_covering_number(scale)
    if config.radius == "printed":
        return PrintedRadius(*sizes, log_number, scale)
    return CorrectedRadius(*sizes, log_number, scale, environment.noise_scale, config.ridge)
