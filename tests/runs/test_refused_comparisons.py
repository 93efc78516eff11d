"""Comparisons that cannot run are refused with a message, before anything is computed."""

import pytest

import gfucb
from gfucb.core.errors import GFUCBError
from gfucb.runs.config import BanditAgentConfig

WRONG = BanditAgentConfig("linucb", ridge=0.0)
SMALL = {"environment": "finite", "agents": ["uniform"], "seeds": [0], "num_rounds": 2}


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"seeds": 3}, "seeds must be several, such as range"),
        ({"seeds": [0.5]}, "a seed must be an integer"),
        ({"seeds": ["a"]}, "a seed must be an integer"),
        ({"seeds": [1, 1]}, "each once"),
        ({"num_rounds": 2.5}, "num_rounds must be an integer"),
        ({"num_rounds": "9"}, "num_rounds must be an integer"),
        ({"num_rounds": 0}, "num_rounds must be an integer of at least 1"),
        ({"processes": 1.5}, "processes must be an integer"),
        ({"environment": lambda seed: None}, "has a method round or episode.* got NoneType"),
        ({"agents": {"a/b": "uniform"}}, "a text without / and"),
        ({"agents": {"..": "uniform"}}, "a text without / and"),
        ({"agents": {"": "uniform"}}, "a text without / and"),
        ({"agents": {3: "uniform"}}, "a text without / and .* got 3"),
        ({"reference": "gfucb"}, "unknown agent of these runs 'gfucb'.* are: uniform"),
        ({"agents": {"a": "uniform", "b": lambda environment, seed: None}}, "'b' has no method"),
        ({"out": "runs", "agents": ["uniform", WRONG]}, "ridge must be a finite number"),
        ({"out": "runs", "sinks": ["x"]}, "a sink must be an object with the methods open"),
        ({"out": "file"}, "file is no directory"),
    ],
)
def test_the_message_says_what_was_expected(wrong, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("a file")
    with pytest.raises(GFUCBError, match=message):
        gfucb.compare(**(SMALL | wrong))
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_seeds_may_be_a_generator_for_several_agents():
    result = gfucb.compare("finite", ["uniform", "linucb"], seeds=iter([0, 1]), num_rounds=2)
    assert result.table["seeds"].tolist() == [2, 2]
