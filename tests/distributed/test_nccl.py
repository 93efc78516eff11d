"""Shards on a GPU exchange gradients through NCCL."""

import functools
import multiprocessing

import pytest
import torch
import torch.distributed as dist
from sharded_problem import make_agent, play_shard, require_same, weights_of
from thread_shards import in_threads

from gfucb.distributed import connected

pytestmark = pytest.mark.skipif(
    not torch.cuda.is_available() or not dist.is_nccl_available(),
    reason="NCCL exchanges the tensors of GPUs, and there is none",
)
ROUNDS = 4


def on_gpu(num_tasks, **settings):
    return make_agent(num_tasks, device="cuda", **settings)


def test_one_process_with_nccl_is_the_agent_of_the_cpu(tmp_path):
    expected, made = in_threads(1, functools.partial(play_shard, rounds=ROUNDS))[0]
    with connected(f"file://{tmp_path}/address", index=0, count=1) as shards:
        own = torch.arange(6.0, device="cuda").view(3, 2)
        assert torch.equal(shards.sum(own), own) and torch.equal(shards.gather(own), own)
        assert shards.sum(own).is_cuda
        agent, found = play_shard(shards, on_gpu, rounds=ROUNDS)
    require_same(found, made)
    assert float((weights_of(agent).cpu() - weights_of(expected)).abs().max()) < 1e-9


def two_ranks(address, index, results):
    """Play the rounds of one of two shards on the same GPU; NCCL may refuse that."""
    try:
        with connected(address, index=index, count=2, timeout=60) as shards:
            shards.sum(torch.ones(3, device="cuda"))
            agent, made = play_shard(shards, on_gpu, rounds=ROUNDS)
            results.put((index, made, weights_of(agent).cpu().tolist()))
    except dist.DistBackendError as error:
        results.put((index, None, str(error).splitlines()[-1]))


def test_two_processes_with_nccl_are_one_agent(tmp_path):
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    arguments = [(f"file://{tmp_path}/address", index, results) for index in range(2)]
    workers = [context.Process(target=two_ranks, args=own, daemon=True) for own in arguments]
    for worker in workers:
        worker.start()
    parts = [results.get(timeout=100) for _ in workers]
    for worker in workers:
        worker.join(timeout=10)
        worker.kill()
    refusals = [text for _, made, text in parts if made is None]
    if refusals and torch.cuda.device_count() == 1:
        pytest.skip(f"NCCL refuses two ranks on the only GPU: {refusals[0]}")
    assert not refusals
    expected, made = in_threads(1, functools.partial(play_shard, rounds=ROUNDS))[0]
    require_same({key: value for _, own, _ in parts for key, value in own.items()}, made)
    for _, _, weights in parts:
        assert float((torch.tensor(weights) - weights_of(expected)).abs().max()) < 1e-9
