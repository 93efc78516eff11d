"""Invariances a user may know of: inputs that pay the same."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

from gfucb.core.errors import InvalidInputError


@dataclass(frozen=True)
class RandomShifts:
    """Images moved by up to so many pixels each way, with zeros coming in at the border.

    For `VariableProjection(augment=RandomShifts(2))`: what is seen does not depend on where.
    """

    pixels: int = 1

    def __post_init__(self) -> None:
        if self.pixels < 1:
            raise InvalidInputError(f"pixels must be at least 1, got {self.pixels}")

    def __call__(self, inputs: Tensor, generator: torch.Generator) -> Tensor:
        """Shift each of [n, ..., height, width] by its own lot."""
        if inputs.ndim < 3:
            raise InvalidInputError(
                f"shifts need images [n, ..., height, width], got inputs {list(inputs.shape)}"
            )
        reach, (height, width) = self.pixels, inputs.shape[-2:]
        draws = torch.randint(2 * reach + 1, (2, len(inputs), 1), generator=generator)
        down, right = draws.to(inputs.device)
        rows = torch.arange(height, device=inputs.device) + down  # [n, height]
        columns = torch.arange(width, device=inputs.device) + right  # [n, width]
        padded = pad(inputs, [reach] * 4).movedim(0, -3)  # [..., n, height, width]
        images = torch.arange(len(inputs), device=inputs.device)[:, None, None]
        return padded[..., images, rows[:, :, None], columns[:, None, :]].movedim(-3, 0)
