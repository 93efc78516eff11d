"""Columns of rewards: refused where they are stated, if they hold no numbers."""

import re

import pytest
from store_log import log

from gfucb.core.errors import InvalidInputError
from gfucb.tables import Schema

ROLES = {"task": "store", "action": "promotion", "reward": "revenue"}


@pytest.mark.parametrize(
    ("rewards", "first"),
    [
        ("$256.33", 256.33),
        ("1,256.33", 1256.33),
        ("1,256", 1256.0),
        ("1,5", 1.5),
        ("1.256,33 €", 1256.33),
        ("-3,50 kr", -3.5),
        ("256.33 €", 256.33),
        ("-$3.50", -3.5),
        ("64%", 64.0),
        ("high", 1.0),
    ],
)
def test_rewards_that_are_no_numbers_are_refused_with_a_cure(rewards, first):
    table = log().assign(revenue=rewards)
    message = r"'revenue' is a reward .* \(.*\) in row 0; .*, for example (.*)"
    with pytest.raises(InvalidInputError, match=message) as refused:
        Schema.of(table, **ROLES)
    cure = re.search(message, str(refused.value)).group(1)
    table["revenue"] = eval(cure, {"table": table})
    assert table["revenue"].iloc[0] == first
    assert Schema.of(table, **ROLES).reward == "revenue"


def test_rewards_that_are_dates_are_refused():
    with pytest.raises(InvalidInputError, match=r"must hold numbers, got text .* before$"):
        Schema.of(log().assign(revenue="2026-01-31"), **ROLES)


def test_a_schema_may_be_made_of_a_log_whose_rewards_are_missing():
    assert Schema.of(log().assign(revenue=None), **ROLES).reward == "revenue"
    assert Schema.of(log().drop(columns="revenue"), **ROLES).reward == "revenue"
