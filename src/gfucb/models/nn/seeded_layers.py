"""Layers that act at random while a network is trained, with draws that are a function of a seed.

A fit sets the seeds; so a network trained on a GPU, on a CPU, alone or stacked with others draws
the same draws.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import grid_sample

from gfucb.core.errors import InvalidInputError

# The constants of splitmix64 as signed numbers; products wrap around as they should.
_GOLDEN, _MIX_1, _MIX_2 = -7046029254386353131, -4658895280553007687, -7723592293110705685


class SeededLayer(nn.Module):
    """Its draws are a hash of its seed and of the place (splitmix64, Steele et al. 2014)."""

    seed: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seed", torch.zeros((), dtype=torch.int64), persistent=False)

    def words(self, count: int) -> Tensor:
        """Random 64-bit words: [count]."""
        words = torch.arange(count, device=self.seed.device) * _GOLDEN + self.seed
        words = (words ^ ((words >> 30) & (2**34 - 1))) * _MIX_1
        words = (words ^ ((words >> 27) & (2**37 - 1))) * _MIX_2
        return words ^ ((words >> 31) & (2**33 - 1))


class SeededDropout(SeededLayer):
    """Dropout: an entry is dropped when its byte is below 256 p, eight entries from one word.

    So p is rounded to a multiple of 1/256.
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
        draws = _bytes_of(self.words(-(-x.numel() // 8)))[: x.numel()].view(x.shape)
        return x * (draws >= self.threshold) * (256 / (256 - self.threshold))


class SeededJitter(SeededLayer):
    """Images a little moved, turned and resized while training, each by its own draws.

    Args:
        shift: up to this share of the side, each way.
        turn: up to this many radians, each way.
        resize: up to this share, larger or smaller.
    """

    def __init__(self, shift: float = 0.07, turn: float = 0.2, resize: float = 0.1) -> None:
        super().__init__()
        self.shift, self.turn, self.resize = shift, turn, resize

    def forward(self, x: Tensor) -> Tensor:
        """[n, height, width] or [n, channel, height, width]; zeros come in at the border."""
        if not self.training:
            return x
        angle, size, right, down = self._draws(len(x), x.dtype)  # [n, 1, 1] each
        cosine, sine = torch.cos(angle) * size, torch.sin(angle) * size
        rows = _places(x.shape[-2], x)[None, :, None]
        columns = _places(x.shape[-1], x)[None, None, :]
        grid = torch.stack(
            [cosine * columns - sine * rows + right, sine * columns + cosine * rows + down], dim=-1
        )
        images = x if x.ndim == 4 else x.unsqueeze(1)
        return grid_sample(images, grid, align_corners=False).view(x.shape)

    def _draws(self, count: int, dtype: torch.dtype) -> tuple[Tensor, ...]:
        words = self.words(4 * count).view(4, count, 1, 1)
        draws = ((words >> 40) & (2**24 - 1)).to(dtype) / 2**23 - 1  # in [-1, 1)
        # A grid has length 2, so a share of the side is twice as much of it.
        reach = 2 * self.shift
        return (
            self.turn * draws[0],
            (self.resize * draws[1]).exp(),
            reach * draws[2],
            reach * draws[3],
        )


def seeded_layers(module: nn.Module) -> list[SeededLayer]:
    """The layers of `module` that wait for a seed, in their order."""
    return [layer for layer in module.modules() if isinstance(layer, SeededLayer)]


def seed_names(module: nn.Module) -> list[str]:
    """The names of their seeds, in the same order."""
    named = module.named_modules()
    return [f"{name}.seed" for name, layer in named if isinstance(layer, SeededLayer)]


def _bytes_of(words: Tensor) -> Tensor:
    """The bytes of 64-bit words, lowest first: [n] -> [8 n]."""
    try:
        return words.view(torch.uint8)
    except RuntimeError:  # under vmap, before torch 2.12
        shifts = torch.arange(0, 64, 8, device=words.device)
        return ((words.unsqueeze(-1) >> shifts) & 255).flatten()


def _places(count: int, like: Tensor) -> Tensor:
    """Where the middles of `count` pixels lie on [-1, 1]."""
    middles = torch.arange(count, dtype=like.dtype, device=like.device) + 0.5
    return 2 * middles / count - 1
