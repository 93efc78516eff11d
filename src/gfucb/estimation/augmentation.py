"""Augmentations: random changes of inputs that do not change their rewards."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

from gfucb.core.errors import InvalidInputError
from gfucb.core.validation.settings import validate_count


@dataclass(frozen=True)
class RandomShifts:
    """Images shifted by up to `pixels` in each direction; the border is filled with zeros.

    `VariableProjection(augment=RandomShifts(2))` fits images whose rewards do not depend on the
    position of their content.
    """

    pixels: int = 1

    def __post_init__(self) -> None:
        validate_count(self.pixels, "pixels")

    def __call__(self, inputs: Tensor, generator: torch.Generator) -> Tensor:
        """Shift each image of [n, ..., height, width] by its own random offset."""
        if inputs.ndim < 3:
            raise InvalidInputError(
                f"shifts need images [n, ..., height, width], got inputs {list(inputs.shape)}"
            )
        pixels, (height, width) = self.pixels, inputs.shape[-2:]
        draws = torch.randint(2 * pixels + 1, (2, len(inputs), 1), generator=generator)
        down, right = draws.to(inputs.device)
        rows = torch.arange(height, device=inputs.device) + down  # [n, height]
        columns = torch.arange(width, device=inputs.device) + right  # [n, width]
        padded = pad(inputs, [pixels] * 4).movedim(0, -3)  # [..., n, height, width]
        images = torch.arange(len(inputs), device=inputs.device)[:, None, None]
        return padded[..., images, rows[:, :, None], columns[:, None, :]].movedim(-3, 0)
