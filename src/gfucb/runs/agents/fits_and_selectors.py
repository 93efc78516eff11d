"""The built-in fits and action selectors that settings can name."""

from __future__ import annotations

from gfucb.core.protocols import ActionSelector, LeastSquares
from gfucb.estimation import AdamFit, VariableProjection
from gfucb.exploration import Certified, GradientBonus, LastLayer, Linearised
from gfucb.runs.config import BanditAgentConfig, EpisodicAgentConfig
from gfucb.runs.registry import register_action_selector, register_fit


@register_fit("variable-projection", description="Gradient steps with heads solved exactly.")
def variable_projection(config: BanditAgentConfig | EpisodicAgentConfig) -> LeastSquares:
    """The default fit of networks."""
    if isinstance(config, EpisodicAgentConfig):
        return VariableProjection(
            steps=config.fit_steps,
            max_steps=config.fit_steps,
            learning_rate=config.fit_rate,
            samples_at_full_rate=0,
            weight_decay=config.weight_decay,
            batch_size=config.fit_batch,
            samples_per_task=config.fit_window,
        )
    return VariableProjection(steps=config.fit_steps, loss=config.fit_loss)


@register_fit("adam", description="Adam on network and heads together, as in the paper.")
def adam(config: BanditAgentConfig | EpisodicAgentConfig) -> LeastSquares:
    """The fit of the paper's experiments."""
    if isinstance(config, EpisodicAgentConfig):
        return AdamFit(learning_rate=config.fit_rate, batch_size=config.fit_batch)
    return AdamFit(epochs=config.epochs)


@register_action_selector("last-layer", description="Bonus from the uncertainty of the heads.")
def last_layer(config: BanditAgentConfig) -> ActionSelector:
    """The default for networks."""
    return LastLayer()


@register_action_selector(
    "linearised", description="Bonus from heads and weights, jointly over all tasks."
)
def linearised(config: BanditAgentConfig) -> ActionSelector:
    """Optimism in the network linearised at the fit."""
    return Linearised(weight_ridge=config.weight_ridge)


@register_action_selector(
    "certified", description="As linearised, then a member of the set that attains the value."
)
def certified(config: BanditAgentConfig) -> ActionSelector:
    """The linearised choice with a function that is in the confidence set."""
    return Certified(weight_ridge=config.weight_ridge)


@register_action_selector("gradient", description="Bonus from weights and heads, per decision.")
def gradient(config: BanditAgentConfig) -> ActionSelector:
    """A bonus from the gradient features of each decision alone."""
    return GradientBonus(weight_ridge=config.weight_ridge)
