"""Wrong arguments: a sentence that says what to do, and an agent that does not change."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.sparse import csr_matrix
from torch import nn

import gfucb
from gfucb import GFUCB, Decision, FiniteClass, VariableProjection
from gfucb.core.errors import InvalidInputError
from gfucb.core.records import ChosenFeatures, Prediction
from gfucb.models import DefaultNetworkClass, IdentityRepresentation

NAN, INF = float("nan"), float("inf")
GAPS = np.ma.masked_less(np.ones(1), 2)


def trained_agent() -> GFUCB:
    agent = GFUCB(3, fit=VariableProjection(steps=2))
    agent.observe(agent.decide(candidates(0)), [0.1, 0.5, 0.9])
    return agent


def candidates(seed: int) -> torch.Tensor:
    return torch.rand(3, 4, 5, generator=torch.Generator().manual_seed(seed))


def assert_refused(agent: GFUCB, call, message: str) -> None:
    """`call` fails with this message, and the agent's state stays as it was."""
    before = {name: tensor.clone() for name, tensor in agent.state().items()}
    with pytest.raises(InvalidInputError, match=message):
        call()
    after = agent.state()
    assert before.keys() == after.keys()
    for name, tensor in before.items():
        assert torch.equal(tensor, after[name]), name


def with_value(value: float) -> torch.Tensor:
    changed = candidates(1).double()
    changed[1, 2, 3] = value
    return changed


def nested() -> torch.Tensor:
    return torch.nested.nested_tensor([torch.rand(4, 5), torch.rand(3, 5)], layout=torch.jagged)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"candidates": with_value(NAN)}, r"finite, got nan at index \[1, 2, 3\]"),
        ({"candidates": with_value(INF)}, r"finite, got inf at index \[1, 2, 3\]"),
        ({"candidates": with_value(1e154)}, r"at most 1e\+15.*1e\+154 at .*\[1, 2, 3\]; rescale"),
        ({"candidates": candidates(1) * 1e10}, "Standardise"),
        ({"candidates": torch.rand(3)}, r"\[row, action, \*input\]"),
        ({"candidates": torch.rand(3, 0, 5)}, "no axis empty"),
        ({"candidates": torch.rand(3, 4, 6)}, r"shape \[5\].*\[6\]"),
        ({"candidates": torch.rand(3, 4, 5, dtype=torch.complex64)}, "real numbers"),
        ({"candidates": torch.ones(3, 4, 5, dtype=torch.uint8)}, "uint8"),
        ({"candidates": candidates(1).to_sparse()}, r"layout torch.sparse_coo; call .to_dense\(\)"),
        ({"candidates": nested}, "nested"),
        ({"candidates": torch.empty(3, 4, 5, device="meta")}, "meta"),
        ({"candidates": [[["a"]]]}, r"numbers, got text \('a'\); encode"),
        ({"candidates": np.array([[["a", 1.0]]], dtype=object)}, r"got text \('a'\); encode"),
        (
            {"candidates": pd.DataFrame({"size": [1, 2], "city": ["Rome", "Oslo"]})},
            r"got text \('Rome'\) in the column 'city'; .* gfucb.tables",
        ),
        (
            {"candidates": pd.DataFrame({"day": pd.to_datetime(["2026-01-01"]), "size": [1]})},
            "got dates in the column 'day'",
        ),
        ({"candidates": pd.DataFrame({"size": [1.5, 2.0, 3.0]})}, "data frame.*with_actions"),
        ({"candidates": [[[0.5, None]]]}, "missing values"),
        ({"candidates": csr_matrix(np.eye(3))}, r"sparse matrix; pass its .toarray\(\)"),
        ({"candidates": np.array([[["2020-01-01"]]], dtype="datetime64[D]")}, "got dates"),
        ({"candidates": None}, "got missing values"),
        ({"candidates": np.ma.masked_less(np.ones((3, 4, 5)), 2)}, "masked array"),
        ({"candidates": candidates(1).to(torch.float8_e4m3fn)}, "float8"),
        ({"candidates": [[[1.0], [2.0]], [[1.0]]]}, "numbers"),
        ({"candidates": torch.rand(2, 4, 5)}, "2 rows"),
        ({"candidates": candidates(1), "tasks": [0, 1, 3]}, "0 to 2, got task 3"),
        ({"candidates": candidates(1), "tasks": [0, 1, -1]}, "got task -1"),
        ({"candidates": candidates(1), "tasks": [0, 1, 2**62]}, "got task"),
        ({"candidates": candidates(1), "tasks": [0, 1]}, "3 rows"),
        ({"candidates": candidates(1), "tasks": [0.0, 1.0, 2.0]}, "integers"),
        ({"candidates": candidates(1), "tasks": ["a", "b", "c"]}, "got text"),
        ({"candidates": candidates(1), "available": torch.zeros(3, 4, dtype=torch.bool)}, "row 0"),
        (
            {"candidates": candidates(1), "available": torch.ones(3, 3, dtype=torch.bool)},
            r"\[3, 4\]",
        ),
        ({"candidates": candidates(1), "available": torch.ones(3, 4)}, "booleans"),
    ],
)
@pytest.mark.filterwarnings("ignore:.*nested.*:UserWarning")
def test_wrong_action_sets_are_refused(arguments, message):
    agent = trained_agent()
    given = {name: value() if callable(value) else value for name, value in arguments.items()}
    assert_refused(agent, lambda: agent.decide(**given), message)


def test_booleans_are_rewards_of_one_and_zero():
    agents = [GFUCB(3, value_range=(0, 1)) for _ in range(2)]
    for agent, rewards in zip(agents, ([True, False, True], [1.0, 0.0, 1.0]), strict=True):
        agent.observe(agent.decide(candidates(1)), rewards)
    one, other = (agent.state() for agent in agents)
    assert all(torch.equal(one[name], other[name]) for name in one)


@pytest.mark.parametrize(
    ("rewards", "message"),
    [
        ([0.1, NAN, 0.3], r"nan in row 1.*decision\[rows\]"),
        ([0.1, 0.2, INF], "inf in row 2"),
        ([0.1, 1e30, 0.3], r"at most 1e\+12 in magnitude, got 1e\+30 in row 1; rescale"),
        ([0.1, 0.2, -1.7e308], r"at most 1e\+12.*-1.7e\+308 in row 2"),
        ([0.1, 0.2], r"3 rows.*\[2\].*decision\[rows\]"),
        (0.5, "3 rows"),
        (torch.rand(3, 1), r"got \[3, 1\]"),
        (torch.ones(3, dtype=torch.complex64), "real numbers"),
        (torch.rand(3).to_sparse(), "to_dense"),
        (["a", "b", "c"], "numbers"),
        (None, "numbers"),
    ],
)
def test_wrong_rewards_are_refused(rewards, message):
    agent = trained_agent()
    decision = agent.decide(candidates(1))
    assert_refused(agent, lambda: agent.observe(decision, rewards), message)


def test_the_largest_rewards_and_inputs_are_learned_without_an_error():
    agent = gfucb.linucb(2)
    agent.observe(agent.decide(torch.rand(2, 3, 2)), [1e12, -1e12])
    assert agent.decide(torch.rand(2, 3, 2)).optimistic_values.isfinite().all()


@pytest.mark.parametrize("inputs", [1e8, 1e10, 1e15])
def test_inputs_too_large_for_the_ridge_end_in_a_sentence_or_in_finite_values(inputs):
    """Below the limit of inputs the Gram matrix may still have no Cholesky factor."""
    agent = GFUCB(2, FiniteClass([IdentityRepresentation(), lambda x: x.double() ** 2]))
    for index in range(3):
        x = inputs * torch.rand(2, 3, 4, dtype=torch.float64)
        try:
            decision = agent.decide(x)
            agent.observe(decision, [0.1, 0.2 * index])
        except InvalidInputError as error:
            assert "too large" in str(error) or "at most" in str(error)
        else:
            assert decision.optimistic_values.isfinite().all()


def changed_decisions(decision: Decision) -> list[tuple[object, str]]:
    mean, variance = decision.prediction.mean, decision.prediction.variance
    features = decision.features

    def predicting(mean: object, variance: object) -> Decision:
        return replace(decision, prediction=Prediction(mean, variance))

    return [
        ([0, 1], "Decision, got list"),
        (predicting(mean[:2], variance[:2]), r"means .* shape \[3\], got torch.float64 .*\[2\]"),
        (predicting(mean, variance[:1]), r"variances .* shape \[3\]"),
        (predicting(mean * NAN, variance), "means .* finite"),
        (predicting(mean, variance * NAN), "variances .* finite"),
        (predicting(mean, variance * INF), "variances .* finite"),
        (predicting(mean + 1e300, variance), r"means .* at most 1e\+100"),
        (predicting(mean, variance + 1e300), r"variances .* at most 1e\+100"),
        (predicting(mean, -variance - 1), "variances .* not be negative"),
        (predicting(mean.long(), variance), "means .* floats"),
        (predicting(None, variance), "means .* floats .* got NoneType"),
        (replace(decision, prediction=(mean, variance)), "Prediction or None, got tuple"),
        (replace(decision, tasks=torch.tensor([0, 1, 3])), "got task 3"),
        (replace(decision, tasks=torch.tensor([0.0, 1.0, 2.0])), "tasks must be integers"),
        (replace(decision, tasks=decision.tasks[:2]), "2 tasks but 3 actions"),
        (replace(decision, tasks=[0, 1, 2]), "tasks of the decision must be a tensor"),
        (replace(decision, actions=decision.actions[:1]), "3 tasks but 1 actions"),
        (replace(decision, actions=-decision.actions - 1), "numbers of actions from 0"),
        (replace(decision, actions=decision.actions * 0.5), "actions .* integers"),
        (replace(decision, inputs=decision.inputs * NAN), "inputs of the decision must be finite"),
        (replace(decision, inputs=decision.inputs.double() * 1e20), r"at most 1e\+15"),
        (replace(decision, inputs=decision.inputs[:, :4]), r"shape \[5\].*\[4\]"),
        (replace(decision, inputs=decision.inputs > 0.5), "real numbers"),
        (replace(decision, features=features.values), "features .* got Tensor"),
        (replace(decision, features=replace(features, values=features.values[:2])), "features"),
        (replace(decision, features=replace(features, values=features.values * NAN)), "finite"),
        (replace(decision, optimistic_values=decision.optimistic_values * NAN), "finite"),
    ]


def test_changed_decisions_are_refused_before_anything_is_learned():
    agent = trained_agent()
    calibration = agent.radius_state
    for decision, message in changed_decisions(agent.decide(candidates(1))):
        assert_refused(agent, lambda d=decision: agent.observe(d, [0.1, 0.2, 0.3]), message)
        assert agent.radius_state is calibration


def test_features_that_were_written_to_are_computed_again():
    agent, other = trained_agent(), trained_agent()
    for changed in (lambda f: f.values.zero_(), lambda f: replace(f, values=f.values[:, :3])):
        decision, expected = agent.decide(candidates(1)), other.decide(candidates(1))
        features = changed(decision.features)
        if isinstance(features, ChosenFeatures):
            decision = replace(decision, features=features)
        agent.observe(decision, [0.1, 0.2, 0.3])
        other.observe(expected, [0.1, 0.2, 0.3])
        state = other.state()
        for name, tensor in agent.state().items():
            # Features of another batch size differ by rounding in single precision.
            torch.testing.assert_close(tensor, state[name], rtol=1e-4, atol=1e-5)


def test_a_device_that_cannot_be_used_is_named_in_one_line():
    for device in ("xla", "nonsense"):
        with pytest.raises(InvalidInputError, match="cannot be used here: ") as refused:
            GFUCB(3, device=device)
        assert "\n" not in str(refused.value) and "[" not in str(refused.value)


def test_a_decision_of_a_larger_agent_is_refused():
    agent, larger = trained_agent(), GFUCB(5)
    decision = larger.decide(torch.rand(1, 4, 5), tasks=[4])
    assert_refused(agent, lambda: agent.observe(decision, [0.5]), "got task 4")


def test_wrong_logs_are_refused():
    agent = trained_agent()
    inputs = torch.rand(2, 5)
    for samples, message in [
        (([0, 9], inputs, [0.1, 0.2]), "got task 9"),
        (([0, 1], inputs * NAN, [0.1, 0.2]), "finite"),
        (([0, 1], inputs.double() * 1e100, [0.1, 0.2]), "at most"),
        (([0, 1], inputs, [0.1]), "2 rows"),
        (([0, 1], inputs, [0.1, 1e300]), "at most"),
        (([], inputs, []), "2 rows"),
        (([0], [], []), "0 rows"),
        (([0, 1], torch.rand(2, 6), [0.1, 0.2]), r"shape \[5\]"),
    ]:
        assert_refused(agent, lambda s=samples: agent.learn(*s), message)


@pytest.mark.parametrize("inputs", [[], torch.rand(0, 5), np.zeros((0, 7))])
def test_an_empty_log_changes_nothing(inputs):
    agent, new = trained_agent(), GFUCB(3)
    before = agent.state()
    agent.learn([], inputs, [])
    new.learn([], inputs, [])
    assert all(torch.equal(before[name], tensor) for name, tensor in agent.state().items())
    assert new.state() == {}


def test_an_empty_decision_changes_nothing():
    agent = trained_agent()
    before = agent.state()
    agent.observe(agent.decide(candidates(1))[[]], [])
    assert all(torch.equal(before[name], tensor) for name, tensor in agent.state().items())


def test_a_fit_that_fails_changes_nothing():
    agent = GFUCB(3, fit=VariableProjection(steps=2), refit_growth=1.0)
    agent.observe(agent.decide(candidates(0)), [0.1, 0.5, 0.9])
    decision, calibration = agent.decide(candidates(1)), agent.radius_state

    def failing_fit(*arguments):
        raise InvalidInputError("no fit")

    agent.learner.fit = failing_fit
    assert_refused(agent, lambda: agent.observe(decision, [0.1] * 3), "no fit")
    assert agent.radius_state is calibration


def test_a_network_that_does_not_read_the_inputs_is_named():
    with pytest.raises(InvalidInputError, match=r"cannot read inputs of shape \[5\]"):
        GFUCB(3, nn.Linear(4, 2)).decide(candidates(0))
    with pytest.raises(InvalidInputError, match=r"\[n, feature\]"):
        GFUCB(3, nn.Unflatten(1, (5, 1))).decide(candidates(0))


def test_inputs_far_from_one_are_refused_by_the_default_network_only():
    with pytest.raises(InvalidInputError, match="Standardise"):
        GFUCB(3, DefaultNetworkClass()).decide(1e6 * candidates(0))
    GFUCB(3).decide(1e6 * candidates(0))  # tables are standardised
    GFUCB(3, nn.Linear(5, 2)).decide(1e6 * candidates(0))


def test_the_default_network_needs_an_embedding_of_item_numbers():
    items = torch.randint(7, (3, 4))
    with pytest.raises(InvalidInputError, match="Embedding"):
        GFUCB(3, DefaultNetworkClass()).decide(items)
    agent = GFUCB(3, nn.Embedding(7, 4), fit=VariableProjection(steps=2))
    agent.observe(agent.decide(items), [0.1, 0.2, 0.3])
    assert agent.decide(items).actions.shape == (3,)


class Diverged(nn.Module):
    def forward(self, x):
        return x * NAN


def test_features_that_are_not_numbers_are_named():
    with pytest.raises(InvalidInputError, match="NaN or infinite features"):
        GFUCB(3, Diverged()).decide(candidates(0))


@pytest.mark.parametrize("dtype", [torch.uint16, torch.complex64])
def test_number_types_without_a_meaning_are_named(dtype):
    with pytest.raises(InvalidInputError, match=str(dtype)):
        GFUCB(3).decide(torch.ones(3, 4, 5).to(dtype))


def test_members_of_a_finite_class_have_the_same_number_of_features():
    known = FiniteClass([IdentityRepresentation(), lambda x: x[:, :2].double()])
    with pytest.raises(InvalidInputError, match=r"\[2, 5\]"):
        GFUCB(3, known).decide(candidates(0))


@pytest.mark.parametrize(
    ("call", "cure"),
    [
        (lambda agent: agent.learn(["oslo"], [[0.0]], [1.0]), "use gfucb.Agent, whose tasks have"),
        (lambda agent: agent.learn([0], [[0.0]], ["1 USD"]), "leave out rows without a reward"),
        (lambda agent: agent.decide([[[0.0]]], available=[["tea"]]), "True or False for every"),
        (lambda agent: agent.learn([0], [[0.0]], [[1.0]]), r"such as rewards\[:, 0\]"),
        (lambda agent: agent.learn([0], [[0.0]], [1.0, 2.0]), "pass one reward for each"),
        (lambda agent: agent.decide([[["tea"]]]), r"gfucb.tables, .* as \*offers"),
        (lambda agent: agent.decide([[[0, 1], [1, 0]]]), "columns of numbers as floats"),
        (lambda agent: agent.decide(iter([[[0.0]]])), "got a list_iterator; pass a list"),
        (lambda agent: agent.learn({0}, [[0.0]], [1.0]), "tasks .* got a set; pass a list"),
        (lambda agent: agent.learn([True], [[0.0]], [1.0]), "torch.bool; number tasks from 0"),
        (lambda agent: agent.learn([0], [[0.0]], GAPS), "leave out rows without a reward"),
    ],
)
def test_what_is_no_number_has_a_cure_that_fits_the_argument(call, cure):
    with pytest.raises(InvalidInputError, match=cure):
        call(gfucb.GFUCB(1, seed=0))
