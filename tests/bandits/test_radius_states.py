"""Radii of a user's own: functions of the round, and values that follow the rewards."""

from dataclasses import dataclass, replace

import pytest
import torch

from gfucb import GFUCB, CalibratedRadius, ConstantRadius, VariableProjection
from gfucb.bandits.batched import BatchedAgents
from gfucb.core.errors import InvalidInputError
from gfucb.core.random import random_stream
from gfucb.models.nn.networks import default_network

CANDIDATES = torch.rand(2, 5, 3, generator=random_stream(0, "candidates"))


@dataclass(frozen=True)
class Shrinking:
    """A radius of 1 / (number of rewards so far) for each task that shares it."""

    def initial(self):
        return ShrinkingState(torch.tensor(0))


@dataclass(frozen=True, eq=False)
class ShrinkingState:
    rewards: torch.Tensor

    def squared_radius(self, round_index, num_sharing):
        return num_sharing / (1 + int(self.rewards))

    def after(self, prediction, rewards):
        return replace(self, rewards=self.rewards + len(rewards))

    def diagnostics(self):
        return {"radius_rewards": int(self.rewards)}

    def tensors(self):
        return {"shrinking.rewards": self.rewards}

    def restored(self, tensors):
        return ShrinkingState(tensors["shrinking.rewards"])


def make(seed: int = 0, **options) -> GFUCB:
    network = default_network((3,), random_stream(0, "network"), hidden=4)
    fit = VariableProjection(steps=2, batch_size=8)
    return GFUCB(2, network, seed=seed, fit=fit, value_range=(0.0, 1.0), **options)


def test_a_radius_of_a_users_own_follows_the_rewards_and_is_saved():
    agent = make(squared_radius=Shrinking())
    agent.observe(agent.decide(CANDIDATES), [0.1, 0.2])
    agent.decide(CANDIDATES)
    assert agent.diagnostics()["squared_radius"] == pytest.approx(2 / 3)
    assert agent.diagnostics()["radius_rewards"] == 2
    agent.decide(CANDIDATES[:1], tasks=[1])
    assert agent.last_selection.squared_radius == pytest.approx(1 / 3)

    again = make(squared_radius=Shrinking())
    again.load_state(agent.state())
    again.decide(CANDIDATES)
    assert again.diagnostics()["squared_radius"] == pytest.approx(2 / 3)
    again.load_state({})
    assert again.radius_state.rewards == 0


def test_replicas_have_radii_of_a_users_own():
    batched = BatchedAgents([make(seed, squared_radius=Shrinking()) for seed in (0, 1)])
    batched.observe(batched.decide(CANDIDATES.expand(2, 2, 5, 3)), torch.full((2, 2), 0.5))
    assert batched.diagnostics(1) == {"fits": 1, "radius_rewards": 2}
    alone = batched.unbatch()[1]
    alone.decide(CANDIDATES)
    assert alone.diagnostics()["squared_radius"] == pytest.approx(2 / 3)


def test_replicas_refuse_an_invalid_radius_of_a_round():
    batched = BatchedAgents([make(seed, squared_radius=lambda t: -1.0) for seed in (0, 1)])
    with pytest.raises(InvalidInputError, match="the squared radius of round 1 must be"):
        batched.decide(CANDIDATES.expand(2, 2, 5, 3))


def test_a_class_is_no_radius():
    with pytest.raises(InvalidInputError, match="got the class CalibratedRadius; pass an instance"):
        make(squared_radius=CalibratedRadius)


@pytest.mark.parametrize("wrong", ["calibration.more", "shrinking.rewards"])
def test_a_state_with_other_tensors_of_a_radius_is_refused(wrong):
    agent = make()
    agent.observe(agent.decide(CANDIDATES), [0.1, 0.2])
    with pytest.raises(InvalidInputError, match=f"unexpected tensor '{wrong}'"):
        make().load_state(agent.state() | {wrong: torch.tensor(1.0)})


def test_the_state_of_a_constant_radius_is_no_calibration():
    agent = make(squared_radius=ConstantRadius(0.1))
    agent.observe(agent.decide(CANDIDATES), [0.1, 0.2])
    with pytest.raises(InvalidInputError, match=r"no tensor 'calibration\."):
        make().load_state(agent.state())
