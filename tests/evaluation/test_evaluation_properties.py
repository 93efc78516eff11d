"""Any arguments are evaluated or refused with a sentence, and estimates have their properties."""

import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gfucb.core.errors import GFUCBWarning, InvalidInputError
from gfucb.evaluation import Betting, EmpiricalBernstein, LoggedDecisions, evaluate

NUMBERS = st.one_of(
    st.floats(allow_nan=True, allow_infinity=True),
    st.integers(-(10**20), 10**20),
    st.sampled_from([0.5, 1.0, 0.25, True, None, "0.5", -0.0]),
)
COLUMNS = st.one_of(st.lists(NUMBERS, max_size=5), NUMBERS, st.lists(st.lists(NUMBERS), max_size=3))
OPTIONAL = st.one_of(st.none(), COLUMNS)


def evaluated(log, policy, **arguments):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GFUCBWarning)
        return evaluate(log, policy, estimators=["ips", "snips"], **arguments)


@settings(max_examples=150, deadline=None)
@given(COLUMNS, COLUMNS, COLUMNS, OPTIONAL, OPTIONAL, OPTIONAL, OPTIONAL, COLUMNS)
def test_anything_is_evaluated_or_refused(
    actions, probabilities, rewards, candidates, tasks, available, distribution, policy
):
    try:
        log = LoggedDecisions(
            actions, probabilities, rewards, candidates, tasks, available, distribution
        )
        evaluated(log, policy)
    except InvalidInputError as error:
        assert len(str(error)) > 20


@st.composite
def logs(draw):
    rows, actions = draw(st.integers(1, 12)), draw(st.integers(1, 4))
    columns = [st.lists(s, min_size=rows, max_size=rows) for s in _cells(actions)]
    chosen, probabilities, rewards = (draw(column) for column in columns)
    weights = np.array([draw(st.lists(st.floats(0.01, 1), min_size=actions, max_size=actions))])
    policy = np.repeat(weights / weights.sum(), rows, axis=0)
    return LoggedDecisions(chosen, probabilities, rewards, num_actions=actions), policy


def _cells(actions):
    small = st.floats(1e-49, 1e-3)
    return (
        st.integers(0, actions - 1),
        st.one_of(st.floats(1e-3, 1.0), small),
        st.floats(0.0, 1.0),
    )


@pytest.mark.parametrize("sequence", [EmpiricalBernstein(), Betting()], ids=["eb", "betting"])
@settings(max_examples=60, deadline=None)
@given(case=logs())
def test_estimates_have_their_properties(sequence, case):
    log, policy = case
    result = evaluated(log, policy, sequence=sequence)
    rewards = log.rewards.tolist()
    assert math.isfinite(result["ips"].value) and result["ips"].value >= 0
    assert min(rewards) - 1e-9 <= result["snips"].value <= max(rewards) + 1e-9
    assert 0 <= result["ips"].sequence.low <= result["ips"].sequence.high <= 1
    assert 0 < result.effective_sample_size <= len(log) + 1e-9
    for estimate in result.estimates.values():
        if estimate.interval is not None:
            assert estimate.interval.low <= estimate.value <= estimate.interval.high
