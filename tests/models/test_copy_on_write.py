import pytest
import torch

from gfucb.core.random import random_stream
from gfucb.models.copy_on_write import CopyOnWriteRows

TASKS = 9


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("at_once", [1, 2, 6])
def test_rows_change_like_those_of_a_tensor_and_former_values_stay(seed, at_once):
    generator = random_stream(seed, "rows")
    plain = torch.randn(TASKS, 3, 3, generator=generator).mT  # by columns
    rows, history = CopyOnWriteRows(plain.clone()), []
    for _ in range(12):
        tasks = torch.randperm(TASKS, generator=generator)[:at_once]
        news = torch.randn(at_once, 3, 3, generator=generator)
        history.append((rows, plain.clone()))
        rows = rows.replaced(tasks, news)
        plain[tasks] = news
        assert 2 * len(rows.changed) <= TASKS
        asked = torch.randint(TASKS, (5,), generator=generator)
        assert torch.equal(rows[asked], plain[asked])
    for before, expected in [*history, (rows, plain)]:
        assert torch.equal(before.whole, expected)
        assert before.whole.stride() == expected.stride()
        assert len(before) == TASKS


def test_a_change_of_a_few_rows_copies_no_others():
    rows = CopyOnWriteRows(torch.zeros(1000, 4))
    after = rows.replaced(torch.tensor([3, 700]), torch.ones(2, 4))
    assert after.base is rows.base
    assert sorted(after.changed) == [3, 700]
    # Not views of the arguments, which would hold all of their memory.
    assert all(len(row.untyped_storage()) == row.nbytes for row in after.changed.values())
    assert after[torch.tensor([700, 1])].tolist() == [[1.0] * 4, [0.0] * 4]


def test_more_rows_share_those_before_and_equal_one_tensor():
    draws = torch.Generator().manual_seed(0)
    plain = torch.randn(40, 3, generator=draws)
    rows = CopyOnWriteRows(plain.clone())
    base = rows.base
    for step in range(60):
        added = torch.randn(1 + step % 2, 3, generator=draws)
        plain = torch.cat([plain, added])
        rows = rows.extended(added)
        if step < 10:
            assert rows.base is base  # nothing is copied
        task = torch.tensor([len(plain) - 1 - step % 7])
        value = torch.randn(1, 3, generator=draws)
        plain[task], rows = value, rows.replaced(task, value)
        some = torch.tensor([0, len(plain) - 1, 5])
        assert torch.equal(rows[some], plain[some]) and rows.shape == plain.shape
        assert 2 * len(rows.changed) <= len(rows)
    assert torch.equal(rows.whole, plain)


def test_rows_can_be_added_to_none():
    rows = CopyOnWriteRows(torch.zeros(0, 3)).extended(torch.ones(2, 3))
    assert len(rows) == 2 and torch.equal(rows.whole, torch.ones(2, 3))
