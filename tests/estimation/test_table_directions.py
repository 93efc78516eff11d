"""The rewards choose how much directions count in which columns vary together."""

from dataclasses import replace

import pytest
import torch

from gfucb.core.random import random_stream
from gfucb.core.shards import ONE_SHARD
from gfucb.estimation.table_directions import choose_directions
from gfucb.estimation.table_samples import TableSamples
from gfucb.models.table_features import TableColumns, TableScales
from gfucb.models.table_layout import TableLayout

COLUMNS, TASKS = 16, 4


def samples_of(rows: int, depends_on: str) -> TableSamples:
    """Columns that are one factor each six times, with noise, and rewards linear in them."""
    generator = random_stream(3, depends_on)

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    factors, own = normal(rows, 2), normal(rows, COLUMNS)
    inputs = factors.repeat_interleave(COLUMNS // 2, dim=1) + 0.3 * own
    explained = {"factors": factors @ normal(2), "rest": own @ normal(COLUMNS) / COLUMNS**0.5}
    targets = explained[depends_on] + 0.1 * normal(rows)
    columns = TableColumns.of(TableLayout(COLUMNS), inputs, TASKS, generator)
    tasks = torch.arange(rows) % TASKS
    return TableSamples.of(
        inputs, tasks, targets, TASKS, columns, 1.0, ONE_SHARD, with_keys_from=10**6
    )


def chosen(samples: TableSamples) -> TableColumns:
    return choose_directions(samples, TableScales(), random_stream(0, "search")).columns


def test_rewards_of_common_factors_select_the_largest_power():
    samples = samples_of(400, "factors")
    expected = samples.columns.directions(samples.inputs).projection(1.0)
    torch.testing.assert_close(chosen(samples).projection, expected)


def test_rewards_of_what_columns_do_not_share_select_the_columns_as_they_are():
    assert chosen(samples_of(120, "rest")).projection is None


def test_the_first_samples_have_the_usual_power():
    samples = samples_of(3, "rest")
    expected = samples.columns.directions(samples.inputs).projection(0.5)
    torch.testing.assert_close(chosen(samples).projection, expected)


@pytest.mark.parametrize("depends_on", ["factors", "rest"])
def test_the_choice_predicts_at_least_as_well(depends_on):
    samples = samples_of(60, depends_on)
    scores = [
        replace(samples, columns=columns).evidence()(TableScales())
        for columns in (samples.columns, chosen(samples))
    ]
    assert scores[1] >= scores[0]
