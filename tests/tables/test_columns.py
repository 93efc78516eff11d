"""Columns of every kind, from tables of every type."""

import datetime
import decimal

import numpy as np
import pandas as pd
import polars
import pytest
import torch
from scipy.sparse import csr_array

from gfucb.core.errors import InvalidInputError
from gfucb.tables import Boolean, Category, Columns, Date, Embedding, Hashed, Number, Vector


def encoded(values, kind=None, later=None) -> dict[str, list[float]]:
    """The features of a column of values, by name; encoded are `later` values if there are any."""
    columns = Columns.of({"x": values}, kinds=None if kind is None else {"x": kind})
    matrix = columns.encode({"x": values if later is None else later})
    return dict(zip(columns.feature_names, matrix.T.tolist(), strict=True))


def test_numbers_are_standardised_and_missing_ones_marked():
    assert encoded([1, 3]) == {"x": [-1.0, 1.0]}
    assert encoded([1.0, None, 3.0]) == {"x": [-1.0, 0.0, 1.0], "x missing": [0.0, 1.0, 0.0]}
    assert encoded([5, 5]) == {"x": [0.0, 0.0]}
    assert encoded([1, 3], Number(center=0, scale=2)) == {"x": [0.5, 1.5]}
    assert encoded([1, 3], later=[2.0, float("nan")]) == {"x": [0.0, 0.0]}
    assert encoded([1, 3], Number(missing=True), [None, 3])["x missing"] == [1.0, 0.0]


def test_numbers_of_many_types_are_numbers():
    for values in (
        [True, 2, 3.0],
        [decimal.Decimal("1"), 3],
        [np.float32(1), np.int64(3)],
        ["1", " 3.0"],
        [torch.tensor(1.0), torch.tensor(3)],
        [datetime.timedelta(seconds=1), datetime.timedelta(seconds=3)],
        np.array([1, 3], dtype="timedelta64[s]"),
        [np.timedelta64(1, "s"), np.timedelta64(3, "s")],
    ):
        assert set(encoded(values)) == {"x"}, values


def test_text_is_read_as_in_a_file_of_comma_separated_values():
    assert encoded(["1", "", "3"]) == {"x": [-1.0, 0.0, 1.0], "x missing": [0.0, 1.0, 0.0]}
    assert encoded(["true", "False"]) == {"x": [1.0, 0.0]}
    assert "x Mon" in encoded(["2026-01-05", "2026-01-06"])
    assert "x=007" in encoded(["007", "012"])  # a code
    assert "x=1.2.3" in encoded(["1.2.3", "10-20"])  # a version, a range


def test_categories_have_a_feature_for_unknown_values():
    assert encoded(["b", "a"], later=["a", "c", None]) == {
        "x=a": [1.0, 0.0, 0.0],
        "x=b": [0.0, 0.0, 0.0],
        "x unknown": [0.0, 1.0, 0.0],
    }
    assert encoded(["a", None])["x missing"] == [0.0, 1.0]
    # Numbers as categories: the type may change from table to table.
    assert encoded([1, 2], Category(), ["1", "2"])["x=1"] == [1.0, 0.0]
    assert encoded([1, 2], Category(), [1.0, None])["x=1"] == [1.0, 0.0]


def test_values_are_read_without_the_spaces_around_them():
    found = encoded(["rain", " rain", "sun\u00a0", " "], later=["rain ", "sun", "  ", "fog"])
    assert found == {
        "x=rain": [1.0, 0.0, 0.0, 0.0],
        "x=sun": [0.0, 1.0, 0.0, 0.0],
        "x unknown": [0.0, 0.0, 0.0, 1.0],
        "x missing": [0.0, 0.0, 1.0, 0.0],
    }
    # Schemas of tables that were read with their spaces.
    assert encoded(["rain"], Category([" rain", "sun"]))["x= rain"] == [1.0]
    assert encoded(["rain", "sun"], Category([" rain", "rain", "sun"]))["x=rain"] == [1.0, 0.0]
    assert encoded(["u"], Embedding({"u ": [1]}))["x 0"] == [1.0]
    with pytest.raises(InvalidInputError, match="one vector for 'u', got two"):
        Embedding({"u ": [1], "u": [2]})


def test_of_many_categories_the_frequent_ones_are_known():
    values = [f"rare {i}" for i in range(60)] + ["often"] * 100
    found = encoded(values)
    assert sum(found["x=often"]) == 100 and sum(found["x unknown"]) == 11


def test_booleans_are_zero_and_one():
    assert encoded([True, None, False]) == {"x": [1.0, 0.0, 0.0], "x missing": [0.0, 1.0, 0.0]}
    assert encoded([True, False], later=[0, 1.0]) == {"x": [0.0, 1.0]}
    assert encoded([True, False], later=["FALSE", "true"]) == {"x": [0.0, 1.0]}


def test_dates_become_those_parts_that_vary():
    days = [datetime.date(2026, 1, 5), datetime.date(2026, 1, 11)]
    found = encoded(days)
    assert found["x Mon"] == [1.0, 0.0] and found["x Sun"] == [0.0, 1.0] and len(found) == 7
    found = encoded(["2026-01-05", "2026-07-06"])  # both are Mondays
    assert set(found) == {"x season sin", "x season cos"}
    times = [datetime.datetime(2026, 1, 5, 6), datetime.datetime(2026, 1, 5, 18)]
    found = encoded(times)
    np.testing.assert_allclose(found["x hour sin"], [1, -1])
    assert encoded(days, Date(parts=["elapsed"])) == {"x elapsed": [-1.0, 1.0]}


def test_times_with_a_zone_keep_their_local_hour():
    times = pd.date_range("2026-01-05 06:00", periods=2, freq="12h", tz="Asia/Tokyo")
    found = encoded(pd.DataFrame({"x": times})["x"].tolist())
    np.testing.assert_allclose(found["x hour sin"], [1, -1])


def test_hashed_texts_and_embeddings_are_vectors():
    found = np.array(list(encoded(["u", "v", "u"], Hashed(64)).values()))
    assert found.shape == (64, 3) and (found[:, 0] == found[:, 2]).all()
    assert found[:, 0] @ found[:, 0] == pytest.approx(1)
    assert abs(found[:, 0] @ found[:, 1]) < 0.5
    kind = Embedding({"u": [1, 2], "v": [3, 4]})
    assert encoded(["u", "w", None], kind) == {
        "x 0": [1.0, 0.0, 0.0],
        "x 1": [2.0, 0.0, 0.0],
        "x unknown": [0.0, 1.0, 0.0],
        "x missing": [0.0, 0.0, 1.0],
    }
    assert encoded([[1, 2], None, (3, 4)])["x 1"] == [2.0, 0.0, 4.0]
    assert encoded(np.eye(3)[:, :2])["x 1"] == [0.0, 1.0, 0.0]


MIXED = {
    "age": [31.0, None, 20.0],
    "city": ["Rome", "Oslo", None],
    "new": [True, False, True],
    "day": [datetime.datetime(2026, 1, 5), None, datetime.datetime(2026, 1, 6)],
}


def tables_of_many_types():
    frame = pd.DataFrame(MIXED)
    rows = [dict(zip(MIXED, row, strict=True)) for row in zip(*MIXED.values(), strict=True)]
    nullable = frame.astype({"age": "Int64", "new": "boolean", "city": "category"})
    arrays = {name: np.array(values, dtype=object) for name, values in MIXED.items()}
    return [MIXED, frame, rows, nullable, arrays, {n: frame[n] for n in frame}]


def test_tables_of_every_type_have_one_encoding():
    columns = Columns.of(MIXED)
    expected = columns.encode(MIXED)
    for table in tables_of_many_types():
        assert torch.equal(columns.encode(table), expected), type(table)
        assert Columns.of(table) == columns, type(table)


def test_numbers_that_a_frame_calls_categories_are_categories():
    frame = pd.DataFrame({"size": pd.Categorical([3, 1, None, 3]), "new": [True, False] * 2})
    columns = Columns.of(frame.astype({"new": "category"}))
    assert columns.kinds == {
        "size": Category(["1", "3"], missing=True),
        "new": Boolean(missing=False),
    }
    expected = columns.encode(frame)
    for table in (
        frame.astype({"size": float}),
        {"size": ["3", "1", None, "3"], "new": [1, 0] * 2},
    ):
        assert torch.equal(columns.encode(table), expected)
    codes = polars.DataFrame({"size": ["3", "1"]}, schema={"size": polars.Enum(["1", "3"])})
    assert Columns.of(codes).kinds == {"size": Category(["1", "3"], missing=False)}


def test_frames_of_polars_have_the_same_encoding():
    frame = polars.DataFrame(MIXED)
    assert Columns.of(frame) == Columns.of(MIXED)
    assert torch.equal(Columns.of(MIXED).encode(frame), Columns.of(MIXED).encode(MIXED))
    with pytest.raises(InvalidInputError, match="collect"):
        Columns.of(frame.lazy())

    class Exported:
        """A table of an unknown library that exports Arrow."""

        def __arrow_c_stream__(self, requested_schema=None):
            return frame.__arrow_c_stream__(requested_schema)

    assert Columns.of(Exported()) == Columns.of(MIXED)


def test_arrays_and_sparse_matrices_have_numbered_columns():
    array = np.array([[1.0, 0.0], [3.0, 2.0]])
    records = np.array([(1.0, 0), (3.0, 2)], dtype=[("0", float), ("1", int)])
    for table in (array, array.tolist() and torch.from_numpy(array), csr_array(array), records):
        columns = Columns.of(table)
        assert columns.feature_names == ("0", "1")
        assert columns.encode(table).tolist() == [[-1.0, -1.0], [1.0, 1.0]]


def test_a_dict_of_single_values_is_one_row():
    columns = Columns.of(MIXED)
    row = {"age": 31.0, "city": "Rome", "new": True, "day": MIXED["day"][0]}
    assert torch.equal(columns.encode(row), columns.encode(MIXED)[:1])


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"a": [1, "x"]}, r"column 'a' mixes number \(row 0: 1\) and text \(row 1: 'x'\)"),
        ({"a": [1], "b": [1, 2]}, "column 'b' has 2 values, but the table has 1 rows"),
        ({"a": [1], "b": 2}, "column 'b' of table must be a list"),
        ({"a": [None, None]}, r"'a' has no values; leave it out: ignore=\['a'\]"),
        ({"a": [object()]}, "'a' holds a value of the type object in row 0"),
        ({"a": [1, 2 + 1j]}, "complex in row 1"),
        ({"a": [b"x"]}, "bytes"),
        ({"a": [[1, 2], [1]]}, r"one length, got \[1, 2\]"),
        ({"a": [[1, "x"]]}, "no vector of finite numbers"),
        ({"a": [10**400]}, "no float in row 0"),
        ({"a": [float("inf"), 1.0]}, r"'a' is a number .* at most 1e\+15, got number \(inf\)"),
        ({"a": [1e300, 1.0]}, "at most"),
        ({"a": [f"text {i}" for i in range(30)]}, r"30 different texts in 30 rows.*Hashed\(16\)"),
        ({"a": np.ones((2, 2, 2))}, r"one value for each row, got the shape \[2, 2, 2\]"),
        ({1: [1], "1": [2]}, "different names, got '1' more than once; rename one of them"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "got 'a' more than once; rename one of them"),
        (pd.DataFrame([[1]], columns=pd.MultiIndex.from_tuples([("a", "b")])), "join the levels"),
        (pd.Series([1, 2]), r"must be a data frame.*got Series; a single row .*iloc\[\[0\]\]"),
        ({"a": []}, "no rows that show the kinds"),
        ({"a": ["31/12/2026", "1/2/2026"]}, r"dates that are not .* '1/2/2026'.*Category\(\)"),
        ({"a": ["1,200", "900"]}, r"numbers that are not .* '1,200'.*thousands="),
        ({"a": ["12 €", "3.50 €"]}, "numbers that are not .*; convert them, or state its kind"),
        ({"a": ["12,5", "900"]}, r"read_csv\(..., decimal=','\)"),
        ({"a": ["1.234,5", "3,25"]}, r"read_csv\(..., decimal=',', thousands='.'\)"),
        ({"": [0, 1], "a": [0, 1]}, r"'' has no name, as the index .* ignore=\[''\]"),
        ({"Unnamed: 0": [0, 1]}, "has no name, as the index that pandas writes"),
        (
            {"a": [1, "x"], "b": [1, 2], "c": [None, None]},
            r"2 columns cannot be used:\n- the column 'a' mixes .*\n- the column 'c' has no values",
        ),
        (np.ones(3), r"got the shape \[3\]"),
        ([1, 2], "a list that holds int"),
        (None, "got NoneType"),
        (3, "got int"),
    ],
)
def test_tables_that_cannot_be_read_are_refused(table, message):
    with pytest.raises(InvalidInputError, match=message):
        Columns.of(table)


@pytest.mark.parametrize(
    ("kind", "values", "message"),
    [
        (
            Number(),
            ["1", "two"],
            r"'x' is a number and must hold numbers, got text \(two\) in row 1",
        ),
        (Number(), MIXED["day"], "must hold numbers, got date"),
        (Number(center=0, scale=1e-14), [1e9], "after standardisation"),
        (Boolean(), [0, 2], "must hold true or false, got number .2.0. in row 1"),
        (Boolean(), ["yes", "no"], r"must hold true or false, got text \(yes\) in row 0"),
        (Date(), ["2026-01-05", "soon"], "dates, or texts such as 2026-01-31"),
        (Date(), [5.0, 6.0], "dates, or texts"),
        (Vector(), [1.0], "a list of numbers"),
        (Category(), [[1.0]], "single values"),
    ],
)
def test_values_that_do_not_fit_their_kind_are_named(kind, values, message):
    with pytest.raises(InvalidInputError, match=message):
        encoded(values, kind)


def test_vectors_of_another_length_are_refused():
    columns = Columns.of({"x": [[1.0, 2.0]]})
    with pytest.raises(InvalidInputError, match="a list of 2 numbers, got vector"):
        columns.encode({"x": [[1.0, 2.0, 3.0]]})
    assert columns.encode({"x": [None]}).tolist() == [[0.0, 0.0]]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Number(scale=0), "scale"),
        (lambda: Number(center=float("nan")), "center"),
        (lambda: Number(missing="yes"), "missing must be"),
        (lambda: Category("abc"), "a list of texts"),
        (lambda: Category(["a", "a"]), "different"),
        (lambda: Hashed(0), "size"),
        (lambda: Hashed(10**9), "size must be an integer of at most 100000"),
        (lambda: Embedding({}), "a vector for each"),
        (lambda: Embedding({"a": [1], "b": [1, 2]}), "one length"),
        (lambda: Embedding({"a": ["x"]}), "must be numbers"),
        (lambda: Date(parts=["month"]), "weekday, season, hour, elapsed"),
        (lambda: Columns({"a": "number"}), "one of the kinds Number"),
        (lambda: Columns({"a": Number()}), "'a' must be stated"),
        (lambda: Columns.of(MIXED, ["age"]), "a dict from names to kinds"),
        (lambda: Columns.of(MIXED, {"height": Number()}), "no column 'height'"),
    ],
)
def test_wrong_kinds_are_refused(make, message):
    with pytest.raises(InvalidInputError, match=message):
        make()


def test_a_column_that_is_absent_later_is_named():
    with pytest.raises(InvalidInputError, match=r"no column 'day'; it has 'city'; add it.*ignore="):
        Columns.of(MIXED).encode({"city": ["Rome"]})
