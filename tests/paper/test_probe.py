"""The probe: accuracy of the linear layer, and the number of samples it needs."""

import pandas as pd
import pytest
import torch

from gfucb.core.random import random_stream
from gfucb.paper.logged_runs import ImageSource
from gfucb.paper.probe.analysis import samples_needed
from gfucb.paper.probe.sweep import probe_accuracy

DIGITS = ImageSource(digits=True)


def test_the_probe_is_exact_on_one_hot_features_and_near_chance_on_noise():
    labels = torch.arange(10).repeat(20)
    true = torch.nn.functional.one_hot(labels, 10).double()
    assert probe_accuracy(true[:100], labels[:100], true, labels) == 1
    noise = torch.randn(200, 10, generator=random_stream(0, "noise"), dtype=torch.float64)
    assert probe_accuracy(noise[:100], labels[:100], noise[100:], labels[100:]) < 0.35


def test_the_probe_equals_the_logistic_regression_of_scikit_learn():
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    shown, test = DIGITS.training(), DIGITS.test()
    pixels = [data.images.flatten(1).double() / 255 for data in (shown, test)]
    mine = probe_accuracy(pixels[0][:300], shown.labels[:300], pixels[1], test.labels)
    scaler = StandardScaler().fit(pixels[0][:300].numpy())
    model = LogisticRegression(max_iter=500, tol=1e-8)
    model.fit(scaler.transform(pixels[0][:300].numpy()), shown.labels[:300].numpy())
    theirs = model.score(scaler.transform(pixels[1].numpy()), test.labels.numpy())
    assert mine == pytest.approx(theirs, abs=0.005)


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ([0.8, 0.9, 0.94], "more than 4000"),
        ([0.96, 0.97, 0.98], "at most 1000"),
        ([0.9, 0.94, 0.96], "about 2828"),
    ],
)
def test_samples_needed_are_interpolated_on_the_curve(values, told):
    assert samples_needed(pd.Series(values, index=[1000, 2000, 4000])) == told
