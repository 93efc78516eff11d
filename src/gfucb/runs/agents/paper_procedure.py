"""The procedure of the paper's experiments: its network, Adam in every round, fine-tuning."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gfucb.core.environment_facts import DEFAULT_VALUE_RANGE
from gfucb.core.errors import InvalidInputError
from gfucb.core.protocols import ActionSelector, BanditAgent, BanditEnvironment, SquaredRadius
from gfucb.runs.config import BanditAgentConfig
from gfucb.runs.registry import register_agent

if TYPE_CHECKING:
    from gfucb.bandits import GFUCB
    from gfucb.exploration import FineTuning


@register_agent(
    "gfucb-paper",
    label="GFUCB, paper's procedure",
    description="The paper's procedure with a stable solver: Adam in every round, fine-tuning "
    "that satisfies the constraint.",
    colour="#cc79a7",
)
def stable(config: BanditAgentConfig, environment: BanditEnvironment, seed: int) -> BanditAgent:
    """The paper's procedure with fine-tuning that stays in the confidence set."""
    from gfucb.exploration import FineTuning

    return _on_images(config, environment, seed, FineTuning.stable(config.tuning_iterations))


@register_agent(
    "gfucb-literal-sum",
    label="GFUCB, as printed (sum)",
    description="The paper's procedure as printed, summed constraint; leaves the confidence set.",
)
def literal_sum(
    config: BanditAgentConfig, environment: BanditEnvironment, seed: int
) -> BanditAgent:
    """The printed procedure, with the constraint as a sum over samples."""
    from gfucb.exploration import FineTuning

    return _on_images(config, environment, seed, FineTuning.literal_sum(config.tuning_iterations))


@register_agent(
    "gfucb-literal-mean",
    label="GFUCB, as printed (mean)",
    description="The paper's procedure as printed, averaged constraint; never reaches its bound.",
)
def literal_mean(
    config: BanditAgentConfig, environment: BanditEnvironment, seed: int
) -> BanditAgent:
    """The printed procedure, with the constraint as a mean over samples."""
    from gfucb.exploration import FineTuning

    return _on_images(config, environment, seed, FineTuning.literal_mean(config.tuning_iterations))


def _on_images(
    config: BanditAgentConfig, environment: BanditEnvironment, seed: int, selector: FineTuning
) -> BanditAgent:
    from gfucb.environments import ImageBandit
    from gfucb.estimation import LogRadius, ScaledRadius

    if not isinstance(environment, ImageBandit):
        raise InvalidInputError(
            "the paper's procedure has a CNN: it needs an environment of images, digits or mnist"
        )
    return paper_agent(
        environment.num_tasks,
        environment.data.images.shape[1:],
        seed=seed,
        noise_scale=environment.noise_scale,
        epochs=config.epochs,
        squared_radius=ScaledRadius(LogRadius(), config.radius_scale),
        action_selector=selector,
    )


def paper_agent(
    num_tasks: int,
    image_shape: Sequence[int],
    *,
    seed: int,
    noise_scale: float = 0.01,
    epochs: int = 200,
    squared_radius: SquaredRadius | None = None,
    action_selector: ActionSelector | None = None,
    refit_growth: float = 1.0,
    device: str = "cpu",
) -> GFUCB:
    """The paper's own procedure: its network, Adam in every round, fine-tuning."""
    from gfucb.bandits import GFUCB
    from gfucb.core.random import random_stream
    from gfucb.estimation import AdamFit, LogRadius
    from gfucb.exploration import FineTuning
    from gfucb.models import NeuralClass
    from gfucb.models.nn.networks import paper_network

    network = paper_network(image_shape, random_stream(seed, "network"))
    return GFUCB(
        num_tasks,
        NeuralClass(network, "l2"),
        seed=seed,
        # Paper: 200 epochs, always. We stop when the error is twice the noise: the rest is
        # fitting noise, and nine tenths of the time.
        fit=AdamFit(epochs=epochs, stop_below=2 * noise_scale**2),
        squared_radius=squared_radius or LogRadius(),
        action_selector=action_selector or FineTuning.stable(),
        # Small enough to leave the paper's set, which has no ridge, unchanged.
        ridge=1e-3,
        value_range=DEFAULT_VALUE_RANGE,
        refit_growth=refit_growth,
        device=device,
    )
