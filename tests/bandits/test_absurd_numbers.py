"""Numbers that no fit can represent: a message, never an endless loop."""

import os
import subprocess
import sys

import pytest
import torch

import gfucb
from gfucb import environments
from gfucb.bandits import Grouped, linucb
from gfucb.bandits.linear_baselines import LinearUCB
from gfucb.bandits.matrix_factorisation import MatrixFactorisation
from gfucb.core.errors import InvalidInputError, NotEnoughMemoryError
from gfucb.episodic import UCBVI, IndependentEpisodicAgents
from gfucb.models import DefaultNetworkClass

HUGE = 10**15
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


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Grouped(HUGE, lambda num_tasks, seed: linucb(num_tasks)), "a larger group_size"),
        (lambda: IndependentEpisodicAgents(HUGE, lambda seed: UCBVI(1, 2)), "one EpisodicGFUCB"),
        (lambda: DefaultNetworkClass(feature_dim=HUGE), f"at most 100000, got {HUGE}"),
        (lambda: environments.finite_bandit(num_representations=HUGE), "num_representations must"),
        (lambda: environments.linear_mdps(num_representations=HUGE), "num_representations must"),
        (lambda: environments.ImageBandit(environments.load_digits(), num_tasks=HUGE), "num_tasks"),
        (lambda: environments.WheelBandit(HUGE), "one radius for each task, such as"),
    ],
)
def test_numbers_of_objects_that_would_take_hours_to_make_are_refused(make, message):
    with pytest.raises(InvalidInputError, match=message):
        make()


@pytest.mark.parametrize(
    "make",
    [
        lambda: environments.finite_bandit(num_tasks=HUGE),
        lambda: environments.linear_bandit(num_actions=HUGE).round(1),
        lambda: environments.ImageBandit(environments.load_digits(), num_actions=HUGE).round(1),
        lambda: environments.tabular_lock(horizon=HUGE),
        lambda: environments.rich_lock(bank_size=HUGE),
        lambda: environments.combination_lock(5, HUGE),
        lambda: environments.linear_mdps(num_states=HUGE),
        lambda: environments.deep_sea(HUGE),
        lambda: environments.tabular_mdps([[[[1.0]]]], [[[0.0]]], horizon=HUGE),
        lambda: environments.umbrella_chain(HUGE),
        lambda: environments.discounting_chain(HUGE),
        lambda: gfucb.with_actions(torch.rand(2, 3), HUGE),
        lambda: LinearUCB(HUGE).decide(torch.rand(1, 2, 3), [0]),
        lambda: MatrixFactorisation(2, HUGE),
        lambda: MatrixFactorisation(HUGE, 2).decide(torch.tensor([[0, 1]]), [0]),
    ],
)
def test_sizes_that_do_not_fit_into_memory_are_named_with_a_cure(make):
    cure = "choose smaller numbers|pass fewer rows|build (it|the agent) for those that exist"
    with pytest.raises(NotEnoughMemoryError, match=cure):
        make()
