"""Columns of rewards: refused where they are stated, if they hold no numbers."""

import pytest
from store_log import log

from gfucb.core.errors import InvalidInputError
from gfucb.tables import Schema

ROLES = {"task": "store", "action": "promotion", "reward": "revenue"}


@pytest.mark.parametrize("rewards", ["$256.33", "2026-01-31", "1,5", "high"])
def test_rewards_that_are_no_numbers_are_refused_before_the_schema_is_used(rewards):
    cure = r"'revenue' is a reward .* \(.*\) in row 0; .* table\['revenue'\].str.replace"
    with pytest.raises(InvalidInputError, match=cure):
        Schema.of(log().assign(revenue=rewards), **ROLES)


def test_a_schema_may_be_made_of_a_log_whose_rewards_are_missing():
    assert Schema.of(log().assign(revenue=None), **ROLES).reward == "revenue"
    assert Schema.of(log().drop(columns="revenue"), **ROLES).reward == "revenue"
