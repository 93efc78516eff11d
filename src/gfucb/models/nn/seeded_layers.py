"""Layers that are random in training, with draws that are a function of a seed.

A fit sets the seeds, so a network has the same draws on a GPU, on a CPU, alone and in a stack.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import grid_sample

from gfucb.core.errors import InvalidInputError
from gfucb.core.hashed_draws import hashed_words, uniform_draws


class SeededLayer(nn.Module):
    """Its draws are a hash of its seed and their index.

    With `row_seeds` [n] each row of a batch has a seed of its own, so that its draws do not depend
    on the other rows.
    """

    seed: Tensor
    row_seeds: Tensor | None = None

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seed", torch.zeros((), dtype=torch.int64), persistent=False)

    def words(self, count: int) -> Tensor:
        """Random 64-bit words: [count]."""
        return hashed_words(self.seed, count)


class SeededDropout(SeededLayer):
    """Dropout: a value is dropped if its random byte is below 256 p.

    A word gives eight bytes, and p is rounded to a multiple of 1/256.
    """

    def __init__(self, p: float) -> None:
        super().__init__()
        if not 0 <= p < 1:
            raise InvalidInputError(f"the dropout probability must be in [0, 1), got {p}")
        self.threshold = round(256 * p)

    def forward(self, x: Tensor) -> Tensor:
        """In training, set a random part of `x` to zero and scale up the rest."""
        if not self.training or self.threshold == 0:
            return x
        if self.row_seeds is None:
            draws = _bytes_of(self.words(-(-x.numel() // 8)))[: x.numel()].view(x.shape)
        else:
            width = x[0].numel() if len(x) else 0
            words = hashed_words(self.row_seeds, -(-width // 8))
            draws = _bytes_of(words.flatten()).view(len(x), -1)[:, :width].reshape(x.shape)
        # One product with x: a second one would cost as much again, also in the backward pass.
        # `draws >= threshold` and its conversion take ten times as long on a CPU as these bytes.
        is_kept = draws.clamp(self.threshold - 1, self.threshold).sub_(self.threshold - 1)
        return x * is_kept.to(x.dtype).mul_(256 / (256 - self.threshold))


class SeededJitter(SeededLayer):
    """In training, images shifted, rotated and scaled a little, each by its own draws.

    Args:
        shift: the largest shift, as a share of the side.
        turn: the largest rotation, in radians.
        resize: the largest change of the logarithm of the size.
    """

    def __init__(self, shift: float = 0.07, turn: float = 0.2, resize: float = 0.1) -> None:
        super().__init__()
        self.shift, self.turn, self.resize = shift, turn, resize

    def forward(self, x: Tensor) -> Tensor:
        """[n, height, width] or [n, channel, height, width], with zeros beyond the border."""
        if not self.training:
            return x
        angle, size, right, down = self._draws(len(x), x.dtype)  # [n, 1, 1] each
        cosine, sine = torch.cos(angle) * size, torch.sin(angle) * size
        rows = _pixel_centers(x.shape[-2], x)[None, :, None]
        columns = _pixel_centers(x.shape[-1], x)[None, None, :]
        grid = torch.stack(
            [cosine * columns - sine * rows + right, sine * columns + cosine * rows + down], dim=-1
        )
        images = x if x.ndim == 4 else x.unsqueeze(1)
        return grid_sample(images, grid, align_corners=False).view(x.shape)

    def _draws(self, count: int, dtype: torch.dtype) -> tuple[Tensor, ...]:
        if self.row_seeds is None:
            words = self.words(4 * count).view(4, count, 1, 1)
        else:
            words = hashed_words(self.row_seeds, 4).T.reshape(4, count, 1, 1)
        draws = uniform_draws(words, dtype)
        # The grid has length 2, so a share of the side is twice that number on the grid.
        reach = 2 * self.shift
        return (
            self.turn * draws[0],
            (self.resize * draws[1]).exp(),
            reach * draws[2],
            reach * draws[3],
        )


def set_row_seeds(module: nn.Module, seeds: Tensor | None) -> None:
    """Set the seeds of the rows of the next batch, [layer, n], or none."""
    for index, layer in enumerate(seeded_layers(module)):
        layer.row_seeds = None if seeds is None else seeds[index]


def seeded_layers(module: nn.Module) -> list[SeededLayer]:
    """The seeded layers of `module`, in their order."""
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


def _pixel_centers(count: int, like: Tensor) -> Tensor:
    """The centers of `count` pixels on [-1, 1]."""
    centers = torch.arange(count, dtype=like.dtype, device=like.device) + 0.5
    return 2 * centers / count - 1
