"""Bad input: a sentence that helps, and nothing changes."""

import numpy as np
import pytest
import torch
from torch import nn

import gfucb
from gfucb import GFUCB, VariableProjection
from gfucb.core.errors import InvalidInputError

NAN, INF = float("nan"), float("inf")


def taught_agent() -> GFUCB:
    agent = GFUCB(3, fit=VariableProjection(steps=2))
    agent.observe(agent.decide(action_sets(0)), [0.1, 0.5, 0.9])
    return agent


def action_sets(seed: int) -> torch.Tensor:
    return torch.rand(3, 4, 5, generator=torch.Generator().manual_seed(seed))


def assert_refused_without_trace(agent: GFUCB, call, message: str) -> None:
    before = {name: tensor.clone() for name, tensor in agent.state().items()}
    with pytest.raises(InvalidInputError, match=message):
        call()
    after = agent.state()
    assert before.keys() == after.keys()
    for name, tensor in before.items():
        assert torch.equal(tensor, after[name]), name


def with_value(value: float) -> torch.Tensor:
    candidates = action_sets(1)
    candidates[1, 2, 3] = value
    return candidates


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"candidates": with_value(NAN)}, r"finite.*\[1, 2, 3\]"),
        ({"candidates": with_value(INF)}, r"finite.*\[1, 2, 3\]"),
        ({"candidates": torch.rand(3)}, r"\[row, action, \*input\]"),
        ({"candidates": torch.rand(3, 0, 5)}, "no axis empty"),
        ({"candidates": torch.rand(3, 4, 6)}, r"shape \[5\].*\[6\]"),
        ({"candidates": torch.rand(3, 4, 5, dtype=torch.complex64)}, "real numbers"),
        ({"candidates": torch.ones(3, 4, 5, dtype=torch.uint8)}, "uint8"),
        ({"candidates": torch.ones(3, 4, 5, dtype=torch.bool)}, "real numbers"),
        ({"candidates": [[["a"]]]}, "numbers"),
        ({"candidates": [[[1.0], [2.0]], [[1.0]]]}, "numbers"),
        ({"candidates": torch.rand(2, 4, 5)}, "2 rows"),
        ({"candidates": action_sets(1), "tasks": [0, 1, 3]}, "0 to 2, got task 3"),
        ({"candidates": action_sets(1), "tasks": [0, 1, -1]}, "got task -1"),
        ({"candidates": action_sets(1), "tasks": [0, 1]}, "3 rows"),
        ({"candidates": action_sets(1), "tasks": [0.0, 1.0, 2.0]}, "integers"),
        (
            {"candidates": action_sets(1), "available": torch.zeros(3, 4, dtype=torch.bool)},
            "row 0",
        ),
        (
            {"candidates": action_sets(1), "available": torch.ones(3, 3, dtype=torch.bool)},
            r"\[3, 4\]",
        ),
        ({"candidates": action_sets(1), "available": torch.ones(3, 4)}, "booleans"),
    ],
)
def test_bad_menus(arguments, message):
    agent = taught_agent()
    assert_refused_without_trace(agent, lambda: agent.decide(**arguments), message)


@pytest.mark.parametrize(
    ("rewards", "message"),
    [
        ([0.1, NAN, 0.3], r"nan in row 1.*decision\[rows\]"),
        ([0.1, 0.2, INF], "inf in row 2"),
        ([0.1, 0.2], r"3 rows.*\[2\].*decision\[rows\]"),
        (0.5, "3 rows"),
        (torch.rand(3, 1), r"got \[3, 1\]"),
        (torch.tensor([True, False, True]), "real numbers"),
        (["a", "b", "c"], "numbers"),
        (None, "numbers"),
    ],
)
def test_bad_rewards(rewards, message):
    agent = taught_agent()
    decision = agent.decide(action_sets(1))
    assert_refused_without_trace(agent, lambda: agent.observe(decision, rewards), message)


def test_observing_something_that_is_no_decision():
    agent = taught_agent()
    assert_refused_without_trace(agent, lambda: agent.observe([0, 1], [0.1, 0.2]), "Decision")


def test_a_decision_of_a_larger_agent_is_refused():
    agent, larger = taught_agent(), GFUCB(5)
    decision = larger.decide(torch.rand(1, 4, 5), tasks=[4])
    assert_refused_without_trace(agent, lambda: agent.observe(decision, [0.5]), "got task 4")


def test_bad_logs():
    agent = taught_agent()
    inputs = torch.rand(2, 5)
    for samples, message in [
        (([0, 9], inputs, [0.1, 0.2]), "got task 9"),
        (([0, 1], inputs * NAN, [0.1, 0.2]), "finite"),
        (([0, 1], inputs, [0.1]), "2 rows"),
        (([0, 1], torch.rand(2, 6), [0.1, 0.2]), r"shape \[5\]"),
    ]:
        assert_refused_without_trace(agent, lambda s=samples: agent.learn(*s), message)


def test_a_fit_that_fails_leaves_no_trace():
    agent = GFUCB(3, fit=VariableProjection(steps=2), refit_growth=1.0)
    agent.observe(agent.decide(action_sets(0)), [0.1, 0.5, 0.9])
    decision = agent.decide(action_sets(1))

    def failing_fit(*arguments):
        raise InvalidInputError("no luck")

    agent.learner.fit = failing_fit
    assert_refused_without_trace(agent, lambda: agent.observe(decision, [0.1] * 3), "no luck")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_tasks": 0}, "num_tasks"),
        ({"num_tasks": 2.5}, "num_tasks"),
        ({"num_tasks": 3, "ridge": 0.0}, "ridge must be"),
        ({"num_tasks": 3, "ridge": -1.0}, "ridge must be"),
        ({"num_tasks": 3, "head_norm_bound": 0.0}, "head_norm_bound"),
        ({"num_tasks": 3, "refit_growth": 0.9}, "refit_growth"),
        ({"num_tasks": 3, "value_range": (1.0, 0.0)}, "low < high"),
        ({"num_tasks": 3, "value_range": (0.0, INF)}, "low < high"),
        ({"num_tasks": 3, "representation": "resnet"}, "torch module"),
    ],
)
def test_impossible_agents_are_refused(options, message):
    with pytest.raises(InvalidInputError, match=message):
        GFUCB(**options)


def test_a_network_that_does_not_fit_the_inputs_is_named():
    with pytest.raises(InvalidInputError, match=r"cannot read inputs of shape \[5\]"):
        GFUCB(3, nn.Linear(4, 2)).decide(action_sets(0))
    with pytest.raises(InvalidInputError, match=r"\[n, feature\]"):
        GFUCB(3, nn.Unflatten(1, (5, 1))).decide(action_sets(0))


def test_inputs_far_from_one_are_refused_by_the_default_network_only():
    with pytest.raises(InvalidInputError, match="Standardise"):
        GFUCB(3).decide(1e6 * action_sets(0))
    GFUCB(3, nn.Linear(5, 2)).decide(1e6 * action_sets(0))


def test_item_numbers_need_a_representation():
    items = torch.randint(7, (3, 4))
    with pytest.raises(InvalidInputError, match="Embedding"):
        GFUCB(3).decide(items)
    agent = GFUCB(3, nn.Embedding(7, 4), fit=VariableProjection(steps=2))
    agent.observe(agent.decide(items), [0.1, 0.2, 0.3])
    assert agent.decide(items).actions.shape == (3,)


def test_numpy_arrays_and_lists_are_welcome_and_keep_their_precision():
    agent = gfucb.linucb(1)
    reward = 0.1 + 1e-12
    agent.observe(agent.decide(np.ones((1, 1, 1))), [reward])
    assert agent.state()["data.targets"].tolist() == [reward]


def test_numpy_counts_views_and_scalars_are_welcome():
    agent = gfucb.linucb(np.int64(2))
    candidates = np.arange(12.0).reshape(2, 3, 2)[:, ::-1]
    candidates.setflags(write=False)
    decision = agent.decide(candidates)
    agent.observe(decision[1], 0.5)
    agent.observe(decision[0], np.float32(0.25))
    assert agent.state()["data.targets"].tolist() == [0.5, 0.25]


@pytest.mark.parametrize("switch", [torch.no_grad, torch.inference_mode])
def test_serving_code_that_switched_gradients_off_can_learn(switch):
    agent = GFUCB(3, fit=VariableProjection(steps=2), refit_growth=1.0)
    plain = GFUCB(3, fit=VariableProjection(steps=2), refit_growth=1.0)
    for index in range(3):
        with switch():
            decision = agent.decide(action_sets(index) * 1.0)
            agent.observe(decision, torch.ones(3) * 0.5)
        plain.observe(plain.decide(action_sets(index)), [0.5] * 3)
    assert torch.equal(agent.state()["heads"], plain.state()["heads"])


def test_tensors_that_carry_gradients_leave_none_in_the_agent():
    agent = GFUCB(3, fit=VariableProjection(steps=2), refit_growth=1.0)
    for index in range(3):
        decision = agent.decide(action_sets(index).requires_grad_())
        agent.observe(decision, torch.rand(3, requires_grad=True))
    assert not any(tensor.requires_grad for tensor in agent.state().values())


def test_what_the_caller_does_to_its_tensors_later_does_not_reach_the_decision():
    agent = GFUCB(3)
    tasks, candidates = torch.tensor([0]), action_sets(0)[:1]
    decision = agent.decide(candidates, tasks)
    expected = decision.inputs.clone()
    tasks[0] = 2
    candidates.zero_()
    assert decision.tasks.tolist() == [0]
    assert torch.equal(decision.inputs, expected)


def test_batch_normalisation_can_learn_from_a_single_sample():
    net = nn.Sequential(nn.Linear(5, 4), nn.BatchNorm1d(4))
    for fit in (VariableProjection(steps=2), gfucb.estimation.AdamFit(epochs=2, batch_size=2)):
        agent = GFUCB(3, net, fit=fit)
        decision = agent.decide(action_sets(0))
        agent.observe(decision[0], [0.5])
        agent.observe(decision[[1, 2]], [0.5, 0.1])


class Diverged(nn.Module):
    def forward(self, x):
        return x * NAN


def test_features_that_are_not_numbers_are_named():
    with pytest.raises(InvalidInputError, match="NaN or infinite features"):
        GFUCB(3, Diverged()).decide(action_sets(0))


def test_inputs_that_a_network_cannot_hold_leave_no_trace():
    agent = GFUCB(3, nn.Linear(5, 2), fit=VariableProjection(steps=2))
    agent.observe(agent.decide(action_sets(0)), [0.1, 0.2, 0.3])
    huge = action_sets(1).double() * 1e300
    assert_refused_without_trace(agent, lambda: agent.decide(huge), r"at most 1e\+15")


def test_half_precision_inputs_do_not_round_what_comes_later():
    agent = gfucb.linucb(1)
    agent.observe(agent.decide(torch.ones(1, 1, 1, dtype=torch.float16)), [0.5])
    agent.observe(agent.decide(torch.full((1, 1, 1), 1e5)), [0.5])
    assert float(agent.state()["data.inputs"].max()) == 1e5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"offset": NAN}, "offset must be a finite number"),
        ({"value_range": (0,)}, r"\(low, high\)"),
        ({"device": "abacus"}, "device 'abacus'"),
    ],
)
def test_more_impossible_agents(options, message):
    with pytest.raises(InvalidInputError, match=message):
        GFUCB(3, **options)


def test_members_of_a_finite_class_have_one_width():
    known = gfucb.FiniteClass([gfucb.models.IdentityRepresentation(), lambda x: x[:, :2].double()])
    with pytest.raises(InvalidInputError, match=r"\[2, 5\]"):
        GFUCB(3, known).decide(action_sets(0))


@pytest.mark.parametrize("dtype", [torch.uint16, torch.bool, torch.complex64])
def test_number_types_that_mean_nothing_are_named(dtype):
    with pytest.raises(InvalidInputError, match=str(dtype)):
        GFUCB(3).decide(torch.ones(3, 4, 5).to(dtype))
