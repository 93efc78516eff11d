"""Auxiliary targets of representations, and fits that start from the initial weights."""

import copy
from dataclasses import replace

import numpy as np
import torch
from torch import nn

from gfucb.core.records import Transitions
from gfucb.episodic.auxiliary_targets import AuxiliaryTargets
from gfucb.episodic.buffer import StageBuffer
from gfucb.episodic.fit_settings import FitSettings
from gfucb.episodic.stage_fit import StageFit
from gfucb.models import (
    HeadPenalty,
    MultitaskDataset,
    NeuralClass,
    NeuralRepresentation,
    features_of,
)
from gfucb.models.nn.actionwise import StraightThroughOneHot


def buffer_of(inputs, rewards, following=None, ended=None) -> StageBuffer:
    """A buffer of one task; observations [n, x] are the inputs of one action."""
    buffer = StageBuffer(1)
    count = len(inputs)
    over = np.zeros(count, dtype=bool) if ended is None else np.array(ended)
    candidates = None if following is None else np.asarray(following)[:, None]
    if candidates is None:
        over[:] = True
    buffer.append(
        Transitions(
            [0] * count, np.asarray(inputs), np.array(rewards, dtype=float), over, candidates
        )
    )
    return buffer


def test_a_rare_large_reward_weighs_no_more_than_a_small_one():
    buffer = buffer_of(np.eye(100), [0.0] * 89 + [0.1] * 10 + [1.0])
    targets = AuxiliaryTargets.of([buffer], 2, 3.0)(buffer)[:, 0]
    nothing, small, large = targets[0], targets[90], targets[99]
    assert nothing < small < large < nothing + 1.2 * (small - nothing)
    np.testing.assert_allclose([targets.mean(), targets.std()], [0, 3.0], atol=1e-12)
    thousandfold = buffer_of(np.eye(100), [0.0] * 89 + [100.0] * 10 + [1000.0])
    again = AuxiliaryTargets.of([thousandfold], 2, 3.0)(thousandfold)[:, 0]
    np.testing.assert_allclose(again, targets)


def test_constant_rewards_give_zero_targets():
    buffer = buffer_of(np.eye(3), [0.5, 0.5, 0.5])
    assert not AuxiliaryTargets.of([buffer], 2, 3.0)(buffer).any()


def test_noise_weighs_less_than_differences_between_states():
    generator = np.random.default_rng(0)
    noise = 0.01 * generator.normal(size=(40, 3))
    side = np.sign(generator.normal(size=(40, 1))) * np.array([[1.0, 1.0, 0.0]])
    noisy = buffer_of(generator.normal(size=(40, 3)), np.zeros(40), noise)
    informative = buffer_of(generator.normal(size=(40, 3)), np.zeros(40), side + noise)
    auxiliary = AuxiliaryTargets.of([noisy, informative], 2, 3.0)
    assert auxiliary(informative)[:, 1].std() > 20 * auxiliary(noisy)[:, 1:].std()
    # The first direction is that along which the two states differ.
    first = auxiliary.directions[:, 0] / np.linalg.norm(auxiliary.directions[:, 0])
    assert abs(first @ np.array([1.0, 1.0, 0.0]) / np.sqrt(2)) > 0.99


def test_targets_are_means_over_samples_and_zero_after_the_end():
    inputs = np.array([[1.0], [1.0], [2.0]])
    following = np.array([[0.0], [4.0], [8.0]])
    buffer = buffer_of(inputs, [0.0, 1.0, 1.0], following, ended=[False, False, True])
    auxiliary = AuxiliaryTargets.of([buffer], 1, 3.0)
    targets = auxiliary(buffer)
    assert targets.shape == (2, 2)
    np.testing.assert_allclose(
        targets[0, 1], 0, atol=1e-12
    )  # the mean next observation is the center
    assert targets[1, 1] == 0
    assert targets[1, 0] > targets[0, 0]


def test_auxiliary_targets_do_not_change_the_data():
    data = MultitaskDataset(1, torch.Size([1]), torch.float64)
    data.append(torch.tensor([0]), torch.ones(1, 1), torch.ones(1))
    targets = data.with_auxiliary_targets(torch.ones(1, 3))
    assert data.auxiliary_targets is None and targets.auxiliary_targets is not None
    assert len(targets) == 1 and torch.equal(targets.targets, data.targets)


def test_straight_through_one_hot_is_soft_in_training_only():
    layer, logits = StraightThroughOneHot(), torch.tensor([[0.1, 0.3, 0.2], [2.0, 0.0, 0.0]])
    torch.testing.assert_close(layer.train()(logits), logits.softmax(-1))
    expected = torch.tensor([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]])
    torch.testing.assert_close(layer.eval()(logits), expected)


def test_a_cold_fit_is_used_only_if_its_held_out_error_is_smaller():
    module = nn.Linear(2, 2, bias=False)
    with torch.no_grad():
        module.weight.copy_(torch.eye(2))

    def broken(data, start, penalty, generator):
        """A failed fit: all features are zero."""
        zero_module = copy.deepcopy(module)
        nn.init.zeros_(zero_module.weight)
        return replace(start, representation=NeuralRepresentation(zero_module))

    inputs = torch.randn(20, 2, generator=torch.Generator().manual_seed(0))
    data = MultitaskDataset(1, torch.Size([2]), torch.float32)
    data.append(torch.zeros(20, dtype=torch.int64), inputs, inputs.sum(1).double())
    settings = FitSettings(
        num_tasks=1,
        representation_class=NeuralClass(module),
        fit=broken,
        penalty=HeadPenalty(0.1),
        offset=0.0,
        refit_growth=1.0,
    )
    warm = StageFit(settings, 0).fit(data, inputs)
    assert not features_of(warm, inputs).any()
    cold = StageFit(replace(settings, warm_start=False), 0).fit(data, inputs)
    torch.testing.assert_close(features_of(cold, inputs), inputs.double())
