"""Names of registered types, of numpy and pandas, and names of actions."""

import enum
import json
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
import torch
from serving_cases import candidates, play

from gfucb import Agent, InvalidInputError
from gfucb.core.errors import GFUCBWarning
from gfucb.serving import name_types, register_name_type
from gfucb.serving.log_tables import log_rows
from gfucb.serving.names import decode_name, encode_name


class Region(enum.Enum):
    NORTH = 1
    SOUTH = 2


@dataclass(frozen=True)
class Store:
    region: Region
    number: int


@pytest.fixture
def registered(monkeypatch):
    monkeypatch.setattr(name_types, "_KINDS", dict(name_types._KINDS))
    register_name_type(Region)
    register_name_type(Store)


class TestRegisteredTypes:
    def test_are_found_again_after_a_restart(self, registered, tmp_path):
        names = [Store(Region.NORTH, 3), Store(Region.SOUTH, 3), Region.NORTH]
        with Agent(log=tmp_path / "log") as agent:
            play(agent, range(2), names)
        with Agent(log=tmp_path / "log") as again:
            assert again.tasks == tuple(names)
            again.retire_task(Store(Region.SOUTH, 3))
            assert [row["task"] for row in log_rows(again.log)][2].endswith('"NORTH"}')

    def test_that_are_not_registered_are_refused(self, registered, monkeypatch):
        text = encode_name(Region.NORTH)
        monkeypatch.setattr(name_types, "_KINDS", {})
        with pytest.raises(InvalidInputError, match="register_name_type"):
            encode_name(Region.NORTH)
        with pytest.raises(InvalidInputError, match="Region, which is not known"):
            decode_name(text)

    def test_need_functions_unless_they_are_known(self, registered):
        class Point:
            def __init__(self, x: int) -> None:
                self.x = x

            def __eq__(self, other) -> bool:
                return self.x == other.x

            def __hash__(self) -> int:
                return hash(self.x)

        with pytest.raises(InvalidInputError, match="state encode and decode"):
            register_name_type(Point)
        with pytest.raises(InvalidInputError, match="both"):
            register_name_type(Point, encode=lambda point: point.x)
        with pytest.raises(InvalidInputError, match="hashable"):
            register_name_type(list)
        with pytest.raises(InvalidInputError, match="is that of bytes"):
            register_name_type(Point, lambda point: point.x, Point, kind="bytes")
        register_name_type(Point, lambda point: point.x, Point)
        assert Agent(tasks=[Point(2)]).tasks == (Point(2),)


@pytest.mark.parametrize("name", [pd.NA, pd.NaT, np.datetime64("NaT"), float("nan")])
def test_missing_names_are_refused(name):
    with pytest.raises(InvalidInputError, match="a name is missing"):
        encode_name(("store", name))


def test_a_tuple_of_names_is_refused_with_its_cure():
    with pytest.raises(InvalidInputError, match=r"a tuple is one name: pass list\(tasks\)"):
        Agent().decide(candidates(2), tasks=("Oslo", "Lima"))
    with pytest.raises(InvalidInputError) as refused:
        Agent().decide(candidates(2), tasks="x" * 10_000)
    assert len(str(refused.value)) < 200


def test_large_decimals_as_databases_return_them_are_the_integers_they_are_equal_to():
    ids = [10**18 + 1, 10 * (10**18 + 1), 10**25, 10**50, 10**400]
    for number in ids:
        assert encode_name(Decimal(number)) == encode_name(number) == str(number)
        assert decode_name(encode_name(Decimal(number))) == number
    assert encode_name(Decimal("1.10")) == encode_name(Decimal("1.1")) != encode_name(1.1)
    for number in ("1e999999999", "1e-999999999"):
        with pytest.raises(InvalidInputError, match="exponent is too large"):
            encode_name(Decimal(number))


def test_moments_of_numpy_and_pandas_are_those_of_python():
    moments = np.array(["2026-01-02T03:04", "2026-01-03"], "datetime64[ns]")
    agent = Agent()
    agent.decide(candidates(2), tasks=moments)
    agent.decide(candidates(2), tasks=pd.Series(pd.to_datetime(moments)))
    assert agent.tasks == (datetime(2026, 1, 2, 3, 4), datetime(2026, 1, 3))
    with pytest.raises(InvalidInputError, match="nanoseconds"):
        agent.add_task(pd.Timestamp(1))
    with pytest.raises(InvalidInputError, match="NaT"):
        agent.add_task(pd.NaT)
    with pytest.raises(InvalidInputError, match="missing"):
        agent.add_task(Decimal("sNaN"))


def test_explanations_write_such_names_as_text():
    agent = Agent()
    day = date(2026, 3, 1)
    play(agent, range(3), [day])
    decision = agent.decide(candidates(1), tasks=[day])
    found = json.loads(json.dumps(agent.explain(decision).to_dict()))
    assert found["rows"][0]["task"] == "2026-03-01"


@pytest.mark.parametrize(
    "catalogue",
    [
        ("tea", "milk"),
        np.array(["tea", "milk"]),
        pd.Series(["tea", "milk"]),
        [("tea", 1), ("milk", 1)],
    ],
    ids=lambda value: type(value).__name__,
)
def test_lists_and_columns_of_names_are_catalogues(catalogue):
    decision = Agent().decide_from(catalogue, tasks=["a"])
    assert decision.action_names[0] in list(catalogue) and decision.inputs.tolist() in ([0], [1])


def test_the_index_of_a_frame_are_names():
    frame = pd.DataFrame({"x": [0.1, 0.2], "y": [1.0, 2.0]}, index=["tea", "milk"])
    decision = Agent().decide_from(frame, tasks=["a"])
    assert decision.inputs[0].tolist() == frame.loc[decision.action_names[0]].tolist()
    assert Agent().decide_from(frame.reset_index(drop=True), tasks=["a"]).action_names is None


def test_names_beside_numbers_and_missing_names_are_refused_and_not_dropped():
    frame = pd.DataFrame({"x": [0.1, 0.2]}, index=["tea", float("nan")])
    for catalogue in (frame, frame.set_axis(["tea", 7]), ["tea", 7], ["tea", None]):
        with pytest.raises(InvalidInputError, match="must all have names or all have none, got"):
            Agent().decide_from(catalogue, tasks=["a"])


def test_names_that_differ_by_spaces_are_two_tasks_and_a_warning_names_them(recwarn):
    agent = Agent(tasks=["oslo", " lima", " "])
    assert not recwarn
    with pytest.warns(GFUCBWarning, match="' oslo' and 'oslo' are two tasks, which learn apart"):
        agent.decide(candidates(2), tasks=["oslo", " oslo"])
    with pytest.warns(GFUCBWarning, match=r"'rome\\n' and 'rome' are two tasks"):
        agent.learn(["rome", "rome\n"], candidates(2)[:, 0], [0.1, 0.2])
    recwarn.clear()
    agent.decide(candidates(2), tasks=["oslo", " oslo"])  # both are known
    assert not recwarn and agent.tasks == ("oslo", " lima", " ", " oslo", "rome", "rome\n")


def test_sums_of_money_are_rewards():
    agent = Agent()
    assert agent.observe(agent.decide(candidates(2), tasks=["a", "b"]), [Decimal("9.99"), 3]) == 2


def test_available_may_list_the_names_of_actions():
    agent, catalogue = Agent(seed=0), {"tea": [0.0, 1.0], ("juice", 1): [1.0, 0.0]}
    rows = [["tea"], [("juice", 1)]]
    decision = agent.decide_from(catalogue, tasks=["a", "b"], available=rows)
    assert decision.action_names == ("tea", ("juice", 1))
    assert agent.decide_from(catalogue, tasks=["a"], available=[[False, True]]).actions == 1
    assert len(agent.predict_from(catalogue, ["a", "b"], rows)) == 2
    for mask in ([np.array([False, True])], [[np.False_, np.True_]], [torch.tensor([False, True])]):
        assert agent.decide_from(catalogue, tasks=["a"], available=mask).actions == 1
    with pytest.raises(InvalidInputError, match="every row needs an available action"):
        agent.decide_from(catalogue, tasks=["a", "b"], available=[["tea"], []])
    with pytest.raises(InvalidInputError, match="every row needs an available action"):
        agent.decide_from(catalogue, tasks=["a"], available=[[]])
    for own in (iter(rows), [set(row) for row in rows]):
        again = agent.decide_from(catalogue, tasks=["a", "b"], available=own)
        assert again.action_names == decision.action_names
    for wrong, why in (
        ([["milk"]], "'milk', which is not in"),
        (["tea"], "a list of names for each"),
    ):
        with pytest.raises(InvalidInputError, match=why):
            agent.decide_from(catalogue, tasks=["new"], available=wrong)
    assert agent.tasks == ("a", "b")
