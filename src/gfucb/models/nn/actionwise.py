"""Networks for observations that do not depend on the action: phi(o, a) = psi(o) (x) e_a."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from gfucb.core.errors import InvalidInputError
from gfucb.core.random import exclusive_randomness_from


class Actionwise(nn.Module):
    """phi(o, a) = psi(o) (x) e_a for inputs (o, e_a): [n, observation + action] -> [n, k * A].

    Every action has its own head weights on the output of `trunk`. If the latent state can be
    decoded from the observation, the true representation is of this form: psi is one-hot in the
    latent state.
    """

    def __init__(self, trunk: nn.Module, num_actions: int) -> None:
        super().__init__()
        if num_actions < 1:
            raise InvalidInputError(f"num_actions must be at least 1, got {num_actions}")
        self.trunk, self.num_actions = trunk, num_actions

    def forward(self, inputs: Tensor) -> Tensor:
        """Features of inputs whose last `num_actions` coordinates are the one-hot action."""
        observations, actions = inputs[:, : -self.num_actions], inputs[:, -self.num_actions :]
        return (self.trunk(observations)[:, :, None] * actions[:, None, :]).flatten(1)


class StraightThroughOneHot(nn.Module):
    """A latent state from its logits: the softmax in training, the one-hot argmax in evaluation.

    After a fit to few samples the probabilities are not close to 0 or 1, even where the most
    probable state is right. With probabilities in evaluation, locks took up to twice the episodes
    and some optimistic values were below V*; with the argmax none was.
    """

    def forward(self, inputs: Tensor) -> Tensor:
        """Non-negative and summing to one over the last axis."""
        if self.training:
            return inputs.softmax(-1)
        return nn.functional.one_hot(inputs.argmax(-1), inputs.shape[-1]).to(inputs.dtype)


def actionwise_network(
    observation_dim: int,
    num_actions: int,
    generator: torch.Generator,
    *,
    feature_dim: int = 8,
    hidden: int = 32,
) -> Actionwise:
    """A small decoder: one hidden layer, then `feature_dim` logits of a latent state."""
    with exclusive_randomness_from(generator):
        trunk = nn.Sequential(
            nn.Linear(observation_dim, hidden),
            nn.ReLU(),
            nn.Linear(hidden, feature_dim),
            StraightThroughOneHot(),
        )
    return Actionwise(trunk, num_actions)
