"""Restoring into an agent with other settings: refused by the name of the setting."""

import pytest
import torch
from checkpoint_cases import QUICK, assert_refused, small_agent, trained
from torch import nn

import gfucb
from gfucb import GFUCB, ConstantRadius, FiniteClass, LastLayer, VariableProjection
from gfucb.bandits import Grouped, neural_linear_ts, neural_ts, squarecb
from gfucb.core.errors import SavedStateError
from gfucb.exploration import HeadSampling
from gfucb.models import IdentityRepresentation


def test_an_agent_of_another_type_or_size_is_refused(tmp_path):
    path = tmp_path / "agent"
    gfucb.save(small_agent(num_tasks=4), path)
    assert_refused(small_agent(), path, "its num_tasks is 4, this agent's is 3")
    gfucb.save(gfucb.Uniform(3), path)
    assert_refused(small_agent(), path, "its agent is Uniform, this agent's is GFUCB")


def net(activation: nn.Module, width: int = 6) -> nn.Module:
    return nn.Sequential(nn.Linear(5, width), activation)


FIRST, SECOND = IdentityRepresentation(), lambda x: x.double() ** 2
NETWORKS = [
    ({"representation": net(nn.ReLU())}, {"representation": net(nn.Tanh())}, "representation"),
    ({"representation": net(nn.ReLU())}, {"representation": net(nn.ReLU(), 7)}, "representation"),
    ({"representation": net(nn.ReLU())}, {}, "representation"),
    ({}, {"fit": VariableProjection(steps=4)}, "fit"),
    ({"squared_radius": ConstantRadius(0.1)}, {"squared_radius": ConstantRadius(50)}, "radius"),
    ({}, {"squared_radius": ConstantRadius(0.1)}, "squared_radius"),
    ({}, {"action_selector": LastLayer(joint=False)}, "action_selector"),
    ({"action_selector": HeadSampling(0)}, {"action_selector": HeadSampling(1)}, "seed"),
    ({"ridge": 2.0}, {}, "its ridge is 2.0, this agent's is 1.0"),
    ({"head_norm_bound": 9.0}, {}, "head_norm_bound"),
    ({"value_range": (0, 2), "offset": 0.5}, {"offset": 0.5}, "squared_radius|value_range"),
    ({"offset": 0.25}, {}, "its offset is 0.25"),
    ({"refit_growth": 2.0}, {}, "refit_growth"),
    ({"seed": 1}, {}, "its seed is 1"),
]
CLASSES = [
    ([FIRST, SECOND], [SECOND, FIRST]),
    ([FIRST, SECOND], [FIRST]),
    ([FIRST, SECOND], [FIRST, lambda x: x.double() ** 3]),
    ([lambda x: x.double()], [lambda x: 2 * x.double()]),
]


@pytest.mark.parametrize(("saved", "own", "message"), NETWORKS)
def test_an_agent_with_other_settings_is_refused_by_name(saved, own, message, tmp_path):
    gfucb.save(small_agent(**saved), tmp_path / "agent")
    assert_refused(small_agent(**own), tmp_path / "agent", message)


@pytest.mark.parametrize(("saved", "own"), CLASSES)
def test_a_reordered_or_different_finite_class_is_refused(saved, own, tmp_path):
    gfucb.save(trained(GFUCB(3, FiniteClass(saved))), tmp_path / "agent")
    other = trained(GFUCB(3, FiniteClass(own)))
    assert_refused(other, tmp_path / "agent", "its (representation|fit|refit_growth) is")


def independent(epsilon: float = 0.1, second: float | None = None, seed: int = 0) -> Grouped:
    """Two groups of epsilon-greedy agents; `second` is the epsilon of the second group."""
    epsilons = iter([epsilon, epsilon if second is None else second])

    def make(num_tasks: int, group_seed: int) -> gfucb.EpsilonGreedy:
        inner = gfucb.linucb(num_tasks, seed=group_seed)
        return gfucb.EpsilonGreedy(inner, epsilon=next(epsilons), seed=group_seed)

    return Grouped(2, make, seed=seed)


@pytest.mark.parametrize(
    ("saved", "own", "message"),
    [
        (lambda: gfucb.linucb(3, alpha=0.1), lambda: gfucb.linucb(3, alpha=0.3), "squared_radius"),
        (lambda: gfucb.Uniform(3, seed=1), lambda: gfucb.Uniform(3), "its seed is 1"),
        (
            lambda: gfucb.EpsilonGreedy(gfucb.Uniform(3), epsilon=0.2),
            lambda: gfucb.EpsilonGreedy(gfucb.Uniform(3), epsilon=0.3),
            "its epsilon is 0.2, this agent's is 0.3",
        ),
        (
            lambda: gfucb.EpsilonGreedy(gfucb.Uniform(3), seed=1),
            lambda: gfucb.EpsilonGreedy(gfucb.Uniform(3), seed=2),
            "its seed is 1",
        ),
        (
            lambda: gfucb.EpsilonGreedy(gfucb.Uniform(3)),
            lambda: gfucb.EpsilonGreedy(gfucb.linucb(3)),
            r"its inner agent is Uniform",
        ),
        (
            lambda: gfucb.EpsilonGreedy(gfucb.linucb(3, alpha=0.1)),
            lambda: gfucb.EpsilonGreedy(gfucb.linucb(3)),
            r"its inner agent\.squared_radius",
        ),
        (lambda: independent(0.1, 0.5), lambda: independent(0.1), r"inner agent\.epsilon.*1: 0\.5"),
        (lambda: independent(seed=1), lambda: independent(), "seed"),
        (
            lambda: neural_linear_ts(3, fit=QUICK, seed=1),
            lambda: neural_linear_ts(3, fit=QUICK, seed=2),
            "seed",
        ),
        (
            lambda: neural_ts(3, fit=QUICK, seed=1),
            lambda: neural_ts(3, fit=QUICK, seed=2),
            "seed",
        ),
        (
            lambda: squarecb(3, fit=QUICK, scale=1.0),
            lambda: squarecb(3, fit=QUICK, scale=2.0),
            "scale=1.0",
        ),
    ],
)
def test_baselines_with_other_settings_are_refused_by_name(saved, own, message, tmp_path):
    gfucb.save(trained(saved()), tmp_path / "agent")
    assert_refused(trained(own()), tmp_path / "agent", message)


def test_the_initial_weights_of_a_network_are_no_setting(tmp_path):
    gfucb.save(small_agent(representation=net(nn.ReLU())), tmp_path / "agent")
    gfucb.restore(small_agent(representation=net(nn.ReLU())), tmp_path / "agent")


def linear_network(seed: int) -> torch.nn.Module:
    torch.manual_seed(seed)
    return torch.nn.Linear(4, 3)


def test_an_agent_without_data_is_restored_with_the_same_initial_weights_only(tmp_path):
    gfucb.save(gfucb.GFUCB(2, linear_network(0)), tmp_path / "agent")
    gfucb.restore(gfucb.GFUCB(2, linear_network(0)), tmp_path / "agent")
    with pytest.raises(SavedStateError, match="initial_weights"):
        gfucb.restore(gfucb.GFUCB(2, linear_network(1)), tmp_path / "agent")


def test_an_agent_with_data_is_restored_from_any_initial_weights(tmp_path):
    agent, again = (gfucb.GFUCB(2, linear_network(seed)) for seed in (0, 1))
    x = torch.rand(2, 3, 4)
    agent.observe(agent.decide(x), [0.0, 1.0])
    gfucb.save(agent, tmp_path / "agent")
    gfucb.restore(again, tmp_path / "agent")
    assert torch.equal(again.decide(x).optimistic_values, agent.decide(x).optimistic_values)


@pytest.mark.parametrize("warm_start", [True, False])
def test_initial_weights_count_where_every_fit_starts_from_them(tmp_path, warm_start):
    def make(seed: int) -> gfucb.EpisodicGFUCB:
        return gfucb.EpisodicGFUCB(2, 1, linear_network(seed), warm_start=warm_start)

    agent, x = make(0), torch.rand(2, 3, 4)
    agent.plan(x)
    agent.observe(0, agent.decide(0, x), [0.0, 1.0])
    gfucb.save(agent, tmp_path / "agent")
    gfucb.restore(make(0), tmp_path / "agent")
    if warm_start:
        gfucb.restore(make(1), tmp_path / "agent")
    else:
        with pytest.raises(SavedStateError, match="initial weights"):
            gfucb.restore(make(1), tmp_path / "agent")


def nothing_learned(agent: gfucb.core.protocols.BanditAgent) -> None:
    """Learn nothing."""


def task_0_learned(agent: gfucb.core.protocols.BanditAgent) -> None:
    """Learn one reward of task 0, so that the other group has no data."""
    candidates = torch.rand(1, 3, 4)
    agent.observe(agent.decide(candidates, tasks=torch.tensor([0])), torch.tensor([0.5]))


def grouped(*seeds: int) -> Grouped:
    networks = iter([linear_network(seed) for seed in seeds])
    return Grouped(2, lambda num_tasks, _: gfucb.GFUCB(num_tasks, next(networks)))


@pytest.mark.parametrize(
    ("saved", "learn", "other"),
    [
        (
            lambda: gfucb.EpsilonGreedy(gfucb.GFUCB(2, linear_network(0))),
            nothing_learned,
            lambda: gfucb.EpsilonGreedy(gfucb.GFUCB(2, linear_network(1))),
        ),
        (lambda: grouped(0, 0), nothing_learned, lambda: grouped(0, 1)),
        (lambda: grouped(0, 0), task_0_learned, lambda: grouped(0, 1)),
        (
            lambda: gfucb.EpsilonGreedy(grouped(0, 0)),
            task_0_learned,
            lambda: gfucb.EpsilonGreedy(grouped(0, 1)),
        ),
    ],
    ids=["epsilon-greedy", "no data", "a group without data", "nested"],
)
def test_initial_weights_inside_wrappers_count_where_there_are_no_data(
    tmp_path, saved, learn, other
):
    agent = saved()
    learn(agent)
    gfucb.save(agent, tmp_path / "agent")
    gfucb.restore(saved(), tmp_path / "agent")
    with pytest.raises(SavedStateError, match="initial_weights"):
        gfucb.restore(other(), tmp_path / "agent")


def test_the_initial_weights_of_a_group_with_data_do_not_count(tmp_path):
    agent = grouped(0, 0)
    task_0_learned(agent)
    gfucb.save(agent, tmp_path / "agent")
    gfucb.restore(grouped(1, 0), tmp_path / "agent")
