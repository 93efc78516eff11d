"""The evidence from matrices of samples is that from matrices of features."""

import pytest
import torch

from gfucb.core.errors import InvalidInputError
from gfucb.core.random import random_stream
from gfucb.estimation import table_samples
from gfucb.estimation.evidence import log_evidence
from gfucb.estimation.table_samples import TableSamples
from gfucb.estimation.table_search import search_scales
from gfucb.models.table_features import TableColumns, TableScales
from gfucb.models.table_layout import TableLayout

SAMPLES, COLUMNS, ACTIONS, TASKS = 40, 3, 4, 5


def normal(name: str, *shape: int) -> torch.Tensor:
    draws = random_stream(0, "sample evidence", name)
    return torch.randn(*shape, generator=draws, dtype=torch.float64)


def samples(num_actions: int, num_tasks: int, *, has_pooled: bool = False) -> TableSamples:
    context = normal("context", SAMPLES, COLUMNS)
    actions = torch.eye(num_actions, dtype=torch.float64)[torch.arange(SAMPLES) % num_actions]
    layout = TableLayout(COLUMNS + num_actions, COLUMNS, num_actions)
    inputs = torch.cat([context, actions], 1)
    if num_actions == 1:
        layout, inputs = TableLayout(COLUMNS), context
    columns = TableColumns.of(layout, inputs, num_tasks, random_stream(0, "frequencies"))
    columns = TableColumns(**(vars(columns) | {"has_pooled": has_pooled}))
    return TableSamples(
        inputs,
        torch.arange(SAMPLES) * 7 % num_tasks,
        normal("targets", SAMPLES),
        num_tasks,
        columns,
        3.0,
        normal("pooled", SAMPLES) if has_pooled else None,
    )


@pytest.mark.parametrize("num_actions", [1, ACTIONS])
@pytest.mark.parametrize("num_tasks", [1, TASKS])
@pytest.mark.parametrize("has_pooled", [False, True])
def test_both_forms_agree(num_actions, num_tasks, has_pooled):
    data = samples(num_actions, num_tasks, has_pooled=has_pooled)
    assert data.has_few_samples
    evidence = data.evidence()
    for scales in (TableScales(), TableScales(3.0, 0.2, 1e5, 0.4, 0.6, 7.0, 5.0)):
        if num_tasks == 1:
            scales = TableScales(**(vars(scales) | {"mean_ratio": 0.0}))
        deviations = data.columns.scales(scales)
        expected = log_evidence(data.sums(scales.length), deviations, scales.mean_ratio)
        assert evidence(scales) == pytest.approx(expected, rel=1e-8)


def test_the_search_finds_the_same_scales_with_either(monkeypatch):
    data = samples(ACTIONS, TASKS)
    found = search_scales(data, TableScales())
    monkeypatch.setattr(table_samples, "SAMPLE_COST", 0)
    assert not data.has_few_samples
    assert search_scales(data, TableScales()) == found != TableScales()


def test_few_samples_are_all_searched():
    data = samples(ACTIONS, TASKS)
    assert data.subset(random_stream(0, "subset"), 10) is data


def test_inputs_that_are_not_finite_are_refused():
    data = samples(ACTIONS, TASKS)
    data.inputs[0, 0] = torch.nan
    with pytest.raises(InvalidInputError, match="not finite"):
        data.evidence()(TableScales())
