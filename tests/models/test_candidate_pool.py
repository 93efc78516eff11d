"""The pool of candidates: bounded, uniform over distinct inputs, independent of their order."""

import pytest
import torch

from gfucb.core.errors import InvalidInputError
from gfucb.core.random import random_stream
from gfucb.models import candidate_pool
from gfucb.models.candidate_pool import CandidatePool


def images(count: int, seed: int = 0) -> torch.Tensor:
    return torch.randint(256, (count, 3, 3), generator=random_stream(seed, "pool")).to(torch.uint8)


def test_the_pool_is_bounded_and_holds_distinct_inputs():
    inputs, pool = images(200), CandidatePool(50, key=1)
    for part in inputs.split(7):
        pool = pool.with_inputs(part)
    assert len(pool) == 50
    assert len(pool.inputs.unique(dim=0)) == 50
    assert all(bool((inputs == own).flatten(1).all(1).any()) for own in pool.inputs)


def test_order_and_repetition_do_not_matter():
    inputs = images(120)
    pool = CandidatePool(30, key=1).with_inputs(inputs)
    shuffled = inputs[torch.randperm(120, generator=random_stream(0, "order"))]
    other = CandidatePool(30, key=1)
    for part in [*shuffled.split(11), shuffled[:40], shuffled]:
        other = other.with_inputs(part)
    assert torch.equal(pool.inputs, other.inputs)
    assert torch.equal(pool.with_inputs(inputs).inputs, pool.inputs)


def test_inputs_that_wait_are_in_the_pool():
    """They are merged later to save copies; nobody can tell."""
    inputs = images(120)
    pool = CandidatePool(200, key=1).with_inputs(inputs[:100])
    later = pool.with_inputs(inputs[100:110]).with_inputs(inputs[110:])
    assert later.waiting and len(later) == 120 and len(pool) == 100
    assert torch.equal(later.inputs, CandidatePool(200, key=1).with_inputs(inputs).inputs)
    assert not later.with_inputs(inputs[:10]).waiting


def test_a_pool_of_large_inputs_holds_fewer(monkeypatch):
    monkeypatch.setattr(candidate_pool, "FEWEST_INPUTS", 8)
    monkeypatch.setattr(candidate_pool, "MOST_BYTES", 20 * 9)
    inputs = images(60)  # of nine bytes
    pool = CandidatePool(50, key=1).with_inputs(inputs)
    assert len(pool) == 20
    assert len(CandidatePool(50, key=1).with_inputs(inputs.double())) == 8
    with pytest.raises(InvalidInputError, match="1 to 20"):
        CandidatePool(50, key=1).restored(images(21))


def test_a_pool_is_a_value():
    empty = CandidatePool(5, key=1)
    pool = empty.with_inputs(images(3))
    pool.with_inputs(images(20, seed=1))
    assert (len(empty), len(pool)) == (0, 3)


def test_every_distinct_input_has_the_same_chance():
    """Over 400 keys each of 40 inputs is in a pool of 10 about 100 times."""
    inputs = torch.arange(40.0)[:, None].repeat(1, 2)
    inputs = torch.cat([inputs, inputs[:5].repeat(20, 1)])  # five are offered 21 times
    counts = torch.zeros(40)
    for key in range(400):
        kept = CandidatePool(10, key=key * 7919).with_inputs(inputs).inputs
        counts[kept[:, 0].long()] += 1
    # Standard deviation sqrt(400 * 0.25 * 0.75) = 8.7; the chance of 4.5 of them is 3e-4 for 40.
    assert float((counts - 100).abs().max()) < 4.5 * 8.7
    assert abs(float(counts[:5].mean()) - 100) < 4.5 * 8.7 / 5**0.5


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int64, torch.float32, torch.float64])
def test_inputs_that_differ_in_one_number_are_distinct(dtype):
    inputs = torch.zeros(8, 7).to(dtype)
    inputs.fill_diagonal_(128)
    assert len(CandidatePool(20, key=3).with_inputs(inputs)) == 8
    # Differences in the highest bytes of two words, which a sum of products would lose.
    pairs = torch.zeros(200, 16, dtype=torch.uint8)
    pairs[:, 7] = torch.arange(200)
    pairs[:, 15] = 255 - torch.arange(200)
    assert len(CandidatePool(300, key=3).with_inputs(pairs)) == 200


def test_single_numbers_can_be_pooled():
    assert len(CandidatePool(4, key=0).with_inputs(torch.arange(9))) == 4


def test_a_restored_pool_is_the_same_and_a_changed_one_is_refused():
    empty = CandidatePool(30, key=5)
    pool = empty.with_inputs(images(100))
    restored = empty.restored(pool.inputs.clone())
    more = images(50, seed=2)
    assert torch.equal(restored.with_inputs(more).inputs, pool.with_inputs(more).inputs)
    changed = pool.inputs.clone()
    changed[3, 1, 1] ^= 1
    changed[20, 0, 0] ^= 4
    for bad in (changed, pool.inputs.flip(0), pool.inputs[:0], images(31)):
        with pytest.raises(InvalidInputError, match="the saved pool"):
            empty.restored(bad)
