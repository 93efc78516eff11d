"""The default network, its layers, and the network of the paper."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import conv2d, max_pool2d, normalize, pad

from gfucb.core.errors import InvalidInputError
from gfucb.core.random import exclusive_randomness_from
from gfucb.core.validation.settings import validate_count, validate_number
from gfucb.models.nn.seeded_layers import SeededDropout, SeededJitter

# Inputs at least this high and wide are images; from the second size on they are convolved.
SMALLEST_IMAGE_SIDE = 8
SMALLEST_CONVOLVED_SIDE = 16


class ResidualLayer(nn.Module):
    """x + dropout(relu(linear(x)))."""

    def __init__(self, width: int, dropout: float) -> None:
        super().__init__()
        self.linear = nn.Linear(width, width)
        self.dropout = SeededDropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """[n, width] -> [n, width]."""
        return x + self.dropout(torch.relu(self.linear(x)))


class PooledConvolution(nn.Module):
    """relu(2 x 2 max-pooling of a 3 x 3 convolution + bias).

    The bias and the ReLU come after the pooling, which gives the same values for a quarter of
    the work.
    """

    def __init__(self, channels: int, filters: int) -> None:
        super().__init__()
        plain = nn.Conv2d(channels, filters, 3, padding=1)
        assert plain.bias is not None
        self.weight, self.bias = plain.weight, plain.bias

    def forward(self, x: Tensor) -> Tensor:
        """[n, channel, height, width] -> [n, filter, height / 2, width / 2]."""
        # With one channel the arithmetic is so small that memory traffic dominates.
        if self.weight.shape[1] == 1:
            return self._as_product(x)
        pooled = max_pool2d(conv2d(x, self.weight, padding=1), 2)
        return torch.relu(pooled + self.bias[:, None, None])

    def _as_product(self, x: Tensor) -> Tensor:
        """The same as one matrix product: a pooled pixel depends on a 4 x 4 window."""
        height, width = x.shape[-2] // 2, x.shape[-1] // 2
        # A window is 2 x 2 blocks of 2 x 2 pixels; neighbouring windows share blocks.
        padded = pad(x.squeeze(1), (1, 1, 1, 1))[:, : 2 * height + 2, : 2 * width + 2]
        blocks = padded.unflatten(1, (-1, 2)).unflatten(3, (-1, 2)).transpose(2, 3).flatten(3)
        windows = torch.cat(
            [blocks[:, i : height + i, j : width + j] for i in (0, 1) for j in (0, 1)], dim=-1
        )  # [n, row, column, (block row, block column, pixel row, pixel column)]
        shifted = torch.stack(
            [pad(self.weight[:, 0], (j, 1 - j, i, 1 - i)) for i in (0, 1) for j in (0, 1)]
        )  # [shift, filter, 4, 4]
        filters = shifted.unflatten(2, (2, 2)).unflatten(4, (2, 2)).transpose(3, 4).flatten(2)
        # One product per image: a GPU then computes their sum in the backward pass in parallel.
        each = filters.flatten(0, 1).t().expand(len(x), -1, -1)
        values = (windows.flatten(1, 2) @ each).unflatten(-1, (4, -1)).max(-2).values
        return torch.relu(values + self.bias).transpose(1, 2).unflatten(2, (height, width))


class FourierFeatures(nn.Module):
    """Random Fourier features of the direction of x: heads are smooth functions of the direction.

        sqrt(2 * squared_norm / feature_dim) * (cos(W u), sin(W u)),   u = x / |x|,

    with rows of W ~ N(0, I / length^2), orthogonal in blocks, so that inner products come close
    to squared_norm * exp(-|u - u'|^2 / (2 length^2)) (Rahimi and Recht 2007, Yu et al. 2016). At a
    direction far from all data the value of a head is the offset, and its width that of the
    prior. Linear heads on u itself extrapolate from some directions to all others, with small
    widths.

    Args:
        num_directions: length of x.
        feature_dim: the number of features, even.
        length: the length scale on the unit sphere.
        squared_norm: of the features; the squared width of a head without data, at ridge 1.
    """

    frequencies: Tensor

    def __init__(
        self,
        num_directions: int,
        feature_dim: int,
        *,
        length: float = 0.5,
        squared_norm: float = 10 / 3,
    ) -> None:
        super().__init__()
        validate_count(num_directions, "num_directions")
        validate_number(length, "length", above=0.0)
        validate_number(squared_norm, "squared_norm", above=0.0)
        if validate_count(feature_dim, "feature_dim") % 2:
            raise InvalidInputError(
                "random Fourier features come in pairs, sine and cosine: feature_dim must be even, "
                f"got {feature_dim}"
            )
        self.num_directions = num_directions
        self.amplitude = math.sqrt(2 * squared_norm / feature_dim)
        square = torch.empty(num_directions, num_directions)
        num_blocks = math.ceil(feature_dim / 2 / num_directions)
        blocks = [
            torch.linalg.qr(square.normal_()).Q * square.normal_().norm(dim=1, keepdim=True)
            for _ in range(num_blocks)
        ]
        self.register_buffer("frequencies", torch.cat(blocks)[: feature_dim // 2] / length)

    def forward(self, x: Tensor) -> Tensor:
        """[n, direction] -> [n, feature]."""
        phases = normalize(x, dim=-1) @ self.frequencies.T
        return self.amplitude * torch.cat([phases.cos(), phases.sin()], dim=-1)


def is_image_shape(shape: Sequence[int]) -> bool:
    """Whether inputs of this shape are images: [height, width] or [channel, height, width]."""
    return len(shape) in (2, 3) and min(shape[-2:]) >= SMALLEST_IMAGE_SIDE


def body_of(module: nn.Module) -> nn.Module:
    """The layers below `FourierFeatures`, with the same weights; the whole module without them."""
    if isinstance(module, nn.Sequential) and len(module) > 1:
        return module[:-1] if isinstance(module[-1], FourierFeatures) else module
    return module


def convolves(module: nn.Module) -> bool:
    """Whether the module has a convolution."""
    kinds = (PooledConvolution, nn.Conv1d, nn.Conv2d, nn.Conv3d)
    return any(isinstance(layer, kinds) for layer in module.modules())


def num_unbounded(module: nn.Module, feature_dim: int) -> int:
    """The number of features without a bound; below `FourierFeatures`, those are its inputs."""
    *_, last = module.modules()
    return last.num_directions if isinstance(last, FourierFeatures) else feature_dim


def default_network(
    input_shape: Sequence[int],
    generator: torch.Generator,
    *,
    feature_dim: int = 128,
    num_directions: int | None = 20,
    hidden: int = 256,
    dropout: float | None = None,
) -> nn.Module:
    """A small network suited to the shape of one input, [n, *input] -> [n, feature].

    Images of 16 x 16 and more, [height, width] or [channel, height, width], get two
    convolutions; other inputs are flattened. A hidden layer, a residual layer, a linear layer to
    `num_directions` numbers and `FourierFeatures` of these follow. If `num_directions` is None
    the linear layer is the last.

    Regularisation acts only in fits, and had a larger effect on regret than any bonus: dropout
    (0.3, and 0.1 of inputs; 0.1 after convolutions) and, for inputs of 8 x 8 and more, jitter. It
    assumes that a small shift, rotation or scaling of an image does not change the reward. If
    that is wrong, pass your own network, or flatten the inputs.
    """
    shape = tuple(input_shape)
    if not shape:
        raise InvalidInputError(
            "inputs are single numbers and no representation was given; pass one "
            "(for item numbers, a torch.nn.Embedding)"
        )
    with exclusive_randomness_from(generator):
        side = min(shape[-2:]) if len(shape) in (2, 3) else 0
        noise: list[nn.Module] = [SeededJitter()] if side >= SMALLEST_IMAGE_SIDE else []
        if side >= SMALLEST_CONVOLVED_SIDE:
            trunk, width = convolutions(shape)
            dropout = 0.1 if dropout is None else dropout
            # Without it one run in ten diverged on its first samples and did not recover.
            norm: nn.Module = nn.LayerNorm(hidden)
        else:
            noise.append(SeededDropout(0.1))
            trunk, width = nn.Flatten(), int(torch.Size(shape).numel())
            dropout = 0.3 if dropout is None else dropout
            norm = nn.Identity()
        layers = [
            *noise,
            trunk,
            nn.Linear(width, hidden),
            norm,
            nn.ReLU(),
            SeededDropout(dropout),
            ResidualLayer(hidden, dropout),
            nn.Linear(hidden, num_directions or feature_dim),
        ]
        if num_directions is not None:
            layers.append(FourierFeatures(num_directions, feature_dim))
        return nn.Sequential(*layers)


class StandardisedColumns(nn.Module):
    """Columns minus their mean, in units of their standard deviation, clipped to +-5.

    Args:
        inputs: [n, column], whose mean and standard deviation are used for all inputs.
    """

    location: Tensor
    spread: Tensor

    def __init__(self, inputs: Tensor) -> None:
        super().__init__()
        inputs = inputs.to(torch.float64)
        location = inputs.mean(0)
        spread = (inputs - location).square().mean(0).sqrt()
        varies = spread > 1e-9 * inputs.abs().max(0).values
        spread = torch.where(varies, spread, torch.ones_like(spread))
        self.register_buffer("location", location.to(torch.float32))
        self.register_buffer("spread", spread.to(torch.float32))

    def forward(self, inputs: Tensor) -> Tensor:
        """[n, *input] -> [n, column]."""
        return ((inputs.flatten(1) - self.location) / self.spread).clamp(-5, 5)


def paper_network(
    input_shape: Sequence[int], generator: torch.Generator, *, feature_dim: int = 10
) -> nn.Module:
    """The CNN of section 6.2: two 3x3 convolutions, two fully connected layers.

    Its output must be normalised: use `NeuralClass(module, "l2")`.
    """
    # Paper: channels, pooling and hidden width are not given; 16, 32, pools of 2 and 64 are ours.
    # There is no ReLU after the last layer: features would become zero and stay zero.
    shape = tuple(input_shape)
    with exclusive_randomness_from(generator):
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
    layers += [PooledConvolution(channels, 16), PooledConvolution(16, 32), nn.Flatten()]
    return nn.Sequential(*layers), 32 * (shape[-2] // 4) * (shape[-1] // 4)
