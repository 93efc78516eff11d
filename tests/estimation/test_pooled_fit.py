"""The function of all tasks: when it exists, what it predicts, and that it does not see its own."""

from dataclasses import replace

import pytest
import torch

from gfucb.core.features import features_of
from gfucb.core.random import random_stream
from gfucb.estimation import pooled_fit
from gfucb.estimation.pooled_fit import (
    FREQUENCY_RATIO,
    MOST_FREQUENCIES,
    SAMPLES_PER_FREQUENCY,
    PooledFit,
    fit_pooled,
)
from gfucb.estimation.table_fit import fit_table
from gfucb.estimation.table_samples import TableSamples
from gfucb.models.table_features import TableColumns, TableFeatures, TableScales
from gfucb.models.table_layout import TableLayout

SAMPLES, CONTEXT, ARMS, TASKS = 1500, 2, 3, 20
OF_HEADS = 8  # frequencies
FEWEST_SAMPLES = FREQUENCY_RATIO * OF_HEADS * SAMPLES_PER_FREQUENCY * ARMS
LAYOUT = TableLayout(CONTEXT + ARMS, CONTEXT, ARMS)


def normal(name: str, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=random_stream(0, name), dtype=torch.float64)


FREQUENCIES = normal("frequencies", MOST_FREQUENCIES, CONTEXT)
OF_TASK = torch.randint(TASKS, (SAMPLES,), generator=random_stream(0, "tasks"))
OF_ARM = torch.randint(ARMS, (SAMPLES,), generator=random_stream(0, "arms"))
INPUTS = torch.cat([normal("context", SAMPLES, CONTEXT), torch.eye(ARMS)[OF_ARM].double()], 1)


def truth(inputs: torch.Tensor) -> torch.Tensor:
    angles = 3 * inputs[:, :1] + inputs[:, CONTEXT:].argmax(1)[:, None]
    return torch.sin(angles).squeeze(1)


SHARED = truth(INPUTS) + 0.1 * normal("noise", SAMPLES)


def samples(targets: torch.Tensor, num_tasks: int = TASKS, layout: TableLayout = LAYOUT):
    columns = TableColumns.of(layout, INPUTS, num_tasks, random_stream(0, "small"))
    columns = replace(columns, frequencies=columns.frequencies[:OF_HEADS])
    tasks = OF_TASK % num_tasks
    return TableSamples(INPUTS, tasks, targets, num_tasks, columns, 1.0)


def fit(found: TableSamples, before=None) -> PooledFit | None:
    return fit_pooled(found, before, FREQUENCIES, random_stream(0, "fit"))


@pytest.mark.parametrize("layout", [LAYOUT, TableLayout(CONTEXT + ARMS)], ids=["arms", "columns"])
def test_a_function_that_all_tasks_share_is_found(layout):
    data = samples(SHARED, layout=layout)
    frequencies = normal("frequencies", MOST_FREQUENCIES, layout.num_context)
    found = fit_pooled(data, None, frequencies, random_stream(0, "fit"))
    spread = float(SHARED.square().mean().sqrt())
    predicted = spread * found.function.values(data.columns, INPUTS)
    assert float((predicted - truth(INPUTS)).square().mean()) < 0.02
    assert float((spread * found.values - truth(INPUTS)).square().mean()) < 0.04


def test_values_of_samples_do_not_depend_on_their_task():
    data = samples(SHARED)
    changed = torch.where(OF_TASK == 3, SHARED.flip(0), SHARED)
    # The same scale of targets and the same scales of features: only the targets of a task differ.
    changed = changed * (SHARED.square().mean() / changed.square().mean()).sqrt()
    one, other = fit(data), fit(samples(changed))
    own = OF_TASK == 3
    ratio = SHARED[~own][0] / changed[~own][0]
    if one.function.scales == other.function.scales:
        torch.testing.assert_close(one.values[own], ratio * other.values[own])
    assert not torch.allclose(one.values[~own], ratio * other.values[~own])


def test_tasks_without_anything_in_common_have_none():
    signs = torch.where(torch.arange(TASKS) % 2 == 0, 1.0, -1.0).double()
    assert fit(samples(signs[OF_TASK] * SHARED)) is None
    assert fit(samples(normal("only noise", SAMPLES))) is None


@pytest.mark.parametrize(
    "data",
    [
        samples(SHARED, num_tasks=1),
        samples(torch.zeros(SAMPLES).double()),
        replace(
            samples(SHARED),
            inputs=INPUTS[: FEWEST_SAMPLES - 1],
            tasks=OF_TASK[: FEWEST_SAMPLES - 1],
            targets=SHARED[: FEWEST_SAMPLES - 1],
        ),
        replace(samples(SHARED), tasks=torch.zeros_like(OF_TASK)),
    ],
    ids=["one task", "equal rewards", "few samples", "data of one task"],
)
def test_none_where_nothing_can_be_learned(data):
    assert fit(data) is None


def test_frequencies_grow_with_the_samples(monkeypatch):
    expected = SAMPLES // ARMS // SAMPLES_PER_FREQUENCY
    found = fit(samples(SHARED)).function
    assert torch.equal(found.frequencies, FREQUENCIES[:expected])
    monkeypatch.setattr(pooled_fit, "SAMPLES_PER_FREQUENCY", 0.1)
    monkeypatch.setattr(pooled_fit, "MOST_FREQUENCIES", 60)
    assert len(fit(samples(SHARED)).function.frequencies) == 60


def test_a_task_without_data_predicts_with_it():
    columns = TableColumns.of(LAYOUT, INPUTS, TASKS + 1, random_stream(0, "small"))
    few = replace(columns, frequencies=columns.frequencies[:1])
    fits = [
        fit_table(
            INPUTS,
            OF_TASK,
            SHARED,
            num_tasks=TASKS + 1,
            start=TableFeatures(few, TableScales()),
            reward_range=None,
            generator=random_stream(0, "fit"),
            pooled_frequencies=frequencies,
        )
        for frequencies in (FREQUENCIES, FREQUENCIES[:1])
    ]
    errors = []
    for found in fits:
        features = features_of(found.features, INPUTS)
        predicted = found.offset + features @ found.posterior.heads[TASKS]
        errors.append(float((predicted - truth(INPUTS)).square().mean()))
    assert fits[0].features.pooled is not None
    assert errors[0] < 0.03 and errors[0] < 0.3 * errors[1]
