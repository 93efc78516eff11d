"""Figure 3: the class kernel, its contrast, and nearest-class-mean accuracy."""

import pytest
import torch

from gfucb.core.random import random_stream
from gfucb.paper.fig3.sweep import class_kernel, contrast, nearest_mean_accuracy


def test_one_hot_features_have_contrast_one():
    labels = torch.arange(10).repeat(5)
    one_hot = torch.nn.functional.one_hot(labels, 10).double()
    assert contrast(class_kernel(one_hot, labels)) == pytest.approx(1)
    assert nearest_mean_accuracy(one_hot, labels, one_hot, labels) == 1
    same = torch.ones(50, 4, dtype=torch.float64) / 2
    assert contrast(class_kernel(same, labels)) == pytest.approx(0)
    for seed in range(5):
        noise = torch.randn(50, 10, generator=random_stream(seed, "noise"), dtype=torch.float64)
        features = torch.nn.functional.normalize(one_hot + 0.3 * noise, dim=1)
        assert 0 < contrast(class_kernel(features, labels)) < 1


def test_the_class_kernel_is_the_mean_of_all_inner_products():
    generator = random_stream(0, "features")
    labels = torch.arange(10).repeat(3)
    features = torch.randn(30, 6, generator=generator, dtype=torch.float64)
    pairs = features @ features.T
    expected = pairs[labels == 2][:, labels == 7].mean()
    assert float(class_kernel(features, labels)[2, 7]) == pytest.approx(float(expected))
