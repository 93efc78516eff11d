"""Descriptions of settings: equal for equal settings, different for different ones."""

import functools

import numpy as np
import pytest
import torch
from torch import nn

import gfucb
from gfucb.core.setting_descriptions import describe_setting, find_difference
from gfucb.models.nn.seeded_layers import SeededDropout
from other_processes import printed_elsewhere, printed_here


def scaled(factor: float):
    return lambda x: factor * x


class Plain:
    def __init__(self, rate: float) -> None:
        self.rate = rate
        self.calls = 0


class Activated(nn.Module):
    def __init__(self, activation) -> None:
        super().__init__()
        self.activation = activation

    def forward(self, x):
        return self.activation(x)


DIFFERENT = [
    (1, 1.0),
    (0.1, 0.1 + 1e-16),
    ("1", 1),
    ([1, 2], (1, 2)),
    ({"a": 1}, {"a": 2}),
    (gfucb.ConstantRadius(0.1), gfucb.ConstantRadius(9.0)),
    (gfucb.VariableProjection(), gfucb.VariableProjection(learning_rate=1e-3)),
    (gfucb.LastLayer(), gfucb.LastLayer(joint=False)),
    (gfucb.exploration.HeadSampling(0), gfucb.exploration.HeadSampling(1)),
    (nn.Sequential(nn.Linear(2, 2), nn.Tanh()), nn.Sequential(nn.Linear(2, 2), nn.ReLU())),
    (nn.Linear(2, 3), nn.Linear(2, 4)),
    (nn.Linear(2, 3), nn.Linear(2, 3).double()),
    (SeededDropout(0.1), SeededDropout(0.5)),
    (Activated(torch.tanh), Activated(torch.relu)),
    (torch.zeros(2), torch.ones(2)),
    (torch.zeros(2), torch.zeros(2, 1)),
    (np.zeros(2), np.zeros(2, dtype=np.float32)),
    (lambda x: x + 1, lambda x: x - 1),
    (lambda x: x**2, lambda x: x**3),
    (scaled(2.0), scaled(3.0)),
    (functools.partial(scaled, 2.0), functools.partial(scaled, 3.0)),
    (torch.tanh, torch.relu),
    (Plain(0.1), Plain(0.2)),
    (Plain, Plain(0.1)),
]


@pytest.mark.parametrize(("one", "other"), DIFFERENT, ids=lambda value: type(value).__name__)
def test_different_settings_have_different_descriptions(one, other):
    assert describe_setting(one) != describe_setting(other)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Plain(0.1),
        lambda: scaled(2.0),
        lambda: nn.Sequential(nn.Linear(2, 2), nn.ReLU()),
        lambda: torch.arange(3.0),
        lambda: {"a": {1, 2, 3}, "b": [None, True]},
    ],
)
def test_equal_settings_have_equal_descriptions_without_addresses(make):
    assert describe_setting(make()) == describe_setting(make())
    assert "0x" not in describe_setting(make())


def test_weights_and_counters_are_no_settings():
    one, other = nn.Linear(3, 2), nn.Linear(3, 2)
    assert describe_setting(one) == describe_setting(other)
    plain = Plain(0.1)
    before = describe_setting(plain)
    plain.calls += 1
    assert describe_setting(plain) == before


def test_a_function_that_counts_its_calls_keeps_its_description():
    calls = []

    def counting(x):
        calls.append(x)

    before = describe_setting(counting)
    counting(1)
    assert describe_setting(counting) == before


def test_a_structure_that_contains_itself_is_described():
    loop: list = [1]
    loop.append(loop)
    assert describe_setting(loop) == "[1, <list>]"


def test_an_object_with_a_fingerprint_describes_itself():
    class Known:
        def fingerprint(self) -> str:
            return "known 7"

    assert describe_setting(Known()) == "known 7"


@pytest.mark.slow
def test_descriptions_are_the_same_in_another_process(capsys):
    program = (
        "import gfucb; from torch import nn;"
        "from gfucb.core.setting_descriptions import describe_setting;"
        "print(describe_setting({'a': {'x', 'y', 'z'}, 'b': lambda x: {'p', x}, "
        "'c': gfucb.VariableProjection(), 'd': nn.Linear(2, 3)}))"
    )
    assert printed_elsewhere(program) == printed_here(program, capsys)


def test_a_difference_is_named_with_both_values():
    assert find_difference({"a": "1"}, {"a": "1"}) is None
    assert find_difference({"a": "1", "b": "2"}, {"a": "1", "b": "3"}) == ("b", "2", "3")
    assert find_difference({"a": "1"}, {}) == ("a", "1", "not stated")
    assert find_difference({}, {"a": "1"}) == ("a", "not stated", "1")


def test_long_values_are_cut_to_where_they_differ():
    common = "x" * 500
    _, one, other = find_difference({"a": common + "ReLU"}, {"a": common + "Tanh"})
    assert one.endswith("ReLU") and other.endswith("Tanh")
    assert len(one) < 100


def test_a_row_that_repeats_memory_is_described_by_its_numbers():
    row = torch.ones(3).as_strided((1,), (0,))
    assert describe_setting(row) == describe_setting(torch.ones(1))
