"""The check whether self-supervision helps: on views that keep the reward, and on others."""

import pytest
import torch

from gfucb import GFUCB, VariableProjection
from gfucb.bandits.candidate_learning import CandidateLearning
from gfucb.bandits.candidate_training import trained_before_fit
from gfucb.core.random import random_stream
from gfucb.estimation import Contrastive, reward_check
from gfucb.estimation.reward_check import RewardCheck, standardised_gain
from gfucb.estimation.self_supervised_steps import train_network
from gfucb.models import DefaultNetworkClass, MultitaskDataset

NUM_PATTERNS, SIDE, SAMPLES = 6, 8, 240
NETWORK = DefaultNetworkClass(hidden=64, dropout=0.0)
QUICK = VariableProjection(steps=1)


def with_other_bottom(inputs: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Views: the lower half of another image below the upper half."""
    order = torch.randperm(len(inputs), generator=generator)
    return torch.cat([inputs[:, : SIDE // 2], inputs[order, SIDE // 2 :]], dim=1)


METHOD = Contrastive(views=with_other_bottom, batch_size=32)


def problem() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Images of two noisy patterns; rewards by the upper one, and rewards by the lower one."""
    generator = random_stream(0, "patterns")
    halves, rewards = [], []
    for _ in range(2):
        patterns = torch.rand(NUM_PATTERNS, SIDE // 2, SIDE, generator=generator)
        which = torch.randint(NUM_PATTERNS, (SAMPLES,), generator=generator)
        noise = torch.rand(SAMPLES, SIDE // 2, SIDE, generator=generator)
        halves.append(0.6 * patterns[which] + 0.4 * noise)
        rewards.append(torch.rand(NUM_PATTERNS, generator=generator)[which])
    return torch.cat(halves, dim=1), *rewards


IMAGES, BY_TOP, BY_BOTTOM = problem()


def data_of(rewards: torch.Tensor) -> MultitaskDataset:
    data = MultitaskDataset(2, torch.Size((SIDE, SIDE)), torch.float32)
    data.append(torch.arange(SAMPLES) % 2, IMAGES, rewards.double())
    return data


def test_the_gain_is_positive_where_views_keep_the_reward_and_negative_where_not():
    untrained = NETWORK.initial(IMAGES, random_stream(0, "network"), "cpu")
    trained = train_network(METHOD, untrained, IMAGES, random_stream(0, "steps"), 100)
    right, wrong = (
        standardised_gain(untrained, trained, data_of(rewards), offset=0.5, ridge=1.0)
        for rewards in (BY_TOP, BY_BOTTOM)
    )
    assert right > 4 and wrong < -2
    same = standardised_gain(untrained, untrained, data_of(BY_BOTTOM), offset=0.5, ridge=1.0)
    assert same == 0


def test_the_gain_does_not_depend_on_the_unit_of_rewards():
    untrained = NETWORK.initial(IMAGES, random_stream(0, "network"), "cpu")
    trained = train_network(METHOD, untrained, IMAGES, random_stream(0, "steps"), 5)
    gains = [
        standardised_gain(untrained, trained, data_of(unit * BY_TOP), offset=0, ridge=1.0)
        for unit in (1.0, 1e6)
    ]
    assert gains[0] == pytest.approx(gains[1], rel=1e-6)


@pytest.mark.parametrize(("rewards", "is_used"), [(BY_TOP, 1), (BY_BOTTOM, 0)])
def test_an_agent_uses_self_supervision_while_it_helps(rewards, is_used):
    agent = GFUCB(1, NETWORK, fit=QUICK, refit_growth=5.0, self_supervision=METHOD)
    assert agent.diagnostics()["self_supervision"] == 0  # there are no candidates
    zeros = torch.zeros(SAMPLES, dtype=torch.int64)
    agent.learn(zeros[:5], IMAGES[:5], rewards[:5])
    assert agent.diagnostics()["self_supervision"] == 1  # before the first check
    agent.learn(zeros[5:], IMAGES[5:], rewards[5:])
    assert agent.diagnostics()["self_supervision"] == is_used
    restored = GFUCB(1, NETWORK, fit=QUICK, refit_growth=5.0, self_supervision=METHOD)
    restored.load_state(agent.state())
    assert restored.diagnostics()["self_supervision"] == is_used
    restored.load_state({})
    restored.learn(zeros[:5], IMAGES[:5], rewards[:5])
    assert restored.diagnostics()["self_supervision"] == 1


def test_a_check_is_due_with_enough_samples_and_when_they_have_doubled():
    data = data_of(BY_TOP)
    assert RewardCheck().is_due(data)
    assert RewardCheck(True, SAMPLES // 2).is_due(data)
    assert not RewardCheck(True, SAMPLES // 2 + 1).is_due(data)
    few = MultitaskDataset(200, torch.Size((2,)), torch.float32)
    few.append(torch.arange(150), torch.zeros(150, 2), torch.zeros(150))
    assert not RewardCheck().is_due(few)  # one sample of each task


@pytest.mark.parametrize(("gain", "of_few", "of_many"), [(-0.1, 0, 0), (0.5, 1, 0), (1.1, 1, 1)])
def test_few_samples_end_the_use_only_if_errors_are_higher(monkeypatch, gain, of_few, of_many):
    monkeypatch.setattr(reward_check, "standardised_gain", lambda *args, **settings: gain)
    many = data_of(BY_TOP)
    few = MultitaskDataset(2, torch.Size((SIDE, SIDE)), torch.float32)
    few.append(torch.arange(150) % 2, IMAGES[:150], BY_TOP[:150].double())
    phi = NETWORK.initial(IMAGES[:1], random_stream(0, "network"), "cpu")
    used = [RewardCheck().after(phi, phi, d, offset=0.0, ridge=1.0).is_used for d in (few, many)]
    assert used == [bool(of_few), bool(of_many)]


@pytest.mark.parametrize(("rewards", "restarts"), [(BY_TOP, False), (BY_BOTTOM, True)])
def test_a_fit_starts_again_where_self_supervision_has_not_helped(rewards, restarts):
    learning = CandidateLearning.of(METHOD, seed=0).with_candidates(IMAGES)
    initial, so_far = (
        NETWORK.initial(IMAGES, random_stream(seed, "network"), "cpu") for seed in (0, 1)
    )
    after, phi = trained_before_fit(
        learning, so_far, data_of(rewards), lambda: initial, offset=0.5, ridge=1.0, fit_index=0
    )
    assert after.check.is_used != restarts
    assert (phi is initial) == restarts
    # The next fit goes on from its start: there is no new check.
    _, later = trained_before_fit(
        after, so_far, data_of(rewards), lambda: initial, offset=0.5, ridge=1.0, fit_index=1
    )
    assert (later is so_far) == restarts
