"""Shards as processes: the same results, and faults that change nothing."""

import functools
import multiprocessing
import os
import re
import shutil
import signal
import socket
from pathlib import Path
from unittest.mock import Mock

import pytest
import torch
from sharded_problem import (
    COLUMNS,
    FIT,
    TASKS,
    make_agent,
    network,
    play_agent,
    play_shard,
    problem,
    require_same,
    weights_of,
)
from thread_shards import in_threads
from torch import nn

import gfucb
from gfucb.core.errors import InvalidInputError, SavedStateError
from gfucb.core.shards import OneShard
from gfucb.distributed import Shard, ShardedAgent, ShardError, connected
from gfucb.distributed.agent_directory import AgentDirectory, InputKind
from gfucb.distributed.messages import Message
from gfucb.distributed.worker import Worker, WorkerSettings

LAST = 5  # rounds


class DyingNetwork(nn.Module):
    """Fails in a training step as soon as there is a certain file."""

    def __init__(self, path, fail):
        super().__init__()
        self.network, self.path, self.fail = network(), Path(path), fail

    def forward(self, x):
        if self.training and self.path.exists():
            self.path.unlink(missing_ok=True)
            self.fail()
        return self.network(x)


def make_dying_agent(path, fail, num_tasks):
    return gfucb.GFUCB(num_tasks, DyingNetwork(path, fail), seed=3, fit=FIT)


def kill_this_process():
    os.kill(os.getpid(), signal.SIGKILL)


class Exponential(nn.Module):
    def forward(self, x):
        return x.exp()


def overflowing_agent(num_tasks):
    network = nn.Sequential(nn.Linear(2, 2, bias=False), Exponential())
    nn.init.eye_(network[0].weight)
    return gfucb.GFUCB(num_tasks, network, seed=3, fit=FIT)


def embedding_agent(num_tasks):
    layers = nn.Sequential(nn.Flatten(0), nn.Embedding(5, 3))
    return gfucb.GFUCB(num_tasks, layers, seed=0, fit=FIT)


def raise_error():
    raise RuntimeError("the shard fails")


@pytest.fixture(scope="module")
def alone():
    return in_threads(1, functools.partial(play_shard, rounds=LAST))[0]


def weights_in(agent):
    return torch.cat([tensor.flatten() for _, tensor in sorted(agent.weights().items())])


@pytest.mark.slow
def test_two_processes_are_one_agent_even_if_one_is_killed_in_a_fit(alone, tmp_path):
    expected, made = alone
    fuse = tmp_path / "die"
    make = functools.partial(make_dying_agent, str(fuse), kill_this_process)
    directory = tmp_path / "shards"
    wide = torch.zeros(2, 3, COLUMNS + 1)
    decision = gfucb.GFUCB(TASKS).decide(wide, tasks=[0, 1])
    with ShardedAgent(make, num_tasks=TASKS, num_shards=2, directory=directory) as agent:
        for mistake in (decision, decision[[]]):  # nothing of it is stored
            with pytest.raises(InvalidInputError, match="cannot read inputs of shape"):
                agent.observe(mistake, [1.0] * len(mistake.tasks))
        assert agent.directory.input_kind is None and not list(directory.rglob("rewards*"))
        found = play_agent(agent, 0, 2)
        fuse.touch()  # the fit of the next rewards kills a shard in its first step
        first = agent.processes
        found |= play_agent(agent, 2, LAST)
        assert not fuse.exists() and agent.processes != first
        require_same(found, made)
        assert float((weights_in(agent) - weights_of(expected)).abs().max()) < 1e-9
        with pytest.raises(InvalidInputError, match="candidates must have the shape"):
            agent.decide(torch.zeros(0, 3, COLUMNS))
        before = agent.processes
        for mistake in (
            lambda: agent.decide(wide, tasks=[0, 1]),
            lambda: agent.observe(decision, [1, 0]),
        ):
            with pytest.raises(InvalidInputError, match="learned from inputs of shape"):
                mistake()
        with pytest.raises(SavedStateError, match="in use"):
            ShardedAgent(make, num_tasks=TASKS, num_shards=2, directory=directory)
        assert agent.processes == before  # they are as they were
        agent.directory, second = None, agent.processes
        os.kill(second[0].pid, signal.SIGKILL)
        with pytest.raises((ShardError, OSError)):  # there is no directory to rebuild it from
            play_agent(agent)
        with pytest.raises(ShardError, match="cannot be used any more"):
            play_agent(agent)
    assert not any(process.is_alive() for process in (*first, *second))


def commands(worker, first, last):
    """Play rounds with the worker of a shard; return what `play_agent` returns."""
    shards, made = worker.shard.shards, {}
    for index in range(first, last):
        candidates, rewards, active = problem(index)
        own = active[active % shards.count == shards.index]
        tensors = {
            "candidates": candidates[own],
            "tasks": own // shards.count,
            "available": torch.ones(len(own), candidates.shape[1], dtype=torch.bool),
        }
        answer = dict(worker.answer(Message("decide", tensors)).tensors)
        for row, task in enumerate(own.tolist()):
            value = float(answer["optimistic_values"][row])
            made[index, task] = int(answer["actions"][row]), value
        answer["rewards"] = rewards[own, answer["actions"]]
        worker.answer(Message("observe", answer))
    return made


@pytest.mark.parametrize("count", [1, 3])
def test_shards_rebuilt_from_their_directories_continue(alone, tmp_path, count):
    expected, made = alone
    fuse = tmp_path / "die"
    make = functools.partial(make_dying_agent, str(fuse), raise_error)

    def start(shards):
        directory = str(tmp_path / "shards")
        return Worker(WorkerSettings(make, TASKS, shards.index, count, "", directory, 1.0), shards)

    def until_a_shard_fails(shards):
        worker = start(shards)
        played = commands(worker, 0, 2)
        if shards.index == 0:
            fuse.touch()
        state = dict(worker.shard.agent.state())
        shards.gather(torch.zeros(1))  # no shard fits before there is a file
        with pytest.raises(Exception):  # noqa: B017 - of the network or of an exchange
            commands(worker, 2, 3)
        shards.exchange.barrier.abort()
        after = worker.shard.agent.state()
        return played, all(torch.equal(x, after[name]) for name, x in state.items())

    def continued(shards):
        worker = start(shards)
        played = commands(worker, worker.calls, LAST)
        return played, worker.calls, weights_of(worker.shard.agent)

    before = in_threads(count, until_a_shard_fails)
    assert all(is_unchanged for _, is_unchanged in before)  # the previous phi is in use
    after = in_threads(count, continued)
    found = {key: value for played, *_ in (*before, *after) for key, value in played.items()}
    require_same(found, {key: value for key, value in made.items() if key in found})
    for _, calls, weights in after:
        assert calls == LAST
        assert float((weights - weights_of(expected)).abs().max()) < 1e-9
    directories = sorted((tmp_path / "shards").iterdir())
    assert len(directories) == count
    assert all(len(list(directory.glob("checkpoint-*"))) <= 2 for directory in directories)


def test_a_shard_without_its_files_does_not_delete_those_of_the_others(tmp_path):
    def start(shards):
        settings = WorkerSettings(make_agent, TASKS, shards.index, 2, "", str(tmp_path), 1.0)
        return Worker(settings, shards)

    in_threads(2, lambda shards: commands(start(shards), 0, 2) and None)
    shutil.rmtree(tmp_path / "shard-00001")
    left = sorted((tmp_path / "shard-00000").iterdir())

    def refused(shards):
        with pytest.raises(SavedStateError, match="one shard has 2 calls of observe, another 0"):
            start(shards)

    in_threads(2, refused)
    assert sorted((tmp_path / "shard-00000").iterdir()) == left


def test_a_call_that_is_interrupted_closes_the_agent(monkeypatch, tmp_path):
    """Its answers would be taken for those of the next call."""
    ours, theirs = multiprocessing.Pipe()
    process = Mock(is_alive=lambda: False)
    monkeypatch.setattr(
        ShardedAgent, "_start", lambda agent: agent._workers.append((process, ours))
    )
    monkeypatch.setattr(ShardedAgent, "_answers", Mock(side_effect=KeyboardInterrupt))
    agent = ShardedAgent(make_agent, num_tasks=2, num_shards=1, directory=tmp_path)
    candidates = torch.rand(1, 3, COLUMNS)
    with pytest.raises(KeyboardInterrupt):
        agent.decide(candidates, tasks=[0])
    assert ours.closed and theirs.poll()
    with pytest.raises(ShardError, match="by KeyboardInterrupt; a new one continues"):
        agent.decide(candidates, tasks=[1])
    ShardedAgent(make_agent, num_tasks=2, num_shards=1, directory=tmp_path).close()


def test_a_wrong_decision_of_a_shard_is_refused_and_it_goes_on():
    worker = Worker(WorkerSettings(make_agent, TASKS, 0, 1, "", None, 1.0), OneShard())
    commands(worker, 0, 1)
    wide = torch.zeros(1, 3, COLUMNS + 1)
    tensors = {"candidates": wide, "tasks": torch.tensor([0]), "available": torch.ones(1, 3) > 0}
    assert worker.answer(Message("decide", tensors)).name == "refused"
    commands(worker, 1, 2)


@pytest.mark.parametrize(
    ("make", "inputs", "message"),
    [
        (gfucb.GFUCB, torch.full((1, 8, 8), 1e5), r"inputs reach 1e\+05"),
        (gfucb.GFUCB, torch.zeros(1, 2, dtype=torch.int64), "integers are ids of items"),
        (embedding_agent, torch.tensor([[7]]), "does not know all of the numbers 7 to 7"),
        (overflowing_agent, torch.full((1, 2), 1e3), "returned NaN or infinite features"),
    ],
    ids=["large images", "pairs of integers", "an id that is too large", "an overflow"],
)
def test_inputs_that_one_shard_refuses_are_refused_by_all_and_not_stored(
    make, inputs, message, tmp_path
):
    task = torch.tensor([0])
    calls = {
        "decide": {"candidates": inputs[None], "tasks": task, "available": torch.ones(1, 1) > 0},
        "observe": {
            "inputs": inputs,
            "tasks": task,
            "actions": task,
            "optimistic_values": torch.zeros(1, dtype=torch.float64),
            "rewards": torch.ones(1, dtype=torch.float64),
        },
    }

    def answers(shards):
        settings = WorkerSettings(make, 4, shards.index, 2, "", str(tmp_path), 1.0)
        worker, rows = Worker(settings, shards), 1 - shards.index  # the second shard has none
        parts = {name: {key: x[:rows] for key, x in own.items()} for name, own in calls.items()}
        return [worker.answer(Message(name, own)) for name, own in parts.items()]

    one, other = in_threads(2, answers)
    assert [answer.name for answer in (*one, *other)] == ["refused"] * 4
    for answer in one:
        assert re.search(message, answer.facts["error"])
    assert not list(tmp_path.rglob("rewards*"))


class TestDirectories:
    def test_are_used_by_one_agent_with_the_same_numbers(self, tmp_path):
        counts = {"num_tasks": 6, "num_shards": 2}
        directory = AgentDirectory(tmp_path / "new", **counts)
        assert directory.input_kind is None
        kind = InputKind((5,), torch.float64)
        directory.keep(kind)
        with pytest.raises(SavedStateError, match="in use by another"):
            AgentDirectory(tmp_path / "new", **counts)
        directory.close()
        for name in counts:
            with pytest.raises(SavedStateError, match=f"with {name}="):
                AgentDirectory(tmp_path / "new", **counts | {name: 3})
        again = AgentDirectory(tmp_path / "new", **counts)
        assert again.input_kind == kind
        again.close()

    @pytest.mark.parametrize("text", ["", "[]", "{}", '{"num_tasks": 6}'])
    def test_that_are_damaged_are_refused(self, tmp_path, text):
        (tmp_path / "agent.json").write_text(text)
        for _ in range(2):  # the first refusal has released the lock
            with pytest.raises(SavedStateError, match="is damaged"):
                AgentDirectory(tmp_path, num_tasks=6, num_shards=2)

    def test_must_be_directories(self, tmp_path):
        (tmp_path / "file").touch()
        with pytest.raises(SavedStateError, match="cannot be used"):
            AgentDirectory(tmp_path / "file", num_tasks=6, num_shards=2)


@pytest.mark.parametrize("make", [lambda num_tasks: None, "GFUCB"])
def test_functions_that_other_processes_cannot_import_are_refused(make):
    with pytest.raises(InvalidInputError, match="make_agent"):
        ShardedAgent(make, num_tasks=6, num_shards=2)


@pytest.mark.parametrize("timeout", [0, -1.0, float("nan"), "5"])
def test_a_timeout_that_is_no_time_is_refused(timeout):
    with pytest.raises(InvalidInputError, match="timeout must be a finite number above 0"):
        ShardedAgent(make_agent, num_tasks=2, num_shards=1, timeout=timeout)


def test_more_processes_than_a_machine_can_have_are_refused():
    with pytest.raises(InvalidInputError, match="num_shards must be an integer of at most 1024"):
        ShardedAgent(make_agent, num_tasks=10**6, num_shards=10**6)


def test_agents_that_cannot_be_divided_are_refused():
    with pytest.raises(InvalidInputError, match="LastLayer"):
        Shard(make_agent(2, action_selector=gfucb.exploration.Greedy()), None)
    with pytest.raises(InvalidInputError, match="head_norm_bound"):
        Shard(make_agent(2, head_norm_bound=1.0), None)
    with pytest.raises(InvalidInputError, match="BatchNorm1d"):
        Shard(gfucb.GFUCB(2, nn.BatchNorm1d(COLUMNS)), None)
    with pytest.raises(InvalidInputError, match="torchrun"), connected():
        pass


def test_the_program_of_the_guide_plays_its_rounds(monkeypatch, capsys):
    """What `torchrun` does for one process: it sets these variables."""
    text = (Path(__file__).parents[2] / "docs/how-to/scale.md").read_text()
    (block,) = re.findall(r"^```python\n# shop_shards.py\n(.*?)^```", text, re.DOTALL | re.M)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    places = {"RANK": 0, "WORLD_SIZE": 1, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    for name, value in places.items():
        monkeypatch.setenv(name, str(value))
    names: dict = {"__name__": "document"}
    exec(compile(block, "shop_shards.py", "exec"), names)
    names["main"]()
    assert capsys.readouterr().out == "process 0 of 1: done\n"
