"""The built-in fits and action selectors that settings can name."""

from __future__ import annotations

from typing import Any, Protocol

from gfucb.core.protocols import ActionSelector, LeastSquares
from gfucb.runs.config import BanditAgentConfig
from gfucb.runs.registry import register_action_selector, register_fit


class NetworkFitConfig(Protocol):
    """Settings that state the arguments of the fits of networks."""

    def variable_projection_arguments(self) -> dict[str, Any]:
        """Those of `VariableProjection`."""

    def adam_arguments(self) -> dict[str, Any]:
        """Those of `AdamFit`."""


@register_fit("variable-projection", description="Gradient steps with heads solved exactly.")
def variable_projection(config: NetworkFitConfig) -> LeastSquares:
    """The default fit of networks."""
    from gfucb.estimation import VariableProjection

    return VariableProjection(**config.variable_projection_arguments())


@register_fit("adam", description="Adam on network and heads together, as in the paper.")
def adam(config: NetworkFitConfig) -> LeastSquares:
    """The fit of the paper's experiments."""
    from gfucb.estimation import AdamFit

    return AdamFit(**config.adam_arguments())


@register_action_selector("last-layer", description="Bonus from the uncertainty of the heads.")
def last_layer(config: BanditAgentConfig) -> ActionSelector:
    """The default for networks."""
    from gfucb.exploration import LastLayer

    return LastLayer()


@register_action_selector(
    "linearised", description="Bonus from heads and weights, jointly over all tasks."
)
def linearised(config: BanditAgentConfig) -> ActionSelector:
    """Optimism in the network linearised at the fit."""
    from gfucb.exploration import Linearised

    return Linearised(weight_ridge=config.weight_ridge)


@register_action_selector(
    "certified", description="As linearised, then a member of the set that attains the value."
)
def certified(config: BanditAgentConfig) -> ActionSelector:
    """The linearised choice with a function that is in the confidence set."""
    from gfucb.exploration import Certified

    return Certified(weight_ridge=config.weight_ridge)


@register_action_selector("gradient", description="Bonus from weights and heads, per decision.")
def gradient(config: BanditAgentConfig) -> ActionSelector:
    """A bonus from the gradient features of each decision alone."""
    from gfucb.exploration import GradientBonus

    return GradientBonus(weight_ridge=config.weight_ridge)
