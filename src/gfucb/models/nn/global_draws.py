"""torch's global random generators in training, which all threads of a process share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn

from gfucb.core.random import exclusive_randomness_from, global_randomness_from

# Layers of torch that draw in training, or may do so with some settings.
RANDOM_LAYERS = (
    nn.modules.dropout._DropoutNd,
    nn.RReLU,
    nn.FractionalMaxPool2d,
    nn.FractionalMaxPool3d,
    nn.RNNBase,
    nn.MultiheadAttention,
    nn.TransformerEncoderLayer,
    nn.TransformerDecoderLayer,
)
# Where all other classes draw nothing from there.
KNOWN_PACKAGES = ("torch.nn.", "gfucb.")


@contextmanager
def training_randomness_from(
    generator: torch.Generator,
    module: nn.Module,
    *,
    others_draw: bool = False,
    waits_for_others: bool = False,
) -> Iterator[None]:
    """Seed the global generators for training steps of `module`, as far as it draws from them.

    A module that draws nothing leaves them alone, so that draws of the user in another thread stay
    what they are. Of modules with layers of torch that draw, one is trained at a time: the weights
    do not depend on what other threads do. Draws in users' own code are not known; they are seeded,
    but threads that train at the same time mix them.

    Args:
        generator: gives the seed; one number is drawn from it in any case.
        module: in training.
        others_draw: whether something besides the module may draw.
        waits_for_others: whether a step waits for other threads, which then must not wait for this
            one.
    """
    layers = list(module.modules())
    is_random = any(isinstance(layer, RANDOM_LAYERS) for layer in layers)
    if is_random and not waits_for_others:
        with exclusive_randomness_from(generator):
            yield
    elif is_random or others_draw or not all(_is_plain(layer) for layer in layers):
        with global_randomness_from(generator):
            yield
    else:
        torch.randint(2**62, (), generator=generator)  # as with random layers
        yield


def is_known(value: object) -> bool:
    """Whether the class of a value is one of torch's layers or of this package."""
    return type(value).__module__.startswith(KNOWN_PACKAGES)


def _is_plain(layer: nn.Module) -> bool:
    return is_known(layer) and not (layer._forward_hooks or layer._forward_pre_hooks)
