"""Self-supervision in several shards: batches of each shard's own candidates, one network."""

import torch
from sharded_problem import weights_of
from thread_shards import in_threads

import gfucb
from gfucb.distributed import Shard
from gfucb.estimation.self_supervision import Contrastive
from gfucb.estimation.variable_projection import VariableProjection
from gfucb.models.network_classes import DefaultNetworkClass

ACTIONS, ROUNDS = 4, 3
METHOD = Contrastive(steps=4, batch_size=8)
FIT = VariableProjection(steps=2, max_steps=2)


def play(shards, method):
    """Two tasks in the first shard, one in the others, which has fewer candidates."""
    agent = gfucb.GFUCB(
        2,
        DefaultNetworkClass(feature_dim=8, hidden=16),
        seed=0,
        fit=FIT,
        self_supervision=method,
    )
    shard = Shard(agent, shards)
    generator = torch.Generator().manual_seed(shards.index)
    for _ in range(ROUNDS):
        tasks = torch.arange(2 - shards.index)
        images = torch.rand(len(tasks), ACTIONS, 8, 8, generator=generator)
        available = torch.ones(len(tasks), ACTIONS, dtype=torch.bool)
        decision = shard.decide(images, tasks, available)
        shard.observe(decision, decision.inputs.mean((1, 2)).double())
    again = gfucb.GFUCB(
        2, DefaultNetworkClass(feature_dim=8, hidden=16), seed=0, fit=FIT, self_supervision=method
    )
    again.network_learner.shards = shards
    again.load_state(agent.state())
    return weights_of(agent), weights_of(again)


def test_all_shards_have_the_network_of_all_candidates():
    found = in_threads(3, lambda shards: play(shards, METHOD))
    without = in_threads(3, lambda shards: play(shards, None))
    for weights, again in found:  # the last shard has no task with candidates at all
        assert torch.equal(weights, found[0][0]) and torch.equal(weights, again)
        assert not torch.equal(weights, without[0][0])
