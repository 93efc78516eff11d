"""Passes over inputs: a decision computes features once, and `observe` reuses them."""

import copy
import pickle
from dataclasses import replace

import pytest
import torch
from torch import nn

from gfucb import GFUCB, EpsilonGreedy, FiniteClass
from gfucb.bandits import Grouped
from gfucb.core.random import global_randomness_from, random_stream
from gfucb.estimation import AdamFit, Exhaustive, VariableProjection, best_on, penalised_error
from gfucb.exploration import (
    ExactFinite,
    FineTuning,
    Greedy,
    HeadSampling,
    InverseGap,
    LastLayer,
    Linearised,
)
from gfucb.models import HeadPenalty

TASKS, ACTIONS = 3, 4


class Counted:
    """A representation that records how many inputs each call has."""

    def __init__(self) -> None:
        self.calls: list[int] = []

    def __call__(self, inputs):
        self.calls.append(len(inputs))
        return torch.stack([inputs.sum(1), inputs.square().sum(1)], dim=1)

    def passes(self) -> list[int]:
        """The calls since this was last read."""
        calls, self.calls = self.calls, []
        return calls


class CountedNetwork(nn.Module):
    """A network whose copies record their calls in one list."""

    calls: list[int] = []  # noqa: RUF012  shared by copies on purpose

    def __init__(self) -> None:
        super().__init__()
        with global_randomness_from(random_stream(0, "network")):
            self.linear = nn.Linear(2, 3)

    def forward(self, inputs):
        CountedNetwork.calls.append(len(inputs))
        return torch.tanh(self.linear(inputs))


def network_passes() -> list[int]:
    calls, CountedNetwork.calls = CountedNetwork.calls, []
    return calls


def candidates(seed: int) -> torch.Tensor:
    return torch.randn(TASKS, ACTIONS, 2, generator=random_stream(seed, "candidates"))


def rewards(seed: int) -> torch.Tensor:
    return torch.rand(TASKS, generator=random_stream(seed, "rewards"))


SELECTORS = [
    LastLayer(),
    LastLayer(joint=False),
    Greedy(),
    ExactFinite(),
    HeadSampling(),
    InverseGap(),
]


@pytest.mark.parametrize("selector", SELECTORS, ids=repr)
def test_a_round_is_one_pass_over_the_candidates(selector):
    phi = Counted()
    agent = GFUCB(TASKS, FiniteClass([phi]), value_range=None, action_selector=selector)
    agent.observe(agent.decide(candidates(0)), rewards(0))
    for seed in range(1, 4):
        phi.passes()
        decision = agent.decide(candidates(seed))
        assert phi.passes() == [TASKS * ACTIONS]
        agent.observe(decision, rewards(seed))
        assert phi.passes() == []


@pytest.mark.parametrize("selector", [LastLayer(), Greedy()], ids=repr)
def test_a_catalogue_is_one_pass_over_its_items(selector):
    phi = Counted()
    agent = GFUCB(TASKS, FiniteClass([phi]), value_range=None, action_selector=selector)
    agent.observe(agent.decide_from(candidates(0)[0]), rewards(0))
    phi.passes()
    agent.observe(agent.decide_from(candidates(1)[0]), rewards(1))
    assert phi.passes() == [ACTIONS]


def test_a_network_passes_over_the_chosen_inputs_only_in_a_refit():
    agent = GFUCB(TASKS, CountedNetwork(), seed=0, refit_growth=4.0, value_range=None)
    agent.observe(agent.decide(candidates(0)), rewards(0))  # the first fit
    for seed in range(1, 3):
        network_passes()
        decision = agent.decide(candidates(seed))
        assert network_passes() == [TASKS * ACTIONS]
        agent.observe(decision, rewards(seed))
        assert network_passes() == []
    fits = agent.learner.num_fits
    agent.observe(agent.decide(candidates(4)), rewards(4))
    assert agent.learner.num_fits == fits + 1
    assert network_passes()[-1] == 4 * TASKS  # the new phi on all data, once
    assert agent.learner.state()["heads"].shape == (TASKS, 3)


def test_a_refit_passes_over_all_data_once_after_the_training():
    agent = GFUCB(TASKS, CountedNetwork(), seed=0, refit_growth=1.0, fit=AdamFit(epochs=1))
    for seed in range(3):
        agent.observe(agent.decide(candidates(seed)), rewards(seed))
    decision = agent.decide(candidates(3))
    network_passes()
    agent.observe(decision, rewards(3))
    training_batch, all_data = network_passes()
    assert training_batch == all_data == 4 * TASKS


def test_a_refit_that_leaves_phi_alone_computes_nothing_of_old_data():
    fit = VariableProjection(steps=1)
    agent = GFUCB(TASKS, CountedNetwork(), seed=0, refit_growth=1.0, fit=fit, value_range=None)
    module = agent.representation_class.module
    assert not fit.can_train(2, module, 3) and fit.can_train(3, module, 3)
    agent.observe(agent.decide(candidates(0)[:1], tasks=[0]), rewards(0)[:1])
    phi = agent.confidence_set(candidates(0)[0]).center.representation
    decision = agent.decide(candidates(1)[:1], tasks=[1])
    network_passes()
    agent.observe(decision, rewards(1)[:1])
    assert network_passes() == []
    assert agent.learner.num_fits == 2
    confidence_set = agent.confidence_set(candidates(0)[0])
    assert confidence_set.center.representation is phi
    fresh = best_on(phi, confidence_set.data, confidence_set.center, HeadPenalty())
    torch.testing.assert_close(confidence_set.center.heads, fresh.heads)


def test_features_are_computed_again_after_a_refit():
    agent = GFUCB(TASKS, CountedNetwork(), seed=0, refit_growth=1.0)
    late = agent.decide(candidates(0))
    for seed in range(1, 4):
        agent.observe(agent.decide(candidates(seed)), rewards(seed))
    other = copy.deepcopy(agent)
    agent.observe(late, rewards(0))
    other.observe(replace(late, features=None), rewards(0))
    for name, tensor in agent.state().items():
        assert torch.equal(tensor, other.state()[name]), name


def changed_inputs(decision):
    return replace(decision, inputs=decision.inputs + 1)


def written_inputs(decision):
    decision.inputs.add_(1)
    return decision


@pytest.mark.parametrize("change", [changed_inputs, written_inputs])
def test_features_of_other_inputs_are_not_used(change):
    phi = Counted()
    agent = GFUCB(TASKS, FiniteClass([phi]), value_range=None)
    agent.observe(agent.decide(candidates(0)), rewards(0))
    decision = change(agent.decide(candidates(1)))
    logged = copy.deepcopy(agent)
    phi.passes()
    agent.observe(decision, rewards(1))
    assert phi.passes() == [TASKS]
    logged.learn(decision.tasks, decision.inputs, rewards(1))
    assert torch.equal(agent.state()["statistics.grams"], logged.state()["statistics.grams"])


def test_some_rows_of_a_decision_have_their_features():
    phi = Counted()
    agent = GFUCB(TASKS, FiniteClass([phi]), value_range=None)
    agent.observe(agent.decide(candidates(0)), rewards(0))
    decision, logged = agent.decide(candidates(1)), copy.deepcopy(agent)
    phi.passes()
    agent.observe(decision[[2, 0]], rewards(1)[[2, 0]])
    assert phi.passes() == []
    part = decision[[2, 0]]
    logged.learn(part.tasks, part.inputs, rewards(1)[[2, 0]])
    torch.testing.assert_close(
        agent.state()["statistics.grams"], logged.state()["statistics.grams"]
    )


def counted_groups() -> tuple[list[Counted], Grouped]:
    maps = [Counted() for _ in range(TASKS)]
    unused = iter(maps)

    def group(tasks: int, seed: int) -> GFUCB:
        return GFUCB(tasks, FiniteClass([next(unused)]), value_range=None)

    return maps, Grouped(TASKS, group)


@pytest.mark.parametrize("is_wrapped", [False, True])
def test_groups_learn_from_the_features_of_their_decisions(is_wrapped):
    maps, agent = counted_groups()
    if is_wrapped:
        agent = EpsilonGreedy(agent, epsilon=0.5)
    agent.observe(agent.decide(candidates(0)), rewards(0))
    [phi.passes() for phi in maps]
    order = torch.tensor([2, 0, 1, 0])
    decision, logged = agent.decide(candidates(1)[order], tasks=order), copy.deepcopy(agent)
    assert [phi.passes() for phi in maps] == [[2 * ACTIONS], [ACTIONS], [ACTIONS]]
    agent.observe(decision[[3, 1, 0]], rewards(1)[[0, 0, 2]])
    agent.observe(decision[[2]], rewards(1)[[1]])
    assert [phi.passes() for phi in maps] == [[], [], []]
    bare = replace(decision, features=None)
    logged.observe(bare[[3, 1, 0]], rewards(1)[[0, 0, 2]])
    logged.observe(bare[[2]], rewards(1)[[1]])
    for name, tensor in agent.state().items():
        torch.testing.assert_close(tensor, logged.state()[name])


def test_groups_of_groups_learn_from_the_features_of_their_decisions():
    maps, inner = counted_groups()
    agent = Grouped(TASKS, lambda tasks, seed: inner, group_size=TASKS)
    agent.observe(agent.decide(candidates(0)), rewards(0))
    [phi.passes() for phi in maps]
    agent.observe(agent.decide(candidates(1)), rewards(1))
    assert [phi.passes() for phi in maps] == [[ACTIONS]] * TASKS


@pytest.mark.parametrize("change", [changed_inputs, written_inputs])
def test_groups_do_not_use_features_of_other_inputs(change):
    maps, agent = counted_groups()
    agent.observe(agent.decide(candidates(0)), rewards(0))
    decision = change(agent.decide(candidates(1)))
    [phi.passes() for phi in maps]
    agent.observe(decision, rewards(1))
    assert [phi.passes() for phi in maps] == [[1]] * TASKS


def test_a_decision_on_its_way_to_another_process_leaves_the_network_behind():
    agent = GFUCB(TASKS, CountedNetwork(), seed=0)
    agent.observe(agent.decide(candidates(0)), rewards(0))
    decision = agent.decide(candidates(1))
    assert decision.features is not None
    received = pickle.loads(pickle.dumps(decision))
    assert received.features is None
    assert torch.equal(received.inputs, decision.inputs)
    agent.observe(received, rewards(1))


@pytest.mark.parametrize("selector", [Linearised(), FineTuning.stable(iterations=2)], ids=repr)
def test_selectors_on_gradients_learn_from_the_same_features(selector):
    agent = GFUCB(TASKS, CountedNetwork(), seed=0, action_selector=selector, refit_growth=9.0)
    agent.observe(agent.decide(candidates(0)), rewards(0))
    decision, logged = agent.decide(candidates(1)), copy.deepcopy(agent)
    agent.observe(decision, rewards(1))
    logged.observe(replace(decision, features=None), rewards(1))
    for name, tensor in agent.state().items():
        torch.testing.assert_close(tensor, logged.state()[name])


def test_an_exhaustive_fit_passes_over_the_data_once_for_each_member(finite_case):
    case, members = finite_case(0), [Counted(), Counted()]
    start = replace(case.center, representation=members[0])
    Exhaustive(FiniteClass(members))(case.data, start, HeadPenalty(), random_stream(0, "fit"))
    assert [member.passes() for member in members] == [[len(case.data)]] * 2


def test_statistics_of_another_representation_or_other_data_are_not_used(finite_case):
    case, (one, other) = finite_case(0), (Counted(), Counted())
    fit = best_on(one, case.data, case.center, HeadPenalty())
    assert fit.head_fit_of(case.data) is not None
    assert replace(fit, representation=other).head_fit_of(case.data) is None
    assert fit.head_fit_of(case.data.snapshot()) is None
    assert fit.with_heads(fit.heads).head_fit_of(case.data) is None
    case.data.append(case.data.tasks[:1], case.data.inputs[:1], case.data.targets[:1])
    assert fit.head_fit_of(case.data) is None
    one.passes()
    penalised_error(fit, case.data, HeadPenalty())
    assert one.passes() == [len(case.data)]
