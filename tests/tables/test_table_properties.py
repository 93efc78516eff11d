"""Properties of the encoding of arbitrary mixed tables."""

import datetime

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gfucb.core.errors import InvalidInputError
from gfucb.tables import Schema

VALUES = [
    st.floats(width=64),
    st.floats(-1e6, 1e6),
    st.integers(-(10**20), 10**20),
    st.booleans(),
    st.sampled_from(["a", "b", "c", "", "1.5", "2026-01-05"]),
    st.text(max_size=3),
    st.datetimes(),
    st.dates(datetime.date(2020, 1, 1), datetime.date(2030, 1, 1)),
    st.lists(st.floats(-5, 5), min_size=2, max_size=2),
    st.binary(max_size=1),
]
NAMES = ["age", "b", "city", "zip"]


@st.composite
def tables(draw):
    """A dict of columns, each of one kind with gaps, and rarely of several kinds."""
    rows = draw(st.integers(1, 6))
    table = {}
    for name in NAMES:
        value = draw(st.sampled_from(VALUES)) | st.none()
        if draw(st.integers(0, 9)) == 0:
            value = st.one_of(VALUES)
        table[name] = draw(st.lists(value, min_size=rows, max_size=rows))
    return table


def schema_of(table) -> Schema | None:
    actions = [{"a": "x", "cost": 1.0}, {"a": "y", "cost": 2.0}]
    try:
        return Schema.of(table, action="a", actions=actions)
    except InvalidInputError:
        return None


@pytest.mark.slow
@settings(max_examples=60, deadline=None, derandomize=True)
@given(tables(), tables(), st.randoms(use_true_random=False))
def test_mixed_tables_are_encoded_or_refused_with_a_message(table, later, random):
    schema = schema_of(table)
    if schema is None:
        return
    encoded = schema.offers(table).candidates
    assert encoded.isfinite().all() and encoded.dtype == torch.float64
    assert encoded.shape[2] >= len(schema.feature_names) + 1

    restored = Schema.from_json(schema.to_json())
    assert restored == schema
    assert torch.equal(restored.offers(table).candidates, encoded)

    names = random.sample(NAMES, len(NAMES))
    order = random.sample(range(len(encoded)), len(encoded))
    shuffled = {name: [table[name][row] for row in order] for name in names}
    assert torch.equal(schema.offers(shuffled).candidates, encoded[order])
    assert schema_of(shuffled) == schema

    try:
        found = schema.offers(later).candidates
    except InvalidInputError as error:
        assert "column" in str(error)
    else:
        assert found.isfinite().all() and found.shape[1:] == encoded.shape[1:]


@settings(max_examples=20, deadline=None, derandomize=True)
@given(tables())
def test_rows_as_dicts_have_the_encoding_of_columns(table):
    schema = schema_of(table)
    if schema is not None:
        rows = [
            {name: values[row] for name, values in table.items() if values[row] is not None}
            for row in range(len(table["age"]))
        ]
        if all(set().union(*rows) >= {name} for name in NAMES):
            objects = {n: np.array([*v, None], dtype=object)[:-1] for n, v in table.items()}
            expected = schema.offers(table).candidates
            assert torch.equal(schema.offers(rows).candidates, expected)
            assert torch.equal(schema.offers(objects).candidates, expected)
