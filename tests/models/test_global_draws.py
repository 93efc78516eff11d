"""torch's global generators in training."""

import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import nn

import gfucb
from gfucb.core.random import random_stream
from gfucb.models.nn.global_draws import training_randomness_from

DROPOUT = nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.1))


class OwnLayer(nn.Module):
    """Code of a user, which may draw."""


def generator():
    return random_stream(0, "fit")


def test_modules_with_random_layers_are_trained_one_after_another():
    with training_randomness_from(generator(), DROPOUT):
        alone = torch.rand(3)
    entered = []

    def other():
        with training_randomness_from(random_stream(1, "fit"), DROPOUT):
            entered.append(torch.rand(1))

    thread = threading.Thread(target=other)
    with training_randomness_from(generator(), DROPOUT):
        thread.start()
        thread.join(0.05)
        assert not entered and torch.equal(torch.rand(3), alone)
    thread.join()
    assert entered
    with training_randomness_from(generator(), DROPOUT, waits_for_others=True):
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()  # such threads exchange gradients


@pytest.mark.parametrize(
    ("module", "others_draw", "is_seeded"),
    [
        (nn.Sequential(nn.Linear(2, 2), nn.ReLU()), False, False),
        (nn.Linear(2, 2), True, True),
        (DROPOUT, False, True),
        (OwnLayer(), False, True),
    ],
)
def test_global_generators_are_seeded_only_for_what_draws(module, others_draw, is_seeded):
    before, own = torch.get_rng_state(), generator()
    with training_randomness_from(own, module, others_draw=others_draw):
        assert torch.equal(torch.get_rng_state(), before) != is_seeded
    assert torch.equal(torch.get_rng_state(), before)
    after = generator()
    torch.randint(2**62, (), generator=after)
    assert torch.equal(own.get_state(), after.get_state())


def test_fits_of_default_networks_leave_draws_of_the_user_alone(monkeypatch):
    def refused(*_):
        raise AssertionError("a fit has seeded the global generators")

    agent = gfucb.GFUCB(2, representation=nn.Sequential(nn.Linear(3, 4), nn.Tanh()), seed=0)
    for _ in range(3):
        decision = agent.decide(torch.rand(2, 3, 3))
        agent.observe(decision, [0.1, 0.9])
    monkeypatch.setattr(torch.random, "fork_rng", refused)
    agent.refit()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no forks")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_fork_during_training_does_not_wait_for_a_thread_that_it_does_not_have():
    training = training_randomness_from(generator(), DROPOUT)
    with ThreadPoolExecutor(1) as other_thread:
        other_thread.submit(training.__enter__).result()
        child = os.fork()
        if child == 0:
            signal.alarm(10)
            with training_randomness_from(generator(), DROPOUT):
                os._exit(0)
        status = os.waitpid(child, 0)[1]
        other_thread.submit(training.__exit__, None, None, None).result()
    assert status == 0
