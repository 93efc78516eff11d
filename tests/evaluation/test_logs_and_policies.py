"""Logs and policies that are refused, and those that are accepted with a warning."""

import math

import numpy as np
import pytest
import torch
from evaluation_cases import TARGET, TWO_CONTEXTS

import gfucb
from gfucb.core.errors import GFUCBWarning, InvalidInputError
from gfucb.evaluation import (
    AgentPolicy,
    Betting,
    FixedActionPolicy,
    LoggedDecisions,
    LoggedPolicy,
    UniformPolicy,
    evaluate,
)
from gfucb.models import IdentityRepresentation

GOOD = {"actions": [0, 1, 1], "probabilities": [0.5, 0.5, 0.25], "rewards": [1.0, 0.0, 1.0]}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"probabilities": [0.5, 0.0, 0.5]}, "above 0 and at most 1, got 0 in row 1"),
        ({"probabilities": [0.5, 0.5, math.nan]}, "in row 2: it is missing"),
        ({"probabilities": [0.5, None, 0.5]}, "tensor or array of numbers"),
        ({"probabilities": [1.5, 0.5, 0.5]}, "got 1.5 in row 0"),
        ({"probabilities": [-0.5, 0.5, 0.5]}, "got -0.5 in row 0"),
        ({"probabilities": [1e-60, 0.5, 0.5]}, "got 1e-60 in row 0"),
        ({"probabilities": [0.5, 0.5]}, "each of the 3 rows"),
        ({"rewards": [1, math.nan, 0]}, "got nan in row 1; a reward that never came"),
        ({"rewards": [1, 0, math.inf]}, "got inf in row 2"),
        ({"rewards": [1, 0, 1e13]}, "at most 1e"),
        ({"actions": [0, 1, -1]}, "numbered from 0, got -1 in row 2"),
        ({"actions": [0.0, 1.0, 1.0]}, "must be integers"),
        ({"actions": ["a", "b", "b"]}, "text"),
        ({"actions": [], "probabilities": [], "rewards": []}, "no rows"),
        ({"actions": [[0], [1], [1]]}, "shape"),
        ({"num_actions": 1}, "numbered 0 to 0, got action 1 in row 1"),
        ({"num_actions": 0}, "num_actions must be an integer"),
        (
            {"available": [[True, True], [True, False], [True, True]]},
            "in row 1 action 1 was chosen",
        ),
        ({"available": [[1, 1]] * 3}, "booleans"),
        ({"available": [[True, True]] * 2}, "with 3 rows"),
        (
            {"available": [[True] * 3] * 3, "num_actions": 2},
            "states 2 actions, but available has 3",
        ),
        ({"tasks": [0, 1, -1]}, "task -1"),
        ({"tasks": [0.5, 1, 2]}, "integers"),
        ({"tasks": [0, 1, 5], "num_tasks": 3}, "task 5"),
        ({"candidates": torch.rand(3)}, "shape"),
        ({"candidates": torch.full((3, 2, 1), torch.nan)}, "finite"),
        ({"action_probabilities": [[0.5, 0.5]] * 3}, "must agree, but in row 2"),
        ({"action_probabilities": [[0.5, 0.6]] * 3}, "sum to 1"),
        ({"action_probabilities": [[1.5, -0.5]] * 3}, "between 0 and 1"),
    ],
)
def test_wrong_logs_are_refused_with_the_row(changes, message):
    with pytest.raises(InvalidInputError, match=message):
        LoggedDecisions(**(GOOD | changes))


def test_a_log_is_a_copy_and_has_parts():
    rewards = np.array([1.0, 0.0, 1.0])
    log = LoggedDecisions([0, 1, 1], [0.5, 0.5, 1.000001], rewards, tasks=[0, 3, 1])
    rewards[:] = 7
    assert log.rewards.tolist() == [1, 0, 1] and log.probabilities.tolist() == [0.5, 0.5, 1]
    part = log[[2, 0]]
    assert part.actions.tolist() == [1, 0] and part.num_tasks == 4 and part.num_actions == 2
    assert len(log[1]) == 1 and len(log[log.rewards == 1]) == 2
    assert repr(log) == "LoggedDecisions(3 rows, 2 actions, 4 tasks)"
    with pytest.raises(InvalidInputError, match="no rows"):
        log[:0]


def test_padding_of_unavailable_candidates_may_be_nan():
    candidates = torch.rand(3, 2, 4)
    candidates[0, 1] = torch.nan
    available = torch.tensor([[True, False], [True, True], [True, True]])
    log = LoggedDecisions(**GOOD, candidates=candidates, available=available)
    assert bool(log.candidates.isfinite().all()) and log.chosen_inputs.shape == (3, 4)


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ([[0.5, 0.5]] * 2, r"shape \[row, action\] = \[3, 2\]"),
        ([[1, 0], [0.5, 0.4], [1, 0]], "sum to 1 in every row, got 0.9 in row 1"),
        ([[0.5, 0.5], [math.nan, 0.5], [1, 0]], "got nan for action 0 in row 1"),
        ([[0.0, 1.0]] * 3, "not available, got 1 for action 1 in row 0"),
        (FixedActionPolicy(1), "not available"),
        (FixedActionPolicy(5), "fixed action 5"),
        (lambda log: "x", "numbers"),
        ("uniform", "got 'uniform'"),
        (object(), "a function from a log to probabilities.*, got <object"),
        ({0: 0.5}, "a function from a log to probabilities.*, got {0: 0.5}"),
        (None, "got None"),
        (UniformPolicy, "pass UniformPolicy()"),
        (gfucb.Uniform(1), "tasks"),
    ],
)
def test_wrong_policies_are_refused(policy, message):
    log = LoggedDecisions(
        [0, 1, 1], GOOD["probabilities"], GOOD["rewards"], tasks=[0, 1, 1],
        available=[[True, False], [True, True], [True, True]],
    )  # fmt: skip
    with pytest.raises(InvalidInputError, match=message):
        evaluate(log, policy)


@pytest.mark.parametrize(
    "arguments",
    [
        {"estimators": ["mips"]},
        {"estimators": []},
        {"estimators": "ips"},
        {"confidence": 1.0},
        {"confidence": 0},
        {"max_weight": 0},
        {"max_weight": math.nan},
        {"reward_range": (1, 0)},
        {"reward_range": (0, 0.5)},
        {"folds": 1},
        {"seed": None},
        {"sequence": "betting"},
        {"sequence": Betting},
        {"reward_model": "gfucb"},
        {"reward_model": lambda train, test: None},
        {"reward_model": lambda train, test: torch.zeros(1)},
        {"reward_model": lambda train, test: torch.full((len(test), 3), torch.nan)},
    ],
)
def test_wrong_arguments_are_refused(arguments):
    with pytest.raises(InvalidInputError):
        evaluate(TWO_CONTEXTS.log(50, seed=0), UniformPolicy(), **arguments)
    with pytest.raises(InvalidInputError, match="LoggedDecisions"):
        evaluate(GOOD, UniformPolicy())


def test_one_row_has_no_error_but_a_sequence():
    log = LoggedDecisions([0], [0.5], [1.0], num_actions=2)
    with pytest.warns(GFUCBWarning, match="effective sample size is 1.0 of 1 rows"):
        result = evaluate(log, UniformPolicy(), estimators=["ips", "snips"])
    assert result["ips"].value == 1.0 and result["ips"].interval is None
    assert result["snips"].interval is None
    low, high = result["ips"].sequence
    assert low < 0.5 and high == 1.0
    with pytest.raises(InvalidInputError, match="at least 2 rows"):
        evaluate(log, UniformPolicy(), estimators=["dr"])


def test_weights_that_are_all_zero_are_no_evidence():
    log = LoggedDecisions([0] * 100, [0.5] * 100, [1.0] * 100, num_actions=2)
    with pytest.warns(GFUCBWarning, match="never chooses the logged action"):
        result = evaluate(log, FixedActionPolicy(1), estimators=["ips", "snips"])
    assert result["ips"].value == 0 and result["ips"].interval is None
    assert result["ips"].sequence == (0.0, 1.0)
    assert math.isnan(result["snips"].value) and result.effective_sample_size == 0


def test_huge_weights_are_reported():
    probabilities = [0.5] * 100
    probabilities[3] = 1e-9
    log = LoggedDecisions([0] * 100, probabilities, [0.5] * 100, num_actions=2)
    with pytest.warns(GFUCBWarning, match="effective sample size is 1.0 of 100 rows"):
        result = evaluate(log, FixedActionPolicy(0), estimators=["ips", "snips"])
    assert result.largest_weight == pytest.approx(1e9)
    assert result["snips"].value == pytest.approx(0.5)


def test_actions_that_were_never_logged_are_reported():
    known = LoggedDecisions(
        [0] * 100, [1.0] * 100, [0.5] * 100, action_probabilities=[[1.0, 0.0]] * 100
    )
    with pytest.warns(GFUCBWarning, match="logged with probability 0"):
        result = evaluate(known, UniformPolicy(), estimators=["ips"])
    assert result.unsupported == 0.5
    unknown = LoggedDecisions([0] * 100, [1.0] * 100, [0.5] * 100, num_actions=2)
    with pytest.warns(GFUCBWarning, match="mean weight is 0.5"):
        assert evaluate(unknown, UniformPolicy(), estimators=["ips"]).unsupported is None


def test_wrong_probabilities_are_reported_and_bounds_stay_in_order():
    log = TWO_CONTEXTS.log(600, seed=0)
    wrong = LoggedDecisions(log.actions, log.probabilities / 3, log.rewards, tasks=log.tasks)
    with pytest.warns(GFUCBWarning, match="its expectation is 1"):
        result = evaluate(wrong, TWO_CONTEXTS.policy(TARGET), estimators=["ips"])
    low, high = result["ips"].sequence
    assert 0 <= low <= high <= 1


def test_an_agent_is_evaluated_by_its_decisions():
    log = TWO_CONTEXTS.log(300, seed=0)
    agent = gfucb.GFUCB(2, gfucb.FiniteClass([IdentityRepresentation()]), seed=0)
    agent.learn(log.tasks, log.chosen_inputs, log.rewards)
    before = agent.state()
    on_log = AgentPolicy(agent).on(log[:4])
    for row in range(4):
        decision = agent.decide(log.candidates[[row]], tasks=log.tasks[[row]])
        assert float(on_log.action_probabilities[row, decision.actions[0]]) == 1
    assert all(torch.equal(before[name], tensor) for name, tensor in agent.state().items())
    batched = AgentPolicy(agent, rows_per_call=64).on(log[:100]).weights
    assert torch.equal(AgentPolicy(agent).on(log[:100]).weights, batched)
    result = evaluate(log[:150], agent, estimators=["ips"])
    chosen = AgentPolicy(agent).on(log[:150])
    assert result["ips"].value == pytest.approx(float((chosen.weights * log.rewards[:150]).mean()))


def test_the_uniform_policy_knows_what_is_available():
    available = torch.tensor([[True, False, True], [True, True, True]])
    log = LoggedDecisions([0, 1], [0.5, 0.2], [1, 0], available=available)
    on_log = UniformPolicy().on(log)
    assert on_log.action_probabilities[0].tolist() == [0.5, 0, 0.5]
    assert on_log.weights.tolist() == pytest.approx([1.0, 5 / 3])
    assert LoggedPolicy().on(log).weights.tolist() == [1, 1]
