"""States given to `load_state`: checked completely before the agent changes."""

import math
from functools import lru_cache

import pytest
import torch
from torch import nn

import gfucb
from gfucb import GFUCB, FiniteClass, LinearClass, VariableProjection
from gfucb.bandits import neural_ucb, perturbed_rewards
from gfucb.core.errors import InvalidInputError
from gfucb.core.random import random_stream
from gfucb.exploration import Linearised
from gfucb.models import IdentityRepresentation

# Together they take seconds.
pytestmark = pytest.mark.slow

NAN, INF = math.nan, math.inf
QUICK = VariableProjection(steps=2)


def numbers(name: str, *shape: int) -> torch.Tensor:
    return torch.rand(*shape, generator=random_stream(0, "state", name))


def squares(x: torch.Tensor) -> torch.Tensor:
    return x.double() ** 2


AGENTS = {
    "default network": lambda: GFUCB(3, fit=QUICK),
    "network": lambda: GFUCB(3, nn.Linear(5, 4), fit=QUICK),
    "finite": lambda: GFUCB(3, FiniteClass([IdentityRepresentation(), squares])),
    "linear": lambda: GFUCB(3, LinearClass(5, 2)),
    "linucb": lambda: gfucb.linucb(3),
    "linearised": lambda: GFUCB(3, fit=QUICK, action_selector=Linearised()),
    "neural ucb": lambda: neural_ucb(3, fit=QUICK),
    "perturbed": lambda: perturbed_rewards(3, fit=QUICK),
}


def trained(name: str) -> GFUCB:
    agent = AGENTS[name]()
    for index in range(4):
        decision = agent.decide(numbers(f"x{index}", 3, 4, 5))
        agent.observe(decision, numbers(f"y{index}", 3).double())
    return agent


def copied(state: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {name: tensor.clone() for name, tensor in state.items()}


@lru_cache(maxsize=1)
def before_any(agent: GFUCB) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
    """State and answer of an agent before the first state that it refuses."""
    return copied(agent.state()), agent.decide(numbers("question", 3, 4, 5)).optimistic_values


def assert_refused(agent: GFUCB, state: dict, message: str) -> None:
    """`load_state` fails with this message, and the agent decides as before."""
    before, answer = before_any(agent)
    with pytest.raises(InvalidInputError, match=message):
        agent.load_state(state)
    after = agent.state()
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)
    again = agent.decide(numbers("question", 3, 4, 5))
    assert torch.equal(answer, again.optimistic_values)


def changed_with(state: dict, name: str, value: float) -> dict:
    """The state with one number of one tensor replaced."""
    tensor = state[name].clone()
    tensor.view(-1)[-1] = value
    return state | {name: tensor}


@pytest.mark.parametrize("name", AGENTS)
def test_a_state_restores_the_decisions(name):
    agent, other = trained(name), trained(name)
    other.learn([0], numbers("more", 1, 5), [0.9])
    other.load_state(copied(agent.state()))
    for index in range(3):
        question = numbers(f"question {index}", 3, 4, 5)
        one, two = agent.decide(question), other.decide(question)
        assert torch.equal(one.optimistic_values, two.optimistic_values)
        agent.observe(one, [0.1, 0.2, 0.3])
        other.observe(two, [0.1, 0.2, 0.3])


@pytest.mark.parametrize("name", AGENTS)
def test_missing_and_unexpected_tensors_are_named(name):
    agent = trained(name)
    state = copied(agent.state())
    for missing in state:
        rest = {key: tensor for key, tensor in state.items() if key != missing}
        assert_refused(agent, rest, missing.rpartition(".")[2])
    assert_refused(agent, state | {"surplus": torch.zeros(1)}, "unexpected tensor 'surplus'")


@pytest.mark.parametrize("name", AGENTS)
def test_floats_that_are_not_finite_are_refused_in_every_tensor(name):
    agent = trained(name)
    state = copied(agent.state())
    for key, tensor in state.items():
        if tensor.is_floating_point() and tensor.numel():
            assert_refused(agent, changed_with(state, key, NAN), key)
            assert_refused(
                agent, changed_with(state, key, INF), key.removeprefix("representation.")
            )


@pytest.mark.slow
@pytest.mark.parametrize("name", AGENTS)
def test_tensors_of_another_shape_or_type_are_refused(name):
    agent = trained(name)
    state = copied(agent.state())
    for key, tensor in state.items():
        longer = torch.stack([tensor, tensor])
        assert_refused(agent, state | {key: longer}, r"shape|rows|size|fit|sample|features")
        assert_refused(agent, state | {key: tensor.to(torch.complex128)}, "real|float|int|numbers")
        assert_refused(agent, state | {key: 3.0}, "must be a tensor, got float")


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("data.tasks", 3, "between 0 and 2"),
        ("data.tasks", -1, "between 0 and 2"),
        ("data.tasks", 2**40, "between 0 and 2"),
        ("data.inputs", 1e20, "between"),
        ("data.targets", 1e30, "between"),
        ("counters", 10_000, "samples at the last fit"),
        ("counters", -1, "between 0"),
        ("monitor", -1.0, "between 0"),
        ("calibration.counts", 10_000, "10000 of 9"),
        ("calibration.scores", -1.0, "between 0"),
    ],
)
def test_numbers_out_of_range_are_refused(name, value, message):
    agent = trained("default network")
    assert_refused(agent, changed_with(copied(agent.state()), name, value), message)


def test_a_task_number_out_of_range_allocates_nothing(monkeypatch):
    """It was passed to bincount, which allocates as many counters as the largest number."""
    agent = trained("linucb")
    state = changed_with(copied(agent.state()), "data.tasks", 2**33)

    def counting(*arguments, **options):
        raise AssertionError("counted before the check")

    monkeypatch.setattr(torch, "bincount", counting)
    with pytest.raises(InvalidInputError, match="tasks"):
        agent.load_state(state)


def test_a_gram_matrix_without_a_factor_is_refused():
    agent = trained("linucb")
    state = copied(agent.state())
    state["statistics.grams"] = -state["statistics.grams"] - 10 * torch.eye(5).double()
    assert_refused(agent, state, "Gram matrix")


def test_a_member_that_the_class_does_not_have_is_refused():
    agent = trained("finite")
    state = copied(agent.state())
    (member,) = [key for key in state if key.startswith("representation")]
    for number in (2, -1):
        assert_refused(agent, changed_with(state, member, number), "member")


def test_a_state_of_an_uncalibrated_agent_is_refused_by_a_calibrated_one():
    calibrated = trained("default network")
    state = {k: t for k, t in calibrated.state().items() if not k.startswith("calibration")}
    assert_refused(calibrated, state, "no tensor 'calibration")
    plain = gfucb.multitask_greedy(3, fit=QUICK)
    with pytest.raises(InvalidInputError, match="unexpected tensor 'calibration"):
        plain.load_state(copied(calibrated.state()))


def test_what_is_no_dictionary_is_refused():
    agent = trained("linucb")
    for wrong in ([1, 2], [], None, 3):
        assert_refused(agent, wrong, "dictionary of named tensors, got")


def test_loading_clears_the_last_selection():
    agent = trained("linucb")
    agent.load_state(copied(agent.state()))
    assert agent.last_selection is None
    assert agent.diagnostics() == {"fits": agent.learner.num_fits}


def test_a_loaded_agent_does_not_share_memory_with_the_state():
    agent = trained("linucb")
    state = copied(agent.state())
    agent.load_state(state)
    answer = agent.decide(numbers("question", 3, 4, 5)).optimistic_values
    for tensor in state.values():
        tensor.zero_()
    fresh = agent.decide(numbers("question", 3, 4, 5)).optimistic_values
    assert torch.equal(answer, fresh)


@pytest.mark.slow
@pytest.mark.parametrize("name", AGENTS)
def test_types_that_torch_would_convert_and_sparse_tensors_are_refused(name):
    agent = trained(name)
    state = copied(agent.state())
    for key, tensor in state.items():
        if tensor.ndim:
            assert_refused(agent, state | {key: tensor.to_sparse()}, "dense")
        if key != "data.inputs":  # inputs may be of any real type
            assert_refused(agent, state | {key: tensor.to(torch.float16)}, "float16")
            assert_refused(agent, state | {key: tensor.to(torch.bool)}, "bool")


@pytest.mark.parametrize("name", AGENTS)
def test_numbers_whose_squares_overflow_are_refused(name):
    agent = trained(name)
    state = copied(agent.state())
    for key in ("heads", "statistics.grams", "statistics.moments", "calibration.scores"):
        if key in state and state[key].numel():
            assert_refused(agent, state | {key: torch.full_like(state[key], 1e200)}, key)


def test_names_of_a_state_are_texts():
    agent = trained("default network")
    assert_refused(agent, agent.state() | {3: torch.zeros(1)}, "texts, got 3")


def test_a_network_with_an_infinite_constant_is_restored():
    class Masked(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(5, 3)
            self.register_buffer("mask", torch.tensor([0.0, -INF, 0.0]))

        def forward(self, inputs):
            return torch.softmax(self.layer(inputs) + self.mask, dim=-1)

    torch.manual_seed(0)
    agent, again = GFUCB(3, Masked()), GFUCB(3, Masked())
    agent.observe(agent.decide(numbers("first", 3, 4, 5)), [0.0, 1.0, 0.5])
    again.load_state(agent.state())
    question = numbers("question", 3, 4, 5)
    assert torch.equal(again.decide(question).actions, agent.decide(question).actions)


@pytest.mark.parametrize("name", AGENTS)
def test_numbers_with_which_decisions_would_not_be_finite_are_refused(name):
    """Huge weights or matrices are finite, but features or factors computed from them are not."""
    state = copied(trained(name).state())
    wrong = {key: 1e30 for key, tensor in state.items() if tensor.is_floating_point()}
    wrong |= {key: -1e3 for key in state if key.startswith(("tangents.", "statistics.grams"))}
    for key, value in wrong.items():
        agent = AGENTS[name]()
        try:
            agent.load_state(state | {key: torch.full_like(state[key], value)})
        except InvalidInputError:
            assert agent.learner.num_samples == 0
            continue
        decision = agent.decide(numbers("question", 3, 4, 5))
        agent.observe(decision, [0.1, 0.2, 0.3])
        assert agent.decide(numbers("question", 3, 4, 5)).optimistic_values.isfinite().all(), key


@pytest.mark.parametrize("name", AGENTS)
def test_statistics_heads_and_weights_follow_from_the_data(name):
    agent = trained(name)
    state = copied(agent.state())
    for key in ("heads", "statistics.grams", "statistics.moments"):
        larger = state | {key: 2 * state[key]}
        assert_refused(agent, larger, "'(heads|statistics.*)' of the state do not follow")
    weights = [key for key in state if key.startswith("representation.") and "weight" in key]
    for key in weights[:1]:
        moved = state | {key: state[key] + 1}
        assert_refused(agent, moved, "'statistics.grams' of the state do not follow")


@pytest.mark.parametrize("ridge", [1e-12, 1e12])
def test_statistics_are_compared_up_to_rounding(ridge):
    """With a small ridge the heads of few samples are known in few directions only."""
    agent = GFUCB(3, nn.Linear(5, 4), fit=QUICK, ridge=ridge, head_norm_bound=0.7)
    for index in range(2):
        agent.observe(agent.decide(numbers(f"x{index}", 3, 4, 5)), numbers(f"y{index}", 3))
    again = GFUCB(3, nn.Linear(5, 4), fit=QUICK, ridge=ridge, head_norm_bound=0.7)
    again.load_state(agent.state())
    assert torch.equal(again.state()["heads"], agent.state()["heads"])
