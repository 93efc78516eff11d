"""CSV files as tables."""

import pytest
import torch

from gfucb.core.errors import DataFileError, InvalidInputError
from gfucb.tables import Columns, Schema

HISTORY = """\
store,date,weather,holiday,visitors,promotion,revenue
Oslo,2026-03-02,rain,false,910,none,120
Lima,2026-03-02,,true,,coupon,260
"""
ROLES = {"task": "store", "action": "promotion", "reward": "revenue"}


def test_a_path_is_a_table(tmp_path):
    path = tmp_path / "history.csv"
    path.write_text(HISTORY, encoding="utf-8-sig")  # as spreadsheets write it
    rows = [line.split(",") for line in HISTORY.splitlines()]
    columns = dict(zip(rows[0], zip(*rows[1:], strict=True), strict=True))
    expected = Schema.of(columns, **ROLES)
    schema = Schema.of(str(path), **ROLES)
    assert schema.to_json() == expected.to_json()
    assert {"visitors missing", "weather missing", "holiday"} <= set(schema.feature_names)
    for found, same in zip(schema.samples(path), expected.samples(columns), strict=True):
        assert torch.equal(found, same)
    assert len(schema.offers(path).candidates) == 2


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("", DataFileError, "has no rows"),
        ("a,b\n", DataFileError, "has no rows"),
        ("a,b\n1,2\n1,2,3\n", DataFileError, "line 3 .* more values than there are columns"),
        ("a;b\n1;2\n", DataFileError, r"separated by ';'; pass pandas.read_csv\(.*sep=';'"),
        ("a;b\n1,5;2,5\n", DataFileError, r"separated by ';'; pass pandas.read_csv\(.*sep=';'"),
        ("a,a\n1,2\n", InvalidInputError, "'a' more than once; rename"),
        ('a\n"1', DataFileError, "cannot be read as CSV"),
        ("a,b\n1,\n2,\n", InvalidInputError, r"'b' has no values; leave it out: ignore=\['b'\]"),
    ],
)
def test_files_that_are_no_tables_are_refused(tmp_path, text, error, message):
    path = tmp_path / "table.csv"
    path.write_text(text)
    with pytest.raises(error, match=message):
        Columns.of(path)


def test_names_are_read_without_the_spaces_around_them(tmp_path):
    path = tmp_path / "history.csv"
    path.write_text(HISTORY.replace("Lima", " Oslo ").replace(",coupon", ", none"))
    schema = Schema.of(path, **ROLES)
    assert schema.task.names == ("Oslo",) and schema.actions.labels.names == ("none",)
    earlier = Schema.from_json(schema.to_json().replace('"Oslo"', '" Oslo"'))
    assert earlier.task.names == (" Oslo",) and earlier.tasks(path).tolist() == [0, 0]


def test_a_file_that_is_missing_is_named():
    with pytest.raises(DataFileError, match=r"text cannot be read as CSV: .*No such file"):
        Columns.of("text")


def test_words_for_missing_values_are_gaps_where_values_are_no_text(tmp_path):
    path = tmp_path / "history.csv"
    rows = ["NA,2026-03-02,NA,none,1", "3,null,sun,None,2", "5,2026-03-03,rain,NaN,3"]
    path.write_text("\n".join(["visitors,date,weather,promotion,revenue", *rows]))
    schema = Schema.of(path, action="promotion", reward="revenue")
    assert {"visitors missing", "date missing", "weather=NA"} <= set(schema.feature_names)
    assert schema.offers(path).names[0] == ("NaN", "None", "none")
