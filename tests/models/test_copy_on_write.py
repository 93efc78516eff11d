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
