import torch

from gfucb.models import MultitaskDataset


def filled(num_samples: int, dtype: torch.dtype = torch.uint8) -> MultitaskDataset:
    data = MultitaskDataset(3, torch.Size([2, 2]), dtype, capacity=4)
    for sample in range(num_samples):
        inputs = torch.full((1, 2, 2), sample, dtype=dtype)
        data.append(torch.tensor([sample % 3]), inputs, torch.tensor([float(sample)]))
    return data


def test_samples_come_back_in_the_order_they_arrived():
    data = filled(50)
    assert len(data) == 50
    assert data.inputs[:, 0, 0].tolist() == list(range(50))
    assert data.tasks.tolist() == [s % 3 for s in range(50)]
    assert data.targets.tolist() == [float(s) for s in range(50)]
    assert data.samples_per_task.tolist() == [17, 17, 16]


def test_storage_doubles_so_that_appending_is_amortised_constant():
    data, capacities = filled(0), set()
    for sample in range(1000):
        data.append(torch.tensor([0]), torch.zeros(1, 2, 2), torch.tensor([float(sample)]))
        capacities.add(data.capacity)
    assert capacities == {4 * 2**i for i in range(9)}


def test_images_of_bytes_are_stored_as_bytes():
    data = filled(10)
    assert data.inputs.dtype == torch.uint8
    assert data.inputs.element_size() * data.inputs[0].numel() == 4


def test_the_round_counts_from_one_and_follows_the_task_with_most_samples():
    assert filled(0).round_index == 1
    assert filled(3).round_index == 2
    assert filled(4).round_index == 3


def test_later_appends_do_not_change_a_snapshot():
    data = filled(5)
    snapshot = data.snapshot()
    data.append(torch.tensor([0]), torch.zeros(1, 2, 2), torch.tensor([9.0]))
    assert (len(snapshot), len(data)) == (5, 6)
    assert snapshot.samples_per_task.tolist() == [2, 2, 1]
    snapshot.append(torch.tensor([1]), torch.ones(1, 2, 2), torch.tensor([-1.0]))
    assert data.targets[-1] == 9.0


def test_truncating_removes_the_newest_samples():
    data = filled(7)
    data.truncate(4)
    assert len(data) == 4
    assert data.samples_per_task.tolist() == [2, 1, 1]
