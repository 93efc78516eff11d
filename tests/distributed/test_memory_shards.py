"""Shards of one machine exchange numbers through memory."""

import threading

import pytest
import torch

from gfucb.core.errors import GFUCBError, InvalidInputError
from gfucb.distributed import MemoryShards, connected, meeting_address, memory_shards

COUNT = 3


def in_memory(function, count=COUNT):
    """The results of `function(shards)` in threads that have opened one file."""
    found = [None] * count

    def run(index, address):
        with connected(address, index=index, count=count, timeout=20) as shards:
            found[index] = function(shards)

    with meeting_address(count) as address:
        assert address.startswith(memory_shards.SCHEME)
        threads = [threading.Thread(target=run, args=(i, address)) for i in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return found


@pytest.mark.parametrize("size", [1, 7, 2000, 100_001])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64])
def test_sums_of_any_size_are_the_same_in_all_shards(size, dtype, monkeypatch):
    monkeypatch.setattr(memory_shards, "LARGEST_BUFFER", 2**14)  # several parts
    parts = [(torch.arange(size) * (3 + index)).to(dtype) for index in range(COUNT)]
    for found in in_memory(lambda shards: shards.sum(parts[shards.index])):
        assert found.dtype == dtype and torch.equal(found, torch.stack(parts).sum(0))


def test_shapes_are_kept_and_exchanges_do_not_mix():
    def exchange(shards):
        one = shards.sum(torch.tensor(2.0))
        many = [shards.sum(torch.full((2, 3), float(n + shards.index))) for n in range(50)]
        rows = [shards.gather(torch.full((n % 2 * shards.index, 2), n)) for n in range(20)]
        return one, many, rows

    for one, many, rows in in_memory(exchange):
        assert one.shape == () and float(one) == 2 * COUNT
        for n, found in enumerate(many):
            assert torch.equal(found, torch.full((2, 3), float(3 * n + 3)))
        assert [len(found) for found in rows] == [n % 2 * 3 for n in range(20)]
        assert all(bool((found == n).all()) for n, found in enumerate(rows))


def test_a_shard_that_is_missing_is_an_error(tmp_path):
    with meeting_address(2) as address:
        path = address.removeprefix(memory_shards.SCHEME)
        shards = MemoryShards(path, index=0, count=2, timeout=0.05)
        with pytest.raises(GFUCBError, match=r"not answered for 0\.05 seconds"):
            shards.sum(torch.ones(1))
        with pytest.raises(InvalidInputError, match="index must be from 0 to count - 1 = 1"):
            MemoryShards(path, index=2, count=2, timeout=1.0)


def test_machines_that_reorder_writes_use_sockets(monkeypatch):
    monkeypatch.setattr(memory_shards.platform, "machine", lambda: "aarch64")
    with meeting_address(2) as address:
        assert address.startswith("file://")
