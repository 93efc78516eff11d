"""Networks for those who bring none, and the paper's."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from gfucb.errors import InvalidInputError
from gfucb.seeding import global_randomness_from

# Images at least this high and wide are worth convolving.
SMALLEST_CONVOLVED_SIDE = 16


class ByteDropout(nn.Module):
    """Dropout whose mask is drawn eight entries at a time, which makes a fit a third faster.

    One 64-bit draw gives eight bytes; an entry is dropped when its byte is below 256 p, so p is
    rounded to a multiple of 1/256.
    """

    def __init__(self, p: float) -> None:
        super().__init__()
        if not 0 <= p < 1:
            raise InvalidInputError(f"the dropout probability must be in [0, 1), got {p}")
        self.threshold = round(256 * p)

    def forward(self, x: Tensor) -> Tensor:
        """Zero a random part of `x` while training, and scale up the rest."""
        if not self.training or self.threshold == 0:
            return x
        words = torch.empty(-(-x.numel() // 8), dtype=torch.int64, device=x.device)
        lots = words.random_(-(2**63), None).view(torch.uint8)[: x.numel()].view(x.shape)
        return x * (lots >= self.threshold) * (256 / (256 - self.threshold))


def default_network(
    input_shape: Sequence[int],
    generator: torch.Generator,
    *,
    feature_dim: int = 20,
    hidden: int = 256,
    dropout: float = 0.3,
) -> nn.Module:
    """A small network suited to the shape of one input, [n, *input] -> [n, feature].

    Images of 16 x 16 and more, [height, width] or [channel, height, width], get two
    convolutions; all else is flattened. Dropout acts only while fitting: with few samples a
    task it was worth more than any bonus.
    """
    shape = tuple(input_shape)
    if not shape:
        raise InvalidInputError(
            "inputs are single numbers and no representation was given; pass one "
            "(for item numbers, a torch.nn.Embedding)"
        )
    with global_randomness_from(generator):
        if len(shape) in (2, 3) and min(shape[-2:]) >= SMALLEST_CONVOLVED_SIDE:
            trunk, width = convolutions(shape)
        else:
            trunk, width = nn.Flatten(), int(torch.Size(shape).numel())
        return nn.Sequential(
            trunk,
            nn.Linear(width, hidden),
            nn.ReLU(),
            ByteDropout(dropout),
            nn.Linear(hidden, feature_dim),
        )


def paper_network(
    input_shape: Sequence[int], generator: torch.Generator, *, feature_dim: int = 10
) -> nn.Module:
    """The CNN of section 6.2: two 3x3 convolutions, two fully connected layers.

    Its output is meant to be normalised (`NeuralClass(module, "l2")`).
    """
    # Paper: channels, pooling and hidden width are not given; 16, 32, pools of 2 and 64 are ours.
    # ReLU stands between the layers only: after the last one it would make features die.
    shape = tuple(input_shape)
    with global_randomness_from(generator):
        trunk, width = convolutions(shape)
        return nn.Sequential(trunk, nn.Linear(width, 64), nn.ReLU(), nn.Linear(64, feature_dim))


def convolutions(shape: tuple[int, ...]) -> tuple[nn.Module, int]:
    """Two convolutions with pooling, flattened, and the width of the result."""
    if len(shape) not in (2, 3) or min(shape[-2:]) < 4:
        raise InvalidInputError(
            "convolutions need images [height, width] or [channel, height, width] of at least "
            f"4 x 4, got inputs of shape {list(shape)}"
        )
    channels = shape[0] if len(shape) == 3 else 1
    layers: list[nn.Module] = [nn.Unflatten(1, (1, shape[0]))] if len(shape) == 2 else []
    layers += [
        nn.Conv2d(channels, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
    ]
    return nn.Sequential(*layers), 32 * (shape[-2] // 4) * (shape[-1] // 4)
