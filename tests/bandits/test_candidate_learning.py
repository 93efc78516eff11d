"""Agents that learn from all offered candidates: the pool, saved states, batches, refusals."""

import pickle
from dataclasses import replace

import pytest
import torch
from torch import nn

import gfucb
from gfucb import GFUCB, BatchedAgents, LinearClass, VariableProjection
from gfucb.bandits import Grouped, candidate_training
from gfucb.bandits.candidate_learning import CandidateLearning
from gfucb.core.errors import InvalidInputError
from gfucb.core.offered_candidates import OfferedCandidates
from gfucb.core.random import random_stream
from gfucb.estimation import Contrastive, TableViews, VICReg
from gfucb.models import DefaultNetworkClass, MultitaskDataset
from gfucb.models.nn.networks import default_network
from gfucb.models.nn.stacked import NetworkStack

SMALL = Contrastive(steps=2, batch_size=8, pool_size=24)
QUICK = VariableProjection(steps=2)
NETWORK = DefaultNetworkClass(hidden=8, feature_dim=20, num_directions=4)
POOL = "candidates.inputs"


def numbers(name: str, *shape: int) -> torch.Tensor:
    return torch.rand(*shape, generator=random_stream(0, "candidates", name))


def agent(method=SMALL, seed: int = 0, **options) -> GFUCB:
    return GFUCB(2, NETWORK, fit=QUICK, seed=seed, self_supervision=method, **options)


def play(agent: GFUCB, rounds: range, shape: tuple[int, ...] = (8, 8)) -> GFUCB:
    for index in rounds:
        decision = agent.decide(numbers(f"c{index}", 2, 5, *shape))
        agent.observe(decision, numbers(f"r{index}", 2))
    return agent


def same(one: dict, other: dict) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[n], other[n]) for n in one)


def test_candidates_enter_the_pool_when_their_decision_is_observed():
    learning, offered = agent(), numbers("c0", 2, 5, 8, 8)
    before = learning.state()
    decision = learning.decide(offered)
    assert same(before, learning.state())
    learning.observe(decision, [0.1, 0.9])
    pool = learning.state()[POOL]
    assert len(pool) == 10  # all candidates, not the two chosen ones
    assert len(torch.cat([pool, offered.flatten(0, 1)]).unique(dim=0)) == 10


def test_the_pool_is_bounded():
    assert len(play(agent(), range(4)).state()[POOL]) == 24


def test_the_order_of_rewards_does_not_matter_for_the_pool():
    whole, parts = agent(), agent()
    first, second = (whole.decide(numbers(f"c{i}", 2, 5, 8, 8)) for i in range(2))
    for decision in (first, second):
        whole.observe(decision, [0.1, 0.9])
    for decision in (second[1], first[[1]], second[torch.tensor([True, False])], first[:1]):
        parts.observe(decision, [0.5])
    assert torch.equal(whole.state()[POOL], parts.state()[POOL])


def test_rows_without_rewards_do_not_enter_the_pool():
    learning = agent()
    learning.observe(learning.decide(numbers("c0", 2, 5, 8, 8))[0], [0.5])
    assert len(learning.state()[POOL]) == 5


def test_unavailable_candidates_do_not_enter_the_pool():
    learning = agent()
    available = torch.ones(2, 5, dtype=torch.bool)
    available[0, 2:] = False
    learning.observe(learning.decide(numbers("c0", 2, 5, 8, 8), None, available), [0.1, 0.9])
    assert len(learning.state()[POOL]) == 7


def test_items_of_a_catalogue_enter_the_pool_once():
    learning = agent()
    for _ in range(3):
        decision = learning.decide_from(numbers("catalogue", 6, 8, 8))
        assert decision.offered.candidates.stride(0) == 0
        assert decision[[0, 1]].offered.candidates.stride(0) == 0
        learning.observe(decision[0], [0.3])
    assert len(learning.state()[POOL]) == 6


def test_a_log_has_only_the_chosen_inputs():
    learning = agent()
    learning.learn([0, 1, 0], numbers("log", 3, 8, 8), [0.1, 0.2, 0.3])
    assert len(learning.state()[POOL]) == 3
    learning.learn([], torch.zeros(0, 8, 8), [])
    assert len(learning.state()[POOL]) == 3


def test_self_supervision_changes_fits_and_nothing_else_without_it():
    plain, learning = play(agent(None), range(3)), play(agent(), range(3))
    assert plain.decide(numbers("q", 2, 5, 8, 8)).offered is None
    assert not any(name.startswith("candidates.") for name in plain.state())
    name = "representation.module.3.weight"
    assert not torch.equal(plain.state()[name], learning.state()[name])
    idle = play(agent(replace(SMALL, steps=0)), range(3))
    assert all(torch.equal(tensor, idle.state()[n]) for n, tensor in plain.state().items())


@pytest.mark.parametrize("method", [SMALL, VICReg(steps=2, batch_size=8)])
@pytest.mark.parametrize("shape", [(8, 8), (6,)])
def test_a_restored_agent_continues_exactly(tmp_path, method, shape):
    learning = play(agent(method), range(3), shape)
    gfucb.save(learning, tmp_path / "agent")
    restored = agent(method)
    gfucb.restore(restored, tmp_path / "agent")
    assert same(
        play(learning, range(3, 6), shape).state(), play(restored, range(3, 6), shape).state()
    )
    restored.load_state({})
    assert same(play(restored, range(2)).state(), play(agent(method), range(2)).state())


def changed(state: dict, **tensors) -> dict:
    return {k: t.clone() for k, t in state.items()} | {
        f"candidates.{name}": tensor for name, tensor in tensors.items()
    }


def test_damaged_pools_are_refused():
    learning = play(agent(), range(3))
    state, pool = learning.state(), learning.state()[POOL]
    nan = pool.clone()
    nan[0, 0, 0] = float("nan")
    flipped = pool.clone()
    flipped[:, 0, 0] += 0.5
    bad_pools = [nan, flipped, pool[:, :4], pool.double(), pool[:0], pool.flip(0), pool * 1e30]
    for bad in bad_pools:
        with pytest.raises(InvalidInputError):
            learning.load_state(changed(state, inputs=bad))
    for check in ([2, 0], [1, 7], [-1, 0], [1], [1.0, 0.0]):
        with pytest.raises(InvalidInputError, match="check"):
            learning.load_state(changed(state, check=torch.tensor(check)))
    with pytest.raises(InvalidInputError, match="unexpected"):
        learning.load_state(changed(state, more=torch.zeros(1)))
    without = {name: t for name, t in state.items() if name != POOL}
    with pytest.raises(InvalidInputError, match="no tensor"):
        learning.load_state(without)
    with pytest.raises(InvalidInputError, match="unexpected"):
        agent(None).load_state(state)
    assert same(state, learning.state())


def test_a_refused_reward_leaves_the_pool_as_it_is():
    learning = play(agent(), range(1))
    before = learning.state()
    decision = learning.decide(numbers("c9", 2, 5, 8, 8))
    with pytest.raises(InvalidInputError):
        learning.observe(decision, [0.1, float("nan")])

    def broken(inputs, generator):
        raise RuntimeError("broken views")

    learning.network_learner.candidates = replace(
        learning.network_learner.candidates, method=replace(SMALL, views=broken)
    )
    for index in range(2, 5):
        decision = learning.decide(numbers(f"c{index}", 2, 5, 8, 8))
        with pytest.raises(RuntimeError, match="broken views"):
            learning.observe(decision, [0.1, 0.9])
    assert same(before, learning.state())


@pytest.mark.parametrize(
    "offered",
    [
        3,
        OfferedCandidates(torch.zeros(2, 5, 8, 8), None),
        OfferedCandidates(torch.zeros(1, 5, 8, 8), torch.ones(1, 5, dtype=torch.bool)),
        OfferedCandidates(torch.zeros(2, 5, 8), torch.ones(2, 5, dtype=torch.bool)),
        OfferedCandidates(torch.zeros(2, 5, 8, 8), torch.ones(2, 4, dtype=torch.bool)),
        OfferedCandidates(torch.zeros(2, 5, 8, 8), torch.ones(2, 5)),
        OfferedCandidates(torch.zeros(2, 5, 8, 8).double(), torch.ones(2, 5, dtype=torch.bool)),
        OfferedCandidates(torch.zeros(2, 5, 8, 8) / 0, torch.ones(2, 5, dtype=torch.bool)),
    ],
)
def test_changed_decisions_are_refused(offered):
    learning = play(agent(), range(1))
    before = learning.state()
    decision = learning.decide(numbers("c1", 2, 5, 8, 8))
    with pytest.raises(InvalidInputError, match="offered"):
        learning.observe(replace(decision, offered=offered), [0.1, 0.9])
    assert same(before, learning.state())


def test_decisions_that_were_sent_or_built_elsewhere_are_learned():
    learning = agent()
    decision = learning.decide(numbers("c0", 2, 5, 8, 8))
    learning.observe(pickle.loads(pickle.dumps(decision)), [0.1, 0.9])
    assert len(learning.state()[POOL]) == 10
    learning.observe(replace(decision, offered=None), [0.1, 0.9])
    assert len(learning.state()[POOL]) == 10


def test_ids_and_tables_of_the_default_agent_have_no_pool():
    ids = GFUCB(2, nn.Embedding(9, 4), fit=QUICK, self_supervision=SMALL)
    ids.observe(ids.decide(torch.arange(8).view(2, 4)), [0.1, 0.9])
    assert POOL not in ids.state()
    again = GFUCB(2, nn.Embedding(9, 4), fit=QUICK, self_supervision=SMALL)
    again.load_state(ids.state())
    for method in (SMALL, "auto"):
        table = GFUCB(2, self_supervision=method)
        decision = table.decide(numbers("t", 2, 5, 6))
        assert decision.offered is None
        table.observe(decision, [0.1, 0.9])
        assert POOL not in table.state()


def test_auto_is_for_images_of_the_default_network():
    images = GFUCB(2, self_supervision="auto")
    assert images.decide(numbers("i", 2, 5, 8, 8)).offered is not None
    own = GFUCB(2, nn.Sequential(nn.Flatten(), nn.Linear(64, 3)), self_supervision="auto")
    assert own.decide(numbers("i", 2, 5, 8, 8)).offered is None
    table = GFUCB(2, NETWORK, self_supervision="auto")
    assert table.decide(numbers("t", 2, 5, 6)).offered is None
    assert GFUCB(2, LinearClass(6, 2), self_supervision="auto").network_learner.candidates is None


def test_a_network_for_tables_uses_views_of_tables():
    table = agent(replace(SMALL, views=TableViews(0.5)))
    assert len(play(table, range(2), (6,)).state()[POOL]) == 20


def test_groups_learn_from_their_own_candidates():
    groups = Grouped(2, lambda m, seed: GFUCB(m, NETWORK, fit=QUICK, self_supervision=SMALL))
    decision = groups.decide(numbers("c0", 2, 5, 8, 8))
    groups.observe(decision, [0.1, 0.9])
    assert len(groups.state()[f"0/{POOL}"]) == len(groups.state()[f"1/{POOL}"]) == 5


@pytest.mark.parametrize("method", ["on", "AUTO", 3, True, Contrastive, object(), lambda x: x])
def test_wrong_arguments_are_refused(method):
    with pytest.raises(InvalidInputError, match="self_supervision"):
        GFUCB(2, self_supervision=method)


def test_classes_that_are_no_networks_are_refused():
    with pytest.raises(InvalidInputError, match="trains networks"):
        GFUCB(2, LinearClass(6, 2), self_supervision=SMALL)


def double(seed: int) -> GFUCB:
    # Double precision: training amplifies rounding, and single would hide a real difference.
    module = default_network((8, 8), random_stream(seed, "network"), hidden=8).double()
    return GFUCB(2, module, fit=QUICK, seed=seed, self_supervision=SMALL)


def test_a_batch_learns_as_separate_agents_do():
    batch, alone = BatchedAgents([double(0), double(1)]), [double(0), double(1)]
    for index in range(4):
        candidates, rewards = numbers(f"c{index}", 2, 2, 5, 8, 8), numbers(f"r{index}", 2, 2)
        together = batch.decide(candidates)
        if index == 2:
            with pytest.raises(InvalidInputError, match="offered"):
                batch.observe(replace(together, offered=3), rewards)
        batch.observe(together, rewards)
        for own, offered, reward, actions in zip(
            alone, candidates, rewards, together.actions, strict=True
        ):
            decision = own.decide(offered)
            assert torch.equal(decision.actions, actions)
            own.observe(decision, reward)
    for one, other in zip(batch.unbatch(), alone, strict=True):
        mine, theirs = one.state(), other.state()
        assert mine.keys() == theirs.keys()
        assert torch.equal(mine[POOL], theirs[POOL])
        assert torch.allclose(mine["heads"], theirs["heads"], atol=1e-6)


def test_checks_of_a_stack_are_those_of_separate_networks(monkeypatch):
    monkeypatch.setattr(candidate_training, "CHECK_STEPS", 5)
    data = MultitaskDataset(2, torch.Size((8, 8)), torch.float32)
    data.append(torch.arange(120) % 2, numbers("data", 120, 8, 8), numbers("y", 120).double())
    agents = [double(seed) for seed in (0, 1)]
    networks = [own.network_learner.prior(data.inputs)[0].representation for own in agents]
    learnings = [
        CandidateLearning.of(SMALL, seed).with_candidates(numbers("pool", 30, 8, 8))
        for seed in (0, 1)
    ]
    shared = {"ridge": 1.0}
    alone = [
        candidate_training.trained_before_fit(
            own, phi, data, lambda phi=phi: phi, offset=0.5, fit_index=3, **shared
        )
        for own, phi in zip(learnings, networks, strict=True)
    ]
    stack = NetworkStack(networks)
    together = candidate_training.train_stack_before_fit(
        learnings,
        stack,
        [data, data],
        lambda index: networks[index],
        offsets=[0.5, 0.5],
        fit_indices=[3, 3],
        **shared,
    )
    assert [own.check for own in together] == [own.check for own, _ in alone]
    assert all(own.check.num_samples == 120 for own in together)
    for (_, phi), other in zip(alone, stack.unstacked(), strict=True):
        for a, b in zip(phi.module.parameters(), other.module.parameters(), strict=True):
            assert torch.allclose(a, b, atol=1e-9)


def test_a_batch_refuses_agents_with_different_self_supervision():
    with pytest.raises(InvalidInputError, match="self_supervision"):
        BatchedAgents([agent(seed=0), agent(None, seed=1)])
