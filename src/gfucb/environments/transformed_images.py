"""Images whose class is a transformation: problems in which the views of images are wrong.

Self-supervision on images assumes that a small rotation or a change of contrast keeps the reward.
Here the reward depends on just that, and not, or not only, on the digit.
"""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import affine_grid, grid_sample

from gfucb.core.errors import InvalidInputError, lookup
from gfucb.core.random import random_stream
from gfucb.environments.image_bandit import NUM_CLASSES
from gfucb.environments.images import LabelledImages

Transformation = Literal["rotation", "mirroring", "contrast"]
# Digits that differ from their mirror images.
CHIRAL_DIGITS = (2, 3, 4, 5, 7)
# The classes of rotations are this far apart, in degrees.
ROTATION_STEP = 10.0
# The logarithms of the exponents of contrast are evenly spaced up to this one, both ways.
LARGEST_CONTRAST = 1.2


def transformed_images(
    data: LabelledImages, transformation: Transformation, seed: int = 0
) -> LabelledImages:
    """The images with ten classes that a transformation makes.

    Args:
        data: images and their digits.
        transformation: `rotation` turns each image by one of -45, -35 .. 45 degrees, and
            `contrast` raises its brightness to one of ten powers; the class is the angle or the
            power, whatever the digit. `mirroring` mirrors half of the images of 2, 3, 4, 5 and 7;
            each digit is two classes.
        seed: of the class of each image.
    """
    make = lookup(TRANSFORMATIONS, transformation, "transformation")
    if data.images.ndim != 3 or len(data.images) == 0:
        raise InvalidInputError(
            f"transformations need images [image, height, width], got {list(data.images.shape)}"
        )
    return make(data, random_stream(seed, "transformed images", transformation))


def _rotated(data: LabelledImages, generator: torch.Generator) -> LabelledImages:
    classes = torch.randint(NUM_CLASSES, (len(data.images),), generator=generator)
    angles = (classes - (NUM_CLASSES - 1) / 2) * math.radians(ROTATION_STEP)
    cosine, sine, zero = angles.cos(), angles.sin(), torch.zeros(len(angles))
    rows = [torch.stack([cosine, -sine, zero], 1), torch.stack([sine, cosine, zero], 1)]
    images = data.images.unsqueeze(1).to(torch.float32)
    grid = affine_grid(torch.stack(rows, 1), list(images.shape), align_corners=False)
    return LabelledImages(_bytes(grid_sample(images, grid, align_corners=False)[:, 0]), classes)


def _mirrored(data: LabelledImages, generator: torch.Generator) -> LabelledImages:
    numbers = torch.full((NUM_CLASSES,), -1)
    numbers[list(CHIRAL_DIGITS)] = torch.arange(len(CHIRAL_DIGITS))
    kept = numbers[data.labels] >= 0
    images, digits = data.images[kept], numbers[data.labels[kept]]
    if len(images) == 0:
        raise InvalidInputError(f"mirroring needs images of the digits {CHIRAL_DIGITS}, got none")
    is_mirrored = torch.rand(len(images), generator=generator) < 0.5
    images = torch.where(is_mirrored[:, None, None], images.flip(-1), images)
    return LabelledImages(images, digits + len(CHIRAL_DIGITS) * is_mirrored)


def _contrasted(data: LabelledImages, generator: torch.Generator) -> LabelledImages:
    classes = torch.randint(NUM_CLASSES, (len(data.images),), generator=generator)
    powers = torch.linspace(-LARGEST_CONTRAST, LARGEST_CONTRAST, NUM_CLASSES).exp()[classes]
    brightness = data.images.to(torch.float32) / 255
    return LabelledImages(_bytes(255 * brightness ** powers[:, None, None]), classes)


def _bytes(values: Tensor) -> Tensor:
    return values.round().clamp(0, 255).to(torch.uint8)


TRANSFORMATIONS = {"rotation": _rotated, "mirroring": _mirrored, "contrast": _contrasted}
