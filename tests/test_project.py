"""Properties of the whole project: named random streams, doctests, one version number."""

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import pytest
import torch

import gfucb
from gfucb.core.random import global_randomness_from, random_stream

ROOT = Path(__file__).parents[1]


def test_streams_are_independent_of_each_other_and_of_the_global_generator():
    draws = {
        name: torch.rand(3, generator=random_stream(0, *name)).tolist()
        for name in [("a",), ("b",), ("a", 1), ("a", 2), (1, "a")]
    }
    assert len({tuple(d) for d in draws.values()}) == len(draws)
    torch.rand(5)
    assert torch.rand(3, generator=random_stream(0, "a")).tolist() == draws[("a",)]


def test_lending_a_generator_to_global_code_leaves_the_global_one_alone():
    before = torch.random.get_rng_state()
    values = []
    for _ in range(2):
        generator = random_stream(3, "lent")
        with global_randomness_from(generator):
            values.append(torch.nn.Linear(3, 3).weight.detach().clone())
        assert torch.equal(before, torch.random.get_rng_state())
    assert torch.equal(values[0], values[1])


def test_what_is_lent_is_independent_of_what_the_lender_goes_on_to_give():
    generator = random_stream(3, "lent")
    with global_randomness_from(generator):
        lent, own = torch.rand(4), torch.rand(4, generator=generator)
    assert not torch.equal(lent, own)


def modules() -> list[str]:
    names = [m.name for m in pkgutil.walk_packages(gfucb.__path__, "gfucb.")]
    return ["gfucb", *names]


@pytest.mark.parametrize("name", modules())
def test_doctests(name):
    if name.startswith("gfucb.runs.ray_"):
        pytest.importorskip("ray", reason="Ray is not installed: pip install 'gfucb[ray]'")
    result = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert result.failed == 0


def test_the_decision_of_gfucb_reads_like_the_algorithm():
    import inspect

    source = inspect.getsource(gfucb.GFUCB.decide)
    body = source[source.rindex('"""') :].strip().splitlines()[1:]
    assert len(body) <= 12


def test_the_version_is_stated_once():
    declared = re.search(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert declared and declared.group(1) == gfucb.__version__
