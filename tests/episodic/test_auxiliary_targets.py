"""What representations learn from besides values: rewards, next observations, further heads."""

import copy
from dataclasses import replace

import numpy as np
import torch
from torch import nn

from gfucb.episodic.auxiliary_targets import AuxiliaryTargets
from gfucb.episodic.buffer import StageBuffer, Transitions
from gfucb.episodic.stage_fit import FitSettings, StageFit
from gfucb.models import (
    HeadPenalty,
    MultitaskDataset,
    NeuralClass,
    NeuralRepresentation,
    features_of,
)
from gfucb.models.nn.actionwise import StraightThroughOneHot


def memory_of(inputs, rewards, following=None, ended=None) -> StageBuffer:
    """One task; observations [n, x] are seen as one action's input."""
    memory = StageBuffer(1)
    count = len(inputs)
    over = np.zeros(count, dtype=bool) if ended is None else np.array(ended)
    places = None if following is None else np.asarray(following)[:, None]
    if places is None:
        over[:] = True
    memory.append(
        Transitions([0] * count, np.asarray(inputs), np.array(rewards, dtype=float), over, places)
    )
    return memory


def test_a_rare_large_reward_is_no_louder_than_a_small_one():
    memory = memory_of(np.eye(100), [0.0] * 89 + [0.1] * 10 + [1.0])
    told = AuxiliaryTargets.of([memory], 2, 3.0)(memory)[:, 0]
    nothing, small, large = told[0], told[90], told[99]
    assert nothing < small < large < nothing + 1.2 * (small - nothing)
    np.testing.assert_allclose([told.mean(), told.std()], [0, 3.0], atol=1e-12)
    thousandfold = memory_of(np.eye(100), [0.0] * 89 + [100.0] * 10 + [1000.0])
    again = AuxiliaryTargets.of([thousandfold], 2, 3.0)(thousandfold)[:, 0]
    np.testing.assert_allclose(again, told)


def test_rewards_that_do_not_vary_say_nothing():
    memory = memory_of(np.eye(3), [0.5, 0.5, 0.5])
    assert not AuxiliaryTargets.of([memory], 2, 3.0)(memory).any()


def test_noise_of_a_stage_that_leads_to_one_state_stays_quiet_beside_news_of_another():
    generator = np.random.default_rng(0)
    noise = 0.01 * generator.normal(size=(40, 3))
    side = np.sign(generator.normal(size=(40, 1))) * np.array([[1.0, 1.0, 0.0]])
    quiet = memory_of(generator.normal(size=(40, 3)), np.zeros(40), noise)
    loud = memory_of(generator.normal(size=(40, 3)), np.zeros(40), side + noise)
    further = AuxiliaryTargets.of([quiet, loud], 2, 3.0)
    assert further(loud)[:, 1].std() > 20 * further(quiet)[:, 1:].std()
    # What both states share lies in the first direction: that along which they differ.
    first = further.directions[:, 0] / np.linalg.norm(further.directions[:, 0])
    assert abs(first @ np.array([1.0, 1.0, 0.0]) / np.sqrt(2)) > 0.99


def test_samples_of_one_input_are_averaged_and_ended_ones_see_nothing():
    inputs = np.array([[1.0], [1.0], [2.0]])
    following = np.array([[0.0], [4.0], [8.0]])
    memory = memory_of(inputs, [0.0, 1.0, 1.0], following, ended=[False, False, True])
    further = AuxiliaryTargets.of([memory], 1, 3.0)
    told = further(memory)
    assert told.shape == (2, 2)
    np.testing.assert_allclose(told[0, 1], 0, atol=1e-12)  # the mean of what followed is the center
    assert told[1, 1] == 0
    assert told[1, 0] > told[0, 0]


def test_further_targets_are_a_value_beside_the_data():
    data = MultitaskDataset(1, torch.Size([1]), torch.float64)
    data.append(torch.tensor([0]), torch.ones(1, 1), torch.ones(1))
    told = data.with_auxiliary_targets(torch.ones(1, 3))
    assert data.auxiliary_targets is None and told.auxiliary_targets is not None
    assert len(told) == 1 and torch.equal(told.targets, data.targets)


def test_a_guess_is_soft_in_a_fit_and_one_hot_in_use():
    guess, logits = StraightThroughOneHot(), torch.tensor([[0.1, 0.3, 0.2], [2.0, 0.0, 0.0]])
    torch.testing.assert_close(guess.train()(logits), logits.softmax(-1))
    expected = torch.tensor([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]])
    torch.testing.assert_close(guess.eval()(logits), expected)


def test_a_fit_begun_anew_is_taken_only_if_it_errs_less_on_samples_held_out():
    module = nn.Linear(2, 2, bias=False)
    with torch.no_grad():
        module.weight.copy_(torch.eye(2))

    def broken(data, start, penalty, generator):
        """A fit whose luck was bad: it tells nothing apart."""
        blind = copy.deepcopy(module)
        nn.init.zeros_(blind.weight)
        return replace(start, representation=NeuralRepresentation(blind))

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
    taken = StageFit(settings, 0).fitted(data, inputs)
    assert not features_of(taken, inputs).any()
    kept = StageFit(replace(settings, warm_start=False), 0).fitted(data, inputs)
    torch.testing.assert_close(features_of(kept, inputs), inputs.double())
