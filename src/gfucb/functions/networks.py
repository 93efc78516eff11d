"""Networks for those who bring none, and the paper's."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from gfucb.errors import InvalidInputError
from gfucb.seeding import global_randomness_from

# Images at least this high and wide are worth convolving.
SMALLEST_CONVOLVED_SIDE = 16


class SeededDropout(nn.Module):
    """Dropout whose mask is a function of a seed and of the place, on every device the same.

    A fit sets the seeds (`seed_dropout`); so a network trained on a GPU, on a CPU, alone or
    stacked with others drops the same entries. The mask comes from a hash of the place
    (splitmix64, Steele, Lea and Flood 2014), eight entries from one 64-bit word: an entry is
    dropped when its byte is below 256 p, so p is rounded to a multiple of 1/256.
    """

    seed: Tensor

    def __init__(self, p: float) -> None:
        super().__init__()
        if not 0 <= p < 1:
            raise InvalidInputError(f"the dropout probability must be in [0, 1), got {p}")
        self.threshold = round(256 * p)
        self.register_buffer("seed", torch.zeros((), dtype=torch.int64), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """Zero a random part of `x` while training, and scale up the rest."""
        if not self.training or self.threshold == 0:
            return x
        words = torch.arange(-(-x.numel() // 8), device=x.device) * _GOLDEN + self.seed
        words = (words ^ ((words >> 30) & (2**34 - 1))) * _MIX_1
        words = (words ^ ((words >> 27) & (2**37 - 1))) * _MIX_2
        words = words ^ ((words >> 31) & (2**33 - 1))
        lots = _bytes_of(words)[: x.numel()].view(x.shape)
        return x * (lots >= self.threshold) * (256 / (256 - self.threshold))


# The constants of splitmix64 as signed numbers; products wrap around as they should.
_GOLDEN, _MIX_1, _MIX_2 = -7046029254386353131, -4658895280553007687, -7723592293110705685


def _bytes_of(words: Tensor) -> Tensor:
    """The bytes of 64-bit words, lowest first: [n] -> [8 n]."""
    try:
        return words.view(torch.uint8)
    except RuntimeError:  # under vmap, before torch 2.12
        shifts = torch.arange(0, 64, 8, device=words.device)
        return ((words.unsqueeze(-1) >> shifts) & 255).flatten()


def seeded_dropouts(module: nn.Module) -> list[SeededDropout]:
    """The layers of `module` that wait for a seed, in their order."""
    return [layer for layer in module.modules() if isinstance(layer, SeededDropout)]


def seeded_dropout_names(module: nn.Module) -> list[str]:
    """The names of their seeds, in the same order."""
    named = module.named_modules()
    return [f"{name}.seed" for name, layer in named if isinstance(layer, SeededDropout)]


class ResidualLayer(nn.Module):
    """x + dropout(relu(linear(x))): a deeper network that begins as a shallow one can."""

    def __init__(self, width: int, dropout: float) -> None:
        super().__init__()
        self.linear = nn.Linear(width, width)
        self.dropout = SeededDropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """[n, width] -> [n, width]."""
        return x + self.dropout(torch.relu(self.linear(x)))


def default_network(
    input_shape: Sequence[int],
    generator: torch.Generator,
    *,
    feature_dim: int = 20,
    hidden: int = 256,
    dropout: float = 0.3,
    input_dropout: float = 0.1,
) -> nn.Module:
    """A small network suited to the shape of one input, [n, *input] -> [n, feature].

    Images of 16 x 16 and more, [height, width] or [channel, height, width], get two
    convolutions; all else is flattened. Then a hidden layer, a residual one, and the features.
    Dropout, of inputs too, acts only while fitting: with few samples a task it was worth more
    than any bonus.
    """
    shape = tuple(input_shape)
    if not shape:
        raise InvalidInputError(
            "inputs are single numbers and no representation was given; pass one "
            "(for item numbers, a torch.nn.Embedding)"
        )
    with global_randomness_from(generator):
        steady: nn.Module = nn.Identity()
        if len(shape) in (2, 3) and min(shape[-2:]) >= SMALLEST_CONVOLVED_SIDE:
            trunk, width = convolutions(shape)
            # Without it one run in ten blew up on its first samples and did not recover.
            steady = nn.LayerNorm(hidden)
        else:
            trunk, width = nn.Flatten(), int(torch.Size(shape).numel())
        return nn.Sequential(
            SeededDropout(input_dropout),
            trunk,
            nn.Linear(width, hidden),
            steady,
            nn.ReLU(),
            SeededDropout(dropout),
            ResidualLayer(hidden, dropout),
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
