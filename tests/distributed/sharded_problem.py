"""A small problem for agents with several shards, and how an agent plays it."""

from functools import cache

import torch
from torch import nn

import gfucb
from gfucb.core.action_sets import ActionSets
from gfucb.core.shards import num_own_tasks
from gfucb.distributed import Shard
from gfucb.estimation.variable_projection import VariableProjection
from gfucb.models.nn.seeded_layers import SeededDropout

TASKS, ACTIONS, COLUMNS, ROUNDS = 11, 4, 6, 8
FIT = VariableProjection(steps=6, max_steps=6, batch_size=24)


def network():
    layers = [nn.Linear(COLUMNS, 16), nn.Tanh(), SeededDropout(0.2), nn.Linear(16, 5)]
    net = nn.Sequential(*layers).double()
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for weight in net.parameters():
            weight.copy_(0.4 * torch.randn(weight.shape, generator=generator, dtype=torch.float64))
    return net


def make_agent(num_tasks, **settings):
    return gfucb.GFUCB(num_tasks, network(), seed=3, fit=FIT, **settings)


@cache
def problem(index):
    """Candidates [task, action, column], rewards [task, action] and active tasks of a round."""
    generator = torch.Generator().manual_seed(index)

    def normal(*shape):
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    candidates, noise = normal(TASKS, ACTIONS, COLUMNS), 0.1 * normal(TASKS, ACTIONS)
    fixed = torch.Generator().manual_seed(1234)
    basis = torch.randn(COLUMNS, 3, generator=fixed, dtype=torch.float64)
    heads = torch.randn(TASKS, 3, generator=fixed, dtype=torch.float64)
    rewards = ((candidates @ basis).tanh() * heads[:, None]).sum(-1) + noise
    if index == 5:
        rewards[0] += 1000.0  # an outlier
    active = (torch.rand(TASKS, generator=generator) < 0.6).nonzero().squeeze(1)
    return candidates, rewards, active


def play_shard(shards, agent=None, rounds=ROUNDS):
    """The agent of a shard after some rounds, and its actions and values by round and task."""
    own_tasks = num_own_tasks(TASKS, shards.index, shards.count)
    agent = make_agent(own_tasks) if agent is None else agent(own_tasks)
    shard, made = Shard(agent, shards), {}
    for index in range(rounds):
        candidates, rewards, active = problem(index)
        own = active[active % shards.count == shards.index]
        available = torch.ones(len(own), ACTIONS, dtype=torch.bool)
        sets = ActionSets(candidates[own], own // shards.count, available)
        decision = shard.decide(sets.candidates, sets.tasks, sets.available)
        shard.observe(decision, rewards[own, decision.actions.cpu()])
        for row, task in enumerate(own.tolist()):
            values = decision.optimistic_values
            made[index, task] = int(decision.actions[row]), float(values[row])
    return agent, made


def play_agent(agent, first=0, last=ROUNDS):
    """Actions and values by round and task of an agent in one process, or of a sharded one."""
    made = {}
    for index in range(first, last):
        candidates, rewards, active = problem(index)
        decision = agent.decide(candidates[active], active)
        agent.observe(decision, rewards[active, decision.actions])
        for row, task in enumerate(active.tolist()):
            values = decision.optimistic_values
            made[index, task] = int(decision.actions[row]), float(values[row])
    return made


def weights_of(agent):
    state = agent.state()
    names = [name for name in state if name.startswith("representation.")]
    return torch.cat([state[name].flatten() for name in sorted(names)])


def require_same(made, expected):
    assert made.keys() == expected.keys()
    assert {k: v[0] for k, v in made.items()} == {k: v[0] for k, v in expected.items()}
    assert max(abs(made[k][1] - expected[k][1]) for k in made) < 1e-9
