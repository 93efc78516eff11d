"""Random shifts of images, and fits with augmented inputs."""

import pytest
import torch

from gfucb import GFUCB, VariableProjection
from gfucb.bandits.batched import BatchedAgents
from gfucb.core.errors import InvalidInputError
from gfucb.core.random import random_stream
from gfucb.estimation import RandomShifts


@pytest.mark.parametrize("shape", [(6, 5), (2, 6, 5)])
def test_shifts_move_the_content_and_change_no_value(shape):
    images = torch.zeros(200, *shape, dtype=torch.uint8)
    images[..., 3, 2] = 9
    shifted = RandomShifts(2)(images, random_stream(0, "shift"))
    assert shifted.shape == images.shape
    assert shifted.dtype == torch.uint8
    channels = 1 if len(shape) == 2 else 2
    assert (shifted.flatten(1).sum(1) == 9 * channels).all()
    positions = {tuple(p.tolist()) for p in shifted.view(200, -1, 6, 5)[:, 0].nonzero()[:, 1:]}
    assert positions == {(row, column) for row in range(1, 6) for column in range(5)}


def test_content_beyond_the_border_is_lost():
    corner = torch.zeros(100, 3, 3)
    corner[:, 0, 0] = 1
    assert {float(s) for s in RandomShifts(1)(corner, random_stream(0, "s")).sum((1, 2))} == {0, 1}


def test_wrong_shifts_and_inputs_are_refused():
    with pytest.raises(InvalidInputError, match="at least 1"):
        RandomShifts(0)
    with pytest.raises(InvalidInputError, match="images"):
        RandomShifts(1)(torch.zeros(3, 4), random_stream(0, "s"))


def test_a_fit_uses_augmented_inputs_alone_and_in_a_batch():
    seen = []

    def blank(inputs, generator):
        seen.append(len(inputs))
        return torch.zeros_like(inputs)

    fit = VariableProjection(steps=3, augment=blank)
    x = torch.rand(2, 3, 30, 4, 4, generator=random_stream(0, "x"))
    agent = GFUCB(3, seed=0, fit=fit)
    rewards = torch.rand(30, 3, generator=random_stream(0, "y"))
    for action in range(30):
        agent.observe(agent.decide(x[0, :, action : action + 1]), rewards[action])
    assert seen
    seen.clear()
    batched = BatchedAgents([GFUCB(3, seed=s, fit=fit) for s in range(2)])
    for action in range(30):
        decision = batched.decide(x[:, :, action : action + 1])
        batched.observe(decision, rewards[action].repeat(2, 1))
    assert seen
