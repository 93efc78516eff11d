"""Views: random changes of an input that keep what matters about it, for self-supervision."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields

import torch
from torch import Tensor
from torch.nn.functional import grid_sample

from gfucb.core.errors import InvalidInputError
from gfucb.core.hashed_draws import hashed_words, uniform_draws
from gfucb.core.validation.settings import validate_not_negative, validate_number
from gfucb.models.nn.networks import is_image_shape

# (inputs [n, *input], generator) -> views of them [n, *input], as in `VariableProjection.augment`.
Views = Callable[[Tensor, torch.Generator], Tensor]
# Cosines in each direction that an elastic field has.
MODES = 4


class SeededViews(ABC):
    """Views that are a function of the input and of one seed for each input.

    They are the same on every device, alone and in a batch of replicas, and a CUDA graph can
    contain them.
    """

    @abstractmethod
    def seeded(self, inputs: Tensor, seeds: Tensor) -> Tensor:
        """Views of float inputs [n, *input] with seeds [n] of int64: [n, *input]."""

    def __call__(self, inputs: Tensor, generator: torch.Generator) -> Tensor:
        """Views of inputs [n, *input] with seeds from `generator`."""
        seeds = torch.randint(2**62, (len(inputs),), generator=generator)
        return self.seeded(inputs, seeds.to(inputs.device))


@dataclass(frozen=True)
class ImageViews(SeededViews):
    """Images [height, width] or [channel, height, width] turned, scaled, sheared, shifted and bent.

    The contrast changes too: values v of an image with values from a to b become
    a + (b - a) ((v - a) / (b - a))^gamma. All values stay in the range of the image. Beyond the
    border there are zeros.

    They assume that rewards do not depend on orientation, size, position and contrast within the
    limits below.
    """

    strength: float = 1.0
    """Scales all limits; 0 returns the images as they are."""
    turn: float = 0.35
    """The largest rotation, in radians."""
    resize: float = 0.2
    """The largest change of the logarithm of height and width."""
    shear: float = 0.35
    shift: float = 0.075
    """The largest shift, as a share of the side."""
    elastic: float = 0.03
    """Standard deviation of a smooth displacement of the pixels, as a share of the side."""
    contrast: float = 0.6
    """The largest change of the logarithm of gamma."""

    def __post_init__(self) -> None:
        for field in fields(self):
            validate_not_negative(getattr(self, field.name), field.name)

    def seeded(self, inputs: Tensor, seeds: Tensor) -> Tensor:
        """Views of images [n, height, width] or [n, channel, height, width]."""
        if inputs.ndim not in (3, 4):
            raise InvalidInputError(
                "ImageViews needs images [n, height, width] or [n, channel, height, width], got "
                f"inputs of shape {list(inputs.shape)}"
            )
        if self.strength == 0:
            return inputs
        images = inputs if inputs.ndim == 4 else inputs.unsqueeze(1)
        draws = uniform_draws(hashed_words(seeds, 7 + 2 * MODES**2), inputs.dtype)
        bent = self._displacements(draws[:, 7:], images.shape[-2:])
        grid = self._grid(draws, images.shape[-2:]) + bent
        low = images.amin((1, 2, 3), keepdim=True)
        high = images.amax((1, 2, 3), keepdim=True)
        moved = grid_sample(images, grid, align_corners=False).clamp(low, high)
        gamma = (self.strength * self.contrast * draws[:, 6]).exp()[:, None, None, None]
        size = (high - low).clamp_min(torch.finfo(inputs.dtype).tiny)
        views = low + (high - low) * ((moved - low) / size).clamp(0, 1) ** gamma
        return views.view(inputs.shape)

    def _grid(self, draws: Tensor, shape: torch.Size) -> Tensor:
        """Where the pixels of affine views come from, by draws [n, draw]: [n, height, width, 2]."""
        strength, columns = self.strength, draws[:, :, None, None]
        turn, slant = strength * self.turn * columns[:, 0], strength * self.shear * columns[:, 1]
        width, height = (strength * self.resize * columns[:, 2:4]).exp().unbind(1)
        # The grid has length 2, so a share of the side is twice that number on the grid.
        right, down = (2 * strength * self.shift * columns[:, 4:6]).unbind(1)
        y, x = (2 * _pixel_centers(side, draws) - 1 for side in shape)
        across, along = width * x + slant * y[:, None], height * y[:, None]
        cosine, sine = turn.cos(), turn.sin()
        return torch.stack(
            [cosine * across - sine * along + right, sine * across + cosine * along + down], dim=-1
        )

    def _displacements(self, draws: Tensor, shape: torch.Size) -> Tensor:
        """Smooth fields of draws [n, 2 * mode * mode]: [n, height, width, 2]."""
        down, across = (_cosines(side, draws) for side in shape)
        # Mean square of the sum of all products of cosines, with draws of variance 1/3.
        mean_square = ((1 + (MODES - 1) / 2) ** 2) / 3
        size = 2 * self.strength * self.elastic / math.sqrt(mean_square)
        modes = draws.unflatten(1, (2, MODES, MODES))
        return size * (down @ modes @ across.T).movedim(1, -1)


@dataclass(frozen=True)
class TableViews(SeededViews):
    """Rows of a table with some columns replaced (SCARF, Bahri et al. 2022) or masked.

    They assume that the other columns of a row still say which row it was: columns that depend on
    each other. The columns of an input of several axes are all its numbers.
    """

    corrupted: float = 0.3
    """The share of columns that get the value of another row, drawn for each column."""
    masked: float = 0.0
    """The share of the other columns that get the mean of the column."""

    def __post_init__(self) -> None:
        for field in fields(self):
            validate_number(getattr(self, field.name), field.name, at_least=0.0, at_most=1.0)

    def seeded(self, inputs: Tensor, seeds: Tensor) -> Tensor:
        """Views of rows [n, *input]; other rows of the same call are the source of values."""
        rows = inputs.flatten(1)
        count, columns = rows.shape
        words = hashed_words(seeds, 3 * columns).unflatten(1, (3, columns))
        chances = (uniform_draws(words[:, :2], inputs.dtype) + 1) / 2
        donors = (words[:, 2] >> 1).remainder(count)
        others = rows.gather(0, donors)
        views = torch.where(chances[:, 0] < self.corrupted, others, rows)
        is_masked = (chances[:, 0] >= self.corrupted) & (chances[:, 1] < self.masked)
        return torch.where(is_masked, rows.mean(0), views).view(inputs.shape)


def default_views(inputs: Tensor) -> SeededViews | None:
    """The views of inputs [n, *input]: of images, of numbers; None for ids, which have none."""
    if not inputs.is_floating_point() and inputs.dtype != torch.uint8:
        return None
    if is_image_shape(inputs.shape[1:]):
        return ImageViews()
    return TableViews() if inputs[:1].numel() > 1 else None


def _cosines(side: int, like: Tensor) -> Tensor:
    """The first cosines at the centers of pixels: [pixel, mode]."""
    modes = torch.arange(MODES, dtype=like.dtype, device=like.device)
    return (math.pi * _pixel_centers(side, like)[:, None] * modes).cos()


def _pixel_centers(side: int, like: Tensor) -> Tensor:
    """The centers of pixels on [0, 1]: [pixel]."""
    return (torch.arange(side, dtype=like.dtype, device=like.device) + 0.5) / side
