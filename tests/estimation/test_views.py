"""Views of images and tables: in range, the identity at strength zero, seeded."""

import pytest
import torch

from gfucb.core.errors import InvalidInputError
from gfucb.core.random import random_stream
from gfucb.estimation import ImageViews, TableViews
from gfucb.estimation.views import default_views


def images(*shape: int) -> torch.Tensor:
    return torch.rand(*shape, generator=random_stream(0, "views"))


@pytest.mark.parametrize("shape", [(6, 9, 8), (6, 3, 8, 12)])
@pytest.mark.parametrize("shift", [0.0, -3.0, 50.0])
def test_views_of_images_stay_in_the_range_of_each_image(shape, shift):
    inputs = images(*shape) + shift
    views = ImageViews(2.0)(inputs, random_stream(0, "v"))
    low, high = (f(inputs.flatten(1), 1).values for f in (torch.min, torch.max))
    assert views.shape == inputs.shape
    assert bool((views.flatten(1).min(1).values >= low - 1e-5 * abs(shift)).all())
    assert bool((views.flatten(1).max(1).values <= high + 1e-5 * abs(shift)).all())
    assert not torch.allclose(views, inputs, atol=1e-2)


def test_a_strength_of_zero_is_the_identity():
    inputs = images(5, 8, 8)
    assert torch.equal(ImageViews(0.0)(inputs, random_stream(0, "v")), inputs)
    weak = ImageViews(1e-6)(inputs, random_stream(0, "v"))
    assert torch.allclose(weak, inputs, atol=1e-4)
    rows = images(5, 7)
    assert torch.equal(TableViews(0.0)(rows, random_stream(0, "v")), rows)


def test_a_constant_image_stays_constant():
    inputs = torch.full((3, 8, 8), 0.7)
    assert torch.allclose(ImageViews()(inputs, random_stream(0, "v")), inputs)


def test_each_transformation_does_what_it_says():
    inputs = torch.zeros(400, 21, 21)
    inputs[:, 10, 14] = 1.0  # a point to the right of the middle
    none = {name: 0.0 for name in ("turn", "resize", "shear", "shift", "elastic", "contrast")}
    seeds = torch.randint(2**62, (400,), generator=random_stream(0, "seeds"))
    turned = ImageViews(**none | {"turn": 0.5}).seeded(inputs, seeds)
    rows, columns = centers_of_mass(turned)
    angles = torch.atan2(rows - 10, columns - 10)
    assert float(angles.abs().max()) < 0.6
    assert float(angles.std()) == pytest.approx(0.5 / 3**0.5, rel=0.15)
    shifted = ImageViews(**none | {"shift": 0.1}).seeded(inputs, seeds)
    rows, columns = centers_of_mass(shifted)
    assert float((rows - 10).abs().max()) < 0.1 * 21 + 0.5
    assert float(rows.std()) == pytest.approx(2.1 / 3**0.5, rel=0.15)
    grey = ImageViews(**none | {"contrast": 0.5}).seeded(images(400, 8, 8), seeds)
    assert not torch.allclose(grey, images(400, 8, 8), atol=0.05)


def centers_of_mass(images: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    weights = images / images.sum((1, 2), keepdim=True)
    numbers = torch.arange(images.shape[1], dtype=images.dtype)
    return (weights.sum(2) * numbers).sum(1), (weights.sum(1) * numbers).sum(1)


def test_a_view_depends_on_the_image_and_its_seed_alone():
    inputs = images(6, 8, 8)
    seeds = torch.arange(6) * 1000
    views = ImageViews().seeded(inputs, seeds)
    order = torch.tensor([3, 0, 5])
    assert torch.allclose(ImageViews().seeded(inputs[order], seeds[order]), views[order])
    assert not torch.equal(ImageViews().seeded(inputs, seeds + 1), views)


def test_corrupted_columns_have_values_of_other_rows():
    inputs = torch.arange(200.0)[:, None] + 1000 * torch.arange(50.0)
    views = TableViews(0.4)(inputs, random_stream(0, "v"))
    assert float((views != inputs).double().mean()) == pytest.approx(0.4, abs=0.02)
    assert torch.equal(views // 1000, inputs // 1000)  # from the same column
    masked = TableViews(0.0, masked=0.25)(inputs, random_stream(0, "v"))
    is_mean = masked == inputs.mean(0)
    assert float(is_mean.double().mean()) == pytest.approx(0.25, abs=0.02)
    assert torch.equal(masked[~is_mean], inputs[~is_mean])


def test_default_views_depend_on_the_inputs():
    assert isinstance(default_views(torch.zeros(1, 8, 8)), ImageViews)
    assert isinstance(default_views(torch.zeros(1, 3, 9, 9, dtype=torch.uint8)), ImageViews)
    assert isinstance(default_views(torch.zeros(1, 5)), TableViews)
    assert default_views(torch.zeros(1, dtype=torch.int64)) is None
    assert default_views(torch.zeros(1, 8, 8, dtype=torch.int64)) is None
    assert default_views(torch.zeros(1, 1)) is None


@pytest.mark.parametrize(
    "make",
    [
        lambda: ImageViews(-1.0),
        lambda: ImageViews(float("nan")),
        lambda: ImageViews("strong"),
        lambda: ImageViews(turn=float("inf")),
        lambda: TableViews(1.5),
        lambda: TableViews(0.1, masked=-0.1),
        lambda: ImageViews()(torch.zeros(4, 5), random_stream(0, "v")),
    ],
)
def test_wrong_arguments_are_refused(make):
    with pytest.raises(InvalidInputError):
        make()
