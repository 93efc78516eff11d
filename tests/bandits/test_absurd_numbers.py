"""Numbers that no fit can represent: a message, never an endless loop."""

import os
import subprocess
import sys

import pytest

HANGS = """
import torch, gfucb
from gfucb.models import FiniteClass, IdentityRepresentation
agent = gfucb.GFUCB(2, FiniteClass([IdentityRepresentation(), lambda x: x.double() ** 2]))
x = torch.rand(2, 3, 4, dtype=torch.float64)
for candidates, reward in [(1e154 * x, 0.5), (x, 1.7e308)]:
    try:
        agent.observe(agent.decide(candidates), [reward, 0.1])
        agent.decide(x)
    except gfucb.InvalidInputError as error:
        print(error)
agent.observe(agent.decide(x), [0.5, 0.1])
center = agent.learner._center
agent.learner._center = center.with_heads(center.heads * float("nan"))
try:
    agent.decide(x)
except gfucb.InvalidInputError as error:
    print(error)
"""


@pytest.mark.slow
def test_decisions_on_absurd_numbers_end_with_a_message():
    """Each of these made `decide` loop for ever; a separate process can be stopped."""
    run = subprocess.run(
        [sys.executable, "-c", HANGS],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    inputs, rewards, heads = run.stdout.splitlines()
    assert "candidates must be at most 1e+15" in inputs
    assert "rewards must be at most 1e+12" in rewards
    assert "finite" in heads
