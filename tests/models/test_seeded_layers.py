import math

import pytest
import torch

from gfucb.core.errors import InvalidInputError
from gfucb.core.random import random_stream
from gfucb.models.nn.seeded_layers import SeededDropout, SeededJitter, seed_names, seeded_layers


@pytest.mark.parametrize("make", [lambda: SeededDropout(0.25), SeededJitter])
def test_draws_are_a_function_of_the_seed_and_absent_in_evaluation(make):
    x = torch.rand(12, 9, 9, generator=random_stream(0, "x"))
    layer, other = make(), make()
    layer.seed.fill_(7)
    other.seed.fill_(8)
    assert torch.equal(layer(x), layer(x))
    assert not torch.equal(layer(x), other(x))
    assert torch.equal(layer.eval()(x), x)


def test_dropout_drops_its_share_preserves_the_mean_and_is_absent_in_evaluation():
    layer, x = SeededDropout(0.25), torch.ones(1000, 1003)
    dropped = layer(x)
    share = (dropped == 0).double().mean()
    assert abs(share - 0.25) < 5 * math.sqrt(0.25 * 0.75 / x.numel())
    assert len(dropped.unique()) == 2
    assert dropped.max().item() == pytest.approx(4 / 3)
    layer.eval()
    assert torch.equal(layer(x), x)


@pytest.mark.parametrize("p", [1 / 256, 0.3, 255 / 256])
def test_a_value_is_dropped_if_its_byte_is_below_the_threshold(p):
    layer, x = SeededDropout(p), torch.ones(300, 8)
    draws = layer.words(300).view(torch.uint8).view(300, 8)
    scales = (draws >= layer.threshold).to(x.dtype) * (256 / (256 - layer.threshold))
    assert torch.equal(layer(x), scales)


def test_a_jitter_of_size_zero_changes_nothing():
    x = torch.rand(5, 3, 7, 11, generator=random_stream(0, "x"), dtype=torch.float64)
    torch.testing.assert_close(SeededJitter(0.0, 0.0, 0.0)(x), x)


def test_each_image_is_shifted_by_its_own_draw_of_at_most_the_given_share():
    images = torch.zeros(200, 41, 41, dtype=torch.float64)
    images[:, 20, 20] = 1.0
    moved = SeededJitter(shift=0.1, turn=0.0, resize=0.0)(images)
    places = torch.arange(41, dtype=torch.float64)
    mass = moved.sum((1, 2))
    torch.testing.assert_close(mass, torch.ones_like(mass))
    shifts = (moved.sum(2) @ places) - 20
    assert shifts.abs().max() <= 4.1
    assert shifts.max() > 3.5 and shifts.min() < -3.5
    assert len(shifts.unique()) > 150


def test_a_rotation_preserves_distances_from_the_center():
    images = torch.zeros(100, 41, 41, dtype=torch.float64)
    images[:, 20, 36] = 1.0
    turned = SeededJitter(shift=0.0, turn=0.2, resize=0.0)(images)
    places = torch.arange(41, dtype=torch.float64) - 20
    mass = turned.sum((1, 2))
    down, right = (turned.sum(2) @ places) / mass, (turned.sum(1) @ places) / mass
    assert (down.square() + right.square()).sqrt().sub(16).abs().max() < 0.6
    angles = torch.atan2(down, right).abs()
    assert 0.15 < angles.max() < 0.22


def test_seeded_layers_are_found_in_order():
    module = torch.nn.Sequential(SeededJitter(), torch.nn.ReLU(), SeededDropout(0.5))
    assert [type(layer) for layer in seeded_layers(module)] == [SeededJitter, SeededDropout]
    assert seed_names(module) == ["0.seed", "2.seed"]
    with pytest.raises(InvalidInputError, match="dropout probability"):
        SeededDropout(1.0)
