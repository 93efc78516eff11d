"""Images whose class is a transformation."""

import pytest
import torch

from gfucb.core.errors import InvalidInputError, UnknownNameError
from gfucb.environments import ImageBandit, LabelledImages, load_digits, transformed_images
from gfucb.environments.transformed_images import CHIRAL_DIGITS

DIGITS = load_digits()


@pytest.mark.parametrize("kind", ["rotation", "mirroring", "contrast"])
def test_all_ten_classes_occur_and_follow_from_the_seed(kind):
    images = transformed_images(DIGITS, kind)
    assert images.images.dtype == torch.uint8 and images.images.shape[1:] == (8, 8)
    assert len(images.images) == len(images.labels)
    assert torch.bincount(images.labels).min() > 50 and images.labels.max() == 9
    again, other = transformed_images(DIGITS, kind), transformed_images(DIGITS, kind, seed=1)
    assert torch.equal(images.images, again.images)
    assert not torch.equal(images.labels, other.labels)
    ImageBandit(images, num_tasks=2, digits="distinct").round(1)


def test_a_rotation_moves_a_point_by_its_angle():
    point = torch.zeros(500, 21, 21, dtype=torch.uint8)
    point[:, 10, 16] = 255
    turned = transformed_images(LabelledImages(point, torch.zeros(500).long()), "rotation")
    weights = turned.images / turned.images.sum((1, 2), keepdim=True)
    numbers = torch.arange(21.0) - 10
    angles = torch.atan2(
        (weights.sum(2) * numbers).sum(1), (weights.sum(1) * numbers).sum(1)
    ).rad2deg()
    expected = (turned.labels - 4.5) * 10
    assert float((angles.abs() - expected.abs()).abs().max()) < 3
    assert torch.corrcoef(torch.stack([angles, expected]))[0, 1].abs() > 0.99


def test_mirror_images_are_those_of_the_same_digit():
    images = transformed_images(DIGITS, "mirroring")
    own = torch.isin(DIGITS.labels, torch.tensor(CHIRAL_DIGITS))
    originals = DIGITS.images[own]
    is_mirrored = images.labels >= 5
    assert torch.equal(images.images[is_mirrored].flip(-1), originals[is_mirrored])
    assert torch.equal(images.images[~is_mirrored], originals[~is_mirrored])
    assert torch.equal(torch.tensor(CHIRAL_DIGITS)[images.labels % 5], DIGITS.labels[own])


def test_contrast_keeps_black_and_white():
    images = transformed_images(DIGITS, "contrast")
    extremes = (DIGITS.images == 0) | (DIGITS.images == 255)
    assert torch.equal(images.images[extremes], DIGITS.images[extremes])
    brightness = [images.images[images.labels == c].float().mean() for c in range(10)]
    assert brightness == sorted(brightness, reverse=True)


def test_wrong_arguments_are_refused():
    with pytest.raises(UnknownNameError, match="transformation"):
        transformed_images(DIGITS, "translation")
    empty = LabelledImages(DIGITS.images[:0], DIGITS.labels[:0])
    with pytest.raises(InvalidInputError, match="images"):
        transformed_images(empty, "rotation")
    zeros = LabelledImages(DIGITS.images[:3], torch.zeros(3).long())
    with pytest.raises(InvalidInputError, match="digits"):
        transformed_images(zeros, "mirroring")
