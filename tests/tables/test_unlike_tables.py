"""Tables that are not quite what was meant: read as they are meant, or refused with a cure."""

from dataclasses import replace
from decimal import Decimal

import numpy as np
import pandas as pd
import polars
import pytest
from store_log import log

from gfucb.core.errors import DataFileError, GFUCBWarning, InvalidInputError
from gfucb.tables import Number, Schema
from gfucb.tables.labels import Labels

ROLES = {"task": "store", "action": "promotion", "reward": "revenue"}


@pytest.mark.parametrize("frame", [pd.DataFrame, polars.DataFrame])
def test_available_as_a_frame_is_read_by_the_names_of_its_columns(frame):
    schema = Schema.of(log(), **ROLES)
    names = list(schema.actions.labels.names)
    masks = {name: [name == names[0]] for name in reversed(names)}
    offers = schema.offers(log().iloc[:1], available=frame(masks))
    assert offers.available.tolist() == [[True] + [False] * (len(names) - 1)]
    with pytest.raises(InvalidInputError, match="columns of available must be the names of all"):
        schema.offers(log().iloc[:1], available=frame(masks | {"gift": [True]}))
    twice = pd.DataFrame([[True] * (len(names) + 1)], columns=[*names, names[0]])
    with pytest.raises(InvalidInputError, match="columns of available must be the names of all"):
        schema.offers(log().iloc[:1], available=twice)


def test_available_as_a_frame_without_names_is_read_by_position():
    schema = Schema.of(log(), **ROLES)
    mask = [[True] + [False] * (len(schema.actions.labels) - 1)]
    offers = schema.offers(log().iloc[:1], available=pd.DataFrame(mask))
    assert offers.available.tolist() == mask


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (["1\u00a0200", "300"], "numbers that are not written as 1234.5"),
        (["(1,200)", "300"], "numbers that are not written as 1234.5"),
        ([20260131, 20260201], "dates that are written as numbers, such as 20260131"),
        (["20260131", "20260201"], r"pandas.to_datetime\(..., format='%Y%m%d'\)"),
    ],
)
def test_numbers_and_dates_of_other_programs_need_a_word_of_the_user(values, message):
    table = {"arm": ["a", "b"], "x": values}
    with pytest.raises(InvalidInputError, match=message):
        Schema.of(table, action="arm")


def test_numbers_that_are_no_days_are_numbers():
    for values in ([20260131, 20260231], [20260131, 20260131], [20260131.5, 20260201]):
        schema = Schema.of({"arm": ["a", "b"], "x": values}, action="arm")
        assert isinstance(schema.context.kinds["x"], Number)


def test_what_is_missing_has_a_cure(tmp_path):
    with pytest.raises(InvalidInputError, match=r"is the index: call table.reset_index\(\)"):
        Schema.of(log().set_index("store"), **ROLES)
    with pytest.raises(InvalidInputError, match=r"a role is the name of one column, got \['store'"):
        Schema.of(log(), **ROLES | {"task": ["store"]})
    schema = Schema.of(log(), **ROLES)
    with pytest.raises(InvalidInputError, match=r"table.dropna\(subset=\['revenue'\]\)"):
        schema.rewards(log().assign(revenue=None))
    path = tmp_path / "latin.csv"
    path.write_bytes("store\nTromsø\n".encode("latin-1"))
    with pytest.raises(DataFileError, match=r"pass a data frame: pandas.read_csv\(..., enc"):
        Schema.of(path, action="store")


def test_amounts_as_names_of_actions_give_a_warning_whose_cure_works(recwarn):
    table = {"price": [9.99, 12.49, 7.5, 11.0, 8.25], "sold": [1, 0, 1, 0, 1]}
    with pytest.warns(GFUCBWarning, match="'price' holds 5 different numbers.*'amount': 7.5"):
        Schema.of(table, action="price", reward="sold")
    recwarn.clear()
    prices = [{"price": price, "amount": price} for price in table["price"]]
    schema = Schema.of(table, action="price", reward="sold", actions=prices)
    Schema.of({"price": [1, 2, 3, 4, 5], "sold": [1.0] * 5}, action="price", reward="sold")
    assert not recwarn.list
    assert schema.samples(table)[1].flatten().tolist() != [0.0] * 5


def test_available_actions_are_read_without_the_spaces_around_them():
    schema = Schema.of({"city": ["a", "b"], "drink": ["tea", " juice"]}, action="drink")
    offers = schema.offers({"city": ["a", "b"]}, available=["tea, juice".split(","), [" tea"]])
    assert offers.available.tolist() == [[True, True], [False, True]]


def test_names_of_an_earlier_version_keep_their_spaces_when_others_are_added():
    earlier = replace(Schema.of(log(), **ROLES), task=Labels("store", (" Oslo", "Bergen")))
    more = earlier.with_tasks_of({"store": ["Oslo", "Lima "]})
    assert more.task.names == (" Oslo", "Bergen", "Lima")


def test_names_that_join_later_may_be_of_another_type_but_are_a_list():
    schema = Schema.of(log(), **ROLES)
    more = schema.with_tasks([5, 6.5])
    assert more.tasks({"store": ["5", "6.5"]}).tolist() == [schema.num_tasks, schema.num_tasks + 1]
    assert schema.with_tasks({"Rome", "Paris"}).task.names[-2:] == ("Paris", "Rome")
    for names in ("Paris", {"Paris": 1}, 5):
        with pytest.raises(InvalidInputError, match="names for the column 'store' must be a list"):
            schema.with_tasks(names)
    with pytest.raises(InvalidInputError, match="must be at least one, got none"):
        Schema.of(log(), **ROLES, actions=[])
    with pytest.raises(InvalidInputError, match="crossed must be True or False, got 5"):
        Schema.of(log(), **ROLES, crossed=5)


@pytest.mark.parametrize(
    "column",
    [
        np.array,
        list,
        lambda ids: pd.array(ids, dtype="Int64"),
        lambda ids: [Decimal(value) for value in ids],
    ],
)
def test_ids_that_floats_would_round_are_names_of_their_own(column):
    ids = [2**53 + 1, 2**53, -(2**53) - 1, 10**18 + 2, 10**18 + 1, 3]
    table = {"user": column(ids), "offer": ["a", "b"] * 3, "sold": [1, 0] * 3}
    schema = Schema.of(table, task="user", action="offer", reward="sold")
    assert schema.task.names == tuple(sorted(ids))
    for kind in (str, float):  # floats have rounded them before
        names = [kind(value) for value in ids if kind is str or float(value) in ids]
        assert schema.tasks({"user": names}).tolist() == [
            sorted(ids).index(int(name)) for name in names
        ]
    items = Schema.of({"user": column(ids), "sold": [1, 0] * 3}, item="user", reward="sold")
    assert len(items.actions.labels) == len(ids)
