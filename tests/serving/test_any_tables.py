"""Any table with mixed columns: success or a sentence, and nothing changes on refusal."""

import datetime
import math

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from serving_cases import assert_same, state_of

from gfucb import Agent
from gfucb.core.errors import GFUCBError
from gfucb.tables import Schema

HISTORY = [
    {"store": "Oslo", "weather": "rain", "visitors": 910, "open": True, "promotion": "none"},
    {"store": "Bergen", "weather": None, "visitors": 430, "open": False, "promotion": "coupon"},
    {"store": "Oslo", "weather": "sun", "visitors": None, "open": True, "promotion": "coupon"},
]
REWARDS = [120.0, 260.0, 300.0]
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**30), 10**30),
    st.floats(),
    st.text(max_size=6),
    st.dates(),
    st.sampled_from([b"x", [], {}, object(), 1j, "\ud800", datetime.timedelta(1), "Oslo", "none"]),
)
COLUMNS = ("store", "weather", "visitors", "open", "promotion", "revenue")
TABLES = st.lists(
    st.dictionaries(st.sampled_from(COLUMNS), VALUES, min_size=4, max_size=6), max_size=3
)
GOOD = {"store": "Oslo", "weather": "rain", "visitors": 9.5, "open": True}


@pytest.fixture(scope="module")
def known():
    rows = [row | {"revenue": reward} for row, reward in zip(HISTORY, REWARDS, strict=True)]
    schema = Schema.of(rows, task="store", action="promotion", reward="revenue")
    agent = Agent(refit="manual")
    agent.learn_table(rows, schema)
    return agent, schema


def attempt(agent: Agent, call) -> None:
    """Success, or a sentence and nothing has changed."""
    before = (state_of(agent), agent.tasks, agent.log.last_event(), agent.log.last_decision())
    try:
        call()
    except GFUCBError as error:
        assert len(str(error)) > 20
        assert (agent.tasks, agent.log.last_event(), agent.log.last_decision()) == before[1:]
        assert_same(agent, before[0])


LABELS = st.one_of(st.text(max_size=3), st.integers(), st.dates(), st.none(), st.floats())
INPUTS = st.lists(st.floats(), max_size=3)
CATALOGUES = st.one_of(
    VALUES,
    st.lists(VALUES, max_size=4),
    st.lists(VALUES, max_size=4).map(tuple),
    st.dictionaries(LABELS, INPUTS, max_size=4),
)


FEW = settings(
    max_examples=30, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@FEW
@given(table=TABLES)
def test_any_table(known, table):
    agent, schema = known
    attempt(agent, lambda: agent.decide_table(table, schema))
    attempt(agent, lambda: agent.learn_table(table, schema))
    attempt(agent, lambda: Schema.of(table, task="store", action="promotion", reward="revenue"))


@pytest.mark.filterwarnings("ignore")
@FEW
@given(column=st.sampled_from(sorted(GOOD)), value=VALUES, available=st.one_of(st.none(), VALUES))
def test_any_value_in_one_column(known, column, value, available):
    agent, schema = known
    attempt(agent, lambda: agent.decide_table([GOOD | {column: value}], schema, available))


@FEW
@given(name=VALUES)
def test_any_name_of_a_new_store(known, name):
    agent, schema = known

    def add() -> None:
        agent.decide_table([GOOD | {"store": name}], schema.with_tasks([name]))

    attempt(agent, add)


def test_a_good_row_is_decided(known):
    agent, schema = known
    decision = agent.decide_table([GOOD], schema)
    assert math.isfinite(float(decision.optimistic_values[0]))


@pytest.mark.filterwarnings("ignore")
@FEW
@given(catalogue=CATALOGUES)
def test_any_catalogue(catalogue):
    agent = Agent(refit="manual")
    attempt(agent, lambda: agent.predict_from(catalogue, tasks=["a"]))
    attempt(agent, lambda: agent.decide_from(catalogue, tasks=["a"]))
