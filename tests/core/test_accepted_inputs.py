"""Arguments of many kinds that are accepted, and what callers do with their tensors later."""

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

import gfucb
from gfucb import GFUCB, VariableProjection


def candidates(seed: int) -> torch.Tensor:
    return torch.rand(3, 4, 5, generator=torch.Generator().manual_seed(seed))


def test_numpy_arrays_and_lists_keep_their_precision():
    agent = gfucb.linucb(1)
    reward = 0.1 + 1e-12
    agent.observe(agent.decide(np.ones((1, 1, 1))), [reward])
    assert agent.state()["data.targets"].tolist() == [reward]


def test_numpy_counts_views_and_scalars_are_accepted():
    agent = gfucb.linucb(np.int64(2))
    arrays = np.arange(12.0).reshape(2, 3, 2)[:, ::-1]
    arrays.setflags(write=False)
    decision = agent.decide(arrays)
    agent.observe(decision[1], 0.5)
    agent.observe(decision[0], np.float32(0.25))
    assert agent.state()["data.targets"].tolist() == [0.5, 0.25]


@pytest.mark.parametrize("dtype", [">f8", "<f8", ">f4", "longdouble"])
def test_floats_of_other_machines_are_accepted(dtype):
    given = candidates(0).numpy()
    found, plain = (GFUCB(3).decide(array) for array in (given.astype(dtype), given))
    assert torch.equal(found.inputs, plain.inputs.to(found.inputs.dtype))


@pytest.mark.parametrize("dtype", ["uint16", "uint32", "uint64", ">i4"])
def test_unsigned_integers_number_items_and_tasks(dtype):
    items = np.arange(6).reshape(2, 3).astype(dtype)
    agent = gfucb.GFUCB(2)
    decision = agent.decide(items, np.array([1, 0], dtype))
    agent.observe(decision, np.array([3, 4], dtype))
    assert decision.tasks.tolist() == [1, 0]
    assert agent.state()["data.targets"].tolist() == [3.0, 4.0]
    with pytest.raises(gfucb.InvalidInputError, match="candidates must be real numbers"):
        agent.decide(np.full((2, 3), 2**63, dtype=np.uint64))


def test_lists_of_different_lengths_are_refused_with_their_cure():
    agent = gfucb.GFUCB(2)
    ragged = [[[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0]]]
    with pytest.raises(gfucb.InvalidInputError, match=r"different lengths; .* pass `available`"):
        agent.decide(ragged)
    with pytest.raises(gfucb.InvalidInputError, match="lengths; pass True or False for every act"):
        agent.decide(candidates(0)[:2], available=[[True], [True, False]])
    with pytest.raises(gfucb.InvalidInputError, match="every action needs as many numbers"):
        gfucb.Agent().decide_from({"tea": [1.0, 2.0], "juice": [1.0]}, tasks=["Oslo"])


def test_booleans_are_inputs_of_zeros_and_ones():
    given = candidates(0) > 0.5
    agent, plain = GFUCB(3), GFUCB(3)
    for kind in (given, given.numpy(), given.tolist()):
        agent.observe(agent.decide(kind), [0.1, 0.5, 0.9])
        plain.observe(plain.decide(given.float()), [0.1, 0.5, 0.9])
    assert torch.equal(agent.state()["data.inputs"], plain.state()["data.inputs"])
    assert torch.equal(agent.decide(given).inputs, plain.decide(given.float()).inputs)
    agent.learn([0, 1], given[0, :2], [0.3, 0.4])
    agent.decide_from(given[0])


def test_a_data_frame_of_numbers_and_booleans_is_a_catalogue():
    frame = pd.DataFrame({"price": [1.5, 2.0], "new": [True, False]})
    decision = gfucb.GFUCB(2).decide_from(frame, available=[[True, False], [False, True]])
    assert decision.inputs.tolist() == [[1.5, 1.0], [2.0, 0.0]]


def test_discrete_actions_follow_the_context():
    context = pd.DataFrame({"size": [1, 2, 3], "new": [True, False, True]})
    found = gfucb.with_actions(context, 2)
    assert found[1].tolist() == [[2.0, 0.0, 1.0, 0.0], [2.0, 0.0, 0.0, 1.0]]
    assert gfucb.with_actions(torch.rand(2, 3, dtype=torch.float16), 4).dtype == torch.float16


@pytest.mark.parametrize(
    ("context", "num_actions", "message"),
    [
        (torch.rand(3), 2, r"\[row, column\], got \[3\]; pass context\[None\]"),
        (torch.rand(3, 2), 0, "num_actions"),
        (pd.DataFrame({"city": ["Rome"]}), 2, "'Rome'.* column 'city'.* gfucb.tables"),
    ],
)
def test_contexts_that_cannot_be_combined_with_actions_are_refused(context, num_actions, message):
    with pytest.raises(gfucb.InvalidInputError, match=message):
        gfucb.with_actions(context, num_actions)


def test_numpy_numbers_are_accepted_as_settings():
    agent = GFUCB(np.int32(2), seed=np.int64(3), ridge=np.float32(0.5), refit_growth=2)
    assert agent.settings()["ridge"] == "0.5"


@pytest.mark.parametrize("switch", [torch.no_grad, torch.inference_mode])
def test_serving_code_that_switched_gradients_off_can_learn(switch):
    agent = GFUCB(3, fit=VariableProjection(steps=2), refit_growth=1.0)
    plain = GFUCB(3, fit=VariableProjection(steps=2), refit_growth=1.0)
    for index in range(3):
        with switch():
            decision = agent.decide(candidates(index) * 1.0)
            agent.observe(decision, torch.ones(3) * 0.5)
        plain.observe(plain.decide(candidates(index)), [0.5] * 3)
    assert torch.equal(agent.state()["heads"], plain.state()["heads"])


def test_tensors_that_carry_gradients_leave_none_in_the_agent():
    agent = GFUCB(3, fit=VariableProjection(steps=2), refit_growth=1.0)
    for index in range(3):
        decision = agent.decide(candidates(index).requires_grad_())
        agent.observe(decision, torch.rand(3, requires_grad=True))
    assert not any(tensor.requires_grad for tensor in agent.state().values())


def test_later_changes_of_the_callers_tensors_do_not_reach_the_decision():
    agent = GFUCB(3)
    tasks, given = torch.tensor([0]), candidates(0)[:1]
    decision = agent.decide(given, tasks)
    expected = decision.inputs.clone()
    tasks[0] = 2
    given.zero_()
    assert decision.tasks.tolist() == [0]
    assert torch.equal(decision.inputs, expected)


def test_batch_normalisation_can_learn_from_a_single_sample():
    net = nn.Sequential(nn.Linear(5, 4), nn.BatchNorm1d(4))
    for fit in (VariableProjection(steps=2), gfucb.estimation.AdamFit(epochs=2, batch_size=2)):
        agent = GFUCB(3, net, fit=fit)
        decision = agent.decide(candidates(0))
        agent.observe(decision[0], [0.5])
        agent.observe(decision[[1, 2]], [0.5, 0.1])


def test_half_precision_inputs_do_not_round_later_inputs():
    agent = gfucb.linucb(1)
    agent.observe(agent.decide(torch.ones(1, 1, 1, dtype=torch.float16)), [0.5])
    agent.observe(agent.decide(torch.full((1, 1, 1), 1e5)), [0.5])
    assert float(agent.state()["data.inputs"].max()) == 1e5


@pytest.mark.parametrize("item", [3, -1])
def test_items_that_an_embedding_does_not_have_are_refused(item):
    agent = GFUCB(2, nn.Embedding(3, 2))
    agent.learn([0, 1], [0, 1], [0.1, 0.2])
    message = f"numbers {min(item, 0)} to {max(item, 2)} .* from 0 to num_embeddings - 1"
    with pytest.raises(gfucb.InvalidInputError, match=message):
        agent.decide([[0, 1, item], [2, 1, 0]])
    with pytest.raises(gfucb.InvalidInputError, match="num_embeddings - 1"):
        agent.learn([0], [item], [0.3])
    agent.learn([0], [2], [0.3])  # unchanged
    assert agent.state()["data.targets"].tolist() == [0.1, 0.2, 0.3]
