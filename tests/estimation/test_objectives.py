"""Objectives of fits, where a simpler rule would give another fit."""

import torch
from torch import nn

from gfucb import FiniteClass, LinearClass
from gfucb.core.random import global_randomness_from, random_stream
from gfucb.estimation import AdamFit, Alternating, Exhaustive
from gfucb.estimation.profile import best_on, penalised_error, squared_error
from gfucb.models import (
    HeadPenalty,
    MultiheadFunction,
    MultitaskDataset,
    NeuralRepresentation,
)

PENALTY = HeadPenalty(1.0)


def dataset(inputs: torch.Tensor, targets: torch.Tensor) -> MultitaskDataset:
    data = MultitaskDataset(1, inputs.shape[1:], torch.float64)
    data.append(torch.zeros(len(inputs), dtype=torch.int64), inputs, targets)
    return data


def test_an_exhaustive_fit_counts_the_ridge():
    """The first member has the smaller error, but needs a much larger head for it."""
    draws = random_stream(0, "objective")
    target = torch.randn(20, generator=draws, dtype=torch.float64)
    noisy = target + 0.5 * torch.randn(20, generator=draws, dtype=torch.float64)
    data = dataset(torch.stack([0.3 * target, 100 * noisy], 1), target)
    known = FiniteClass([lambda x: x[:, :1].double(), lambda x: x[:, 1:].double()])
    start = MultiheadFunction(known.members[0], torch.zeros(1, 1, dtype=torch.float64))
    fits = [best_on(member, data, start, PENALTY) for member in known.members]
    assert squared_error(fits[0], data) < squared_error(fits[1], data)
    assert penalised_error(fits[0], data, PENALTY) > penalised_error(fits[1], data, PENALTY)
    fitted = Exhaustive(known)(data, start, PENALTY, draws)
    assert fitted.representation is known.members[1]


def test_an_alternating_fit_leaves_a_start_that_sees_nothing():
    """The initial matrix reads two coordinates that are always zero, so its heads are zero."""
    draws = random_stream(0, "objective")
    inputs = torch.zeros(30, 4, dtype=torch.float64)
    inputs[:, 2:] = torch.randn(30, 2, generator=draws, dtype=torch.float64)
    data = dataset(inputs, inputs[:, 2] - 2 * inputs[:, 3])
    initial = LinearClass(4, 2).initial(inputs, draws, "cpu")
    start = MultiheadFunction(initial, torch.zeros(1, 2, dtype=torch.float64))
    penalty = HeadPenalty(1e-6)
    fitted = Alternating()(data, start, penalty, draws)
    assert squared_error(fitted, data) < 1e-6 < squared_error(start, data)


def test_adam_stops_where_the_mean_error_of_an_epoch_is_small():
    """Mean 0.09, sum 4.5: a limit of 0.1 is for the mean and stops after the first epoch."""
    draws = random_stream(0, "objective")
    data = dataset(torch.randn(50, 3, generator=draws), torch.full((50,), 0.3).double())
    with global_randomness_from(draws):
        network = NeuralRepresentation(nn.Linear(3, 2))
    start = MultiheadFunction(network, torch.zeros(1, 2, dtype=torch.float64))

    def trained(**options: float) -> torch.Tensor:
        fitted = AdamFit(**options)(data, start, PENALTY, random_stream(0, "fit"))
        return fitted.representation.module.weight

    first = trained(epochs=1)
    assert torch.equal(trained(epochs=9, stop_below=0.1), first)
    assert not torch.equal(trained(epochs=9, stop_below=0.01), first)
