"""One catalogue for all tasks: the same decisions, and features of every item once."""

import numpy as np
import pytest
import torch
from torch import nn

import gfucb
from gfucb import GFUCB, VariableProjection
from gfucb.core.errors import InvalidInputError
from gfucb.core.random import random_stream
from gfucb.core.validation.bandits import validate_action_sets

TASKS, ITEMS, DIM = 6, 7, 5
SELECTORS = [
    gfucb.Greedy(),
    gfucb.LastLayer(),
    gfucb.LastLayer(joint=False),
    gfucb.exploration.Linearised(),
    gfucb.exploration.GradientBonus(),
    gfucb.exploration.Certified(),
    gfucb.exploration.FineTuning.stable(5),
    gfucb.exploration.FineTuning.literal_sum(2),
]


def numbers(name: str, *shape: int) -> torch.Tensor:
    return torch.rand(*shape, generator=random_stream(0, "catalogue", name))


def small_network() -> nn.Module:
    net = nn.Sequential(nn.Linear(DIM, 8), nn.Tanh(), nn.Linear(8, 3))
    with torch.no_grad():
        for index, weight in enumerate(net.parameters()):
            weight.copy_(numbers(f"weight {index}", *weight.shape) - 0.5)
    return net


def trained(**options) -> GFUCB:
    agent = GFUCB(TASKS, small_network(), fit=VariableProjection(steps=3), **options)
    tasks = torch.arange(4 * TASKS) % TASKS
    agent.learn(tasks, numbers("inputs", len(tasks), DIM), numbers("rewards", len(tasks)))
    return agent


CATALOGUE = numbers("items", ITEMS, DIM)
SOME = numbers("offered", TASKS, ITEMS) < 0.6
SOME[:, 0] = True
REPEATED = torch.tensor([1, 4, 1, 0])


@pytest.mark.parametrize("selector", SELECTORS, ids=lambda selector: type(selector).__name__)
@pytest.mark.parametrize(
    ("tasks", "available"),
    [(None, None), (None, SOME), (REPEATED, None), (REPEATED, SOME[:4])],
    ids=["all", "ragged", "some tasks", "some tasks, ragged"],
)
def test_a_catalogue_gives_the_decision_of_candidates_that_repeat_it(selector, tasks, available):
    agent = trained(action_selector=selector)
    rows = TASKS if tasks is None else len(tasks)
    copied = CATALOGUE.repeat(rows, 1, 1)
    expected = agent.decide(copied, tasks, available)
    decision = agent.decide_from(CATALOGUE, tasks, available)
    assert torch.equal(decision.actions, expected.actions)
    assert torch.equal(decision.inputs, expected.inputs)
    assert torch.equal(decision.tasks, expected.tasks)
    # The network works in single precision, on batches of another size.
    close = {"rtol": 1e-4, "atol": 1e-5}
    torch.testing.assert_close(decision.optimistic_values, expected.optimistic_values, **close)
    torch.testing.assert_close(decision.prediction.mean, expected.prediction.mean, **close)
    agent.observe(decision, [0.5] * rows)


def test_exact_selection_accepts_catalogues():
    known = gfucb.FiniteClass([lambda x: x[:, :2].double(), lambda x: x[:, 2:4].double()])
    agent = GFUCB(TASKS, known)
    tasks = torch.arange(TASKS)
    agent.learn(tasks, numbers("inputs", TASKS, DIM), numbers("rewards", TASKS))
    expected = agent.decide(CATALOGUE.repeat(TASKS, 1, 1))
    decision = agent.decide_from(CATALOGUE)
    assert torch.equal(decision.actions, expected.actions)
    torch.testing.assert_close(decision.optimistic_values, expected.optimistic_values)


class Counting(nn.Module):
    """Counts the inputs it gets."""

    rows = 0

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(DIM, 3)

    def forward(self, x):
        Counting.rows += len(x)
        return self.linear(x)


@pytest.mark.parametrize("selector", [gfucb.LastLayer(), gfucb.Greedy()])
@pytest.mark.parametrize("epsilon", [0.0, 1.0])
def test_the_cost_of_features_does_not_depend_on_the_number_of_tasks(selector, epsilon):
    def rows_of_a_decision(num_tasks: int) -> int:
        agent = GFUCB(
            num_tasks, Counting(), fit=VariableProjection(steps=0), action_selector=selector
        )
        tasks = torch.arange(num_tasks)
        agent.learn(tasks, numbers("inputs", num_tasks, DIM), numbers("rewards", num_tasks))
        Counting.rows = 0
        draws = gfucb.EpsilonGreedy(agent, epsilon=epsilon)
        draws.decide(CATALOGUE.expand(num_tasks, ITEMS, DIM))
        return Counting.rows

    assert rows_of_a_decision(4) == rows_of_a_decision(400) <= 2 * ITEMS


@pytest.mark.parametrize(
    "candidates",
    [
        CATALOGUE.expand(TASKS, ITEMS, DIM),
        np.broadcast_to(CATALOGUE.numpy(), (TASKS, ITEMS, DIM)),
    ],
    ids=["torch", "numpy"],
)
def test_views_that_repeat_a_catalogue_are_not_copied(candidates):
    action_sets = validate_action_sets(candidates, None, SOME, num_tasks=TASKS, device="cpu")
    assert action_sets.is_shared
    assert tuple(action_sets.candidates.shape) == (TASKS, ITEMS, DIM)
    assert action_sets.candidates.untyped_storage().nbytes() == CATALOGUE.nbytes
    assert action_sets.restricted_to(torch.zeros(TASKS, dtype=torch.int64)).is_shared


def test_a_single_row_and_a_repeated_tensor_are_ordinary_candidates():
    one = validate_action_sets(CATALOGUE[None], [2], None, num_tasks=TASKS, device="cpu")
    copied = validate_action_sets(
        CATALOGUE.repeat(TASKS, 1, 1), None, None, num_tasks=TASKS, device="cpu"
    )
    assert not one.is_shared and not copied.is_shared
    assert len(one.items) == ITEMS and len(copied.items) == TASKS * ITEMS


def test_items_that_no_row_may_choose_may_hold_any_value():
    agent, broken = trained(), CATALOGUE.clone()
    broken[3] = float("nan")
    nowhere = SOME.clone()
    nowhere[:, 3] = False
    decision = agent.decide_from(broken, available=nowhere)
    assert torch.equal(decision.actions, agent.decide_from(CATALOGUE, None, nowhere).actions)
    nowhere[2, 3] = True
    with pytest.raises(InvalidInputError, match="finite"):
        agent.decide_from(broken, available=nowhere)


@pytest.mark.parametrize(
    ("catalogue", "tasks", "message"),
    [
        (torch.tensor(1.0), None, r"\[action, \*input\]"),
        (torch.rand(0, DIM), None, "no axis empty"),
        (torch.rand(ITEMS, DIM + 1), None, r"shape \[5\].*\[6\]"),
        (CATALOGUE, [0, TASKS], "got task 6"),
        (CATALOGUE, [], "the task of at least one row"),
        (CATALOGUE, "all", "tasks must be a tensor"),
    ],
)
def test_wrong_catalogues_are_refused(catalogue, tasks, message):
    with pytest.raises(InvalidInputError, match=message):
        trained().decide_from(catalogue, tasks)


def test_later_changes_of_the_catalogue_do_not_reach_the_decision():
    agent, catalogue = trained(), CATALOGUE.clone()
    decision = agent.decide_from(catalogue)
    expected = decision.inputs.clone()
    catalogue.zero_()
    assert torch.equal(decision.inputs, expected)
