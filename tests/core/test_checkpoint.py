"""Saved agents: restored exactly, and refused if anything about them is different."""

import os
import random

import pytest
import torch
from checkpoint_cases import QUICK, assert_refused, candidates, small_agent, trained
from safetensors.torch import save_file
from torch import nn

import gfucb
from gfucb import GFUCB
from gfucb.core.checkpoint import checksum_of, read_state, write_state
from gfucb.core.errors import SavedStateError
from gfucb.runs.pool import worker_context


def test_a_restored_agent_decides_as_the_saved_one(tmp_path):
    agent = small_agent()
    gfucb.save(agent, tmp_path / "agent.safetensors")
    restored = GFUCB(3, fit=QUICK)
    gfucb.restore(restored, tmp_path / "agent.safetensors")
    for index in range(10, 16):
        one, other = agent.decide(candidates(index)), restored.decide(candidates(index))
        assert torch.equal(one.actions, other.actions)
        assert torch.equal(one.optimistic_values, other.optimistic_values)
        agent.observe(one, one.actions / 4)
        restored.observe(other, other.actions / 4)


def test_an_agent_without_data_can_be_saved(tmp_path):
    gfucb.save(GFUCB(3, fit=QUICK), tmp_path / "new")
    agent = small_agent()
    gfucb.restore(agent, tmp_path / "new")
    assert agent.state() == {}


def test_restoring_clears_diagnostics_and_the_last_selection(tmp_path):
    saved = small_agent()
    gfucb.save(saved, tmp_path / "agent")
    agent = small_agent()
    assert agent.last_selection is not None and "bonus" in agent.diagnostics()
    gfucb.restore(agent, tmp_path / "agent")
    assert agent.last_selection is None
    assert "bonus" not in agent.diagnostics()


@pytest.mark.parametrize("path", [None, 5, b"agent"])
def test_what_is_no_path_is_refused(path):
    with pytest.raises(gfucb.InvalidInputError, match="must be text or a Path, got"):
        gfucb.restore(GFUCB(3), path)


def test_a_missing_file_is_refused(tmp_path):
    assert_refused(small_agent(), tmp_path / "nowhere", "no saved state at")


@pytest.mark.parametrize("kept", [0, 5, 100, -1])
def test_a_truncated_file_is_refused(tmp_path, kept):
    path = tmp_path / "agent"
    gfucb.save(small_agent(), path)
    path.write_bytes(path.read_bytes()[:kept])
    assert_refused(small_agent(), path, "damaged")


@pytest.mark.slow
def test_every_flipped_bit_is_refused(tmp_path):
    """Each bit of the header and every third bit of the numbers, one at a time."""
    path = tmp_path / "state"
    state = {"heads": torch.linspace(-1, 1, 24, dtype=torch.float64), "tasks": torch.arange(4)}
    write_state(path, state, {"agent": "GFUCB", "ridge": "1.0"})
    content = path.read_bytes()
    header = 8 + int.from_bytes(content[:8], "little")
    bits = [*range(8 * header), *range(8 * header, 8 * len(content), 3)]
    for bit in bits:
        damaged = bytearray(content)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        with pytest.raises(SavedStateError):
            read_state(path)


def test_flipped_bits_in_the_file_of_an_agent_are_refused(tmp_path):
    path = tmp_path / "agent"
    agent = trained(gfucb.linucb(3))
    gfucb.save(agent, path)
    content = path.read_bytes()
    draws = random.Random(0)
    for _ in range(200):
        bit = draws.randrange(8 * len(content))
        damaged = bytearray(content)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        assert_refused(agent, path, "damaged|safetensors|format")


def test_a_file_of_another_library_is_refused(tmp_path):
    path = tmp_path / "foreign"
    save_file({"weights": torch.zeros(2)}, path)
    assert_refused(small_agent(), path, "not one of this library")


def test_a_file_of_an_older_format_is_refused(tmp_path):
    path = tmp_path / "old"
    save_file({"format": torch.zeros(1)}, path, {"format": "gfucb state 1"})
    assert_refused(small_agent(), path, "'gfucb state 1', this version reads 'gfucb state 2'")


def tampered_state(agent, **changes: torch.Tensor | None) -> dict[str, torch.Tensor]:
    """The agent's state with some tensors replaced, added or (None) removed."""
    state = {name: tensor.clone() for name, tensor in agent.state().items()}
    changes = {name.replace("__", "."): tensor for name, tensor in changes.items()}
    state |= {name: tensor for name, tensor in changes.items() if tensor is not None}
    return {n: t for n, t in state.items() if n not in changes or changes[n] is not None}


def test_a_valid_checksum_does_not_excuse_nan(tmp_path):
    agent = small_agent()
    state = tampered_state(agent, heads=agent.state()["heads"] * float("nan"))
    texts = {"agent": "GFUCB", "num_tasks": "3", **agent.settings()}
    write_state(tmp_path / "agent", state, texts)
    assert_refused(agent, tmp_path / "agent", "NaN in 'heads'")


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(5, 5)
        self.second = nn.Linear(5, 5)
        self.second.weight = self.first.weight

    def forward(self, x):
        return self.second(self.first(x))


def test_tied_weights_can_be_saved(tmp_path):
    agent, other = small_agent(representation=Tied()), small_agent(representation=Tied())
    gfucb.save(agent, tmp_path / "agent")
    gfucb.restore(other, tmp_path / "agent")
    assert torch.equal(
        agent.decide(candidates(5)).optimistic_values,
        other.decide(candidates(5)).optimistic_values,
    )


def test_agents_within_agents_are_saved(tmp_path):
    agent = trained(gfucb.EpsilonGreedy(gfucb.Uniform(3), epsilon=0.5))
    gfucb.save(agent, tmp_path / "agent")
    other = gfucb.EpsilonGreedy(gfucb.Uniform(3), epsilon=0.5)
    gfucb.restore(other, tmp_path / "agent")
    for index in range(5):
        found, expected = other.decide(candidates(index)), agent.decide(candidates(index))
        assert torch.equal(found.actions, expected.actions)
        other.observe(found, [0.0] * 3)
        agent.observe(expected, [0.0] * 3)


def test_saving_replaces_a_file_and_leaves_nothing_beside_it(tmp_path):
    path = tmp_path / "agent"
    gfucb.save(small_agent(), path)
    gfucb.save(small_agent(), path)
    assert [p.name for p in tmp_path.iterdir()] == ["agent"]


def test_saving_into_a_directory_that_does_not_exist_is_refused(tmp_path):
    with pytest.raises(SavedStateError, match=r"there is no directory .*nowhere$"):
        gfucb.save(small_agent(), tmp_path / "nowhere" / "agent")


@pytest.mark.parametrize("notes", ["schema", ["schema"], {"schema": 1}, 3])
def test_notes_that_are_no_texts_by_name_are_refused(notes, tmp_path):
    with pytest.raises(gfucb.InvalidInputError, match="notes must be texts by name"):
        gfucb.save(small_agent(), tmp_path / "agent", notes)
    assert not list(tmp_path.iterdir())


def test_a_failed_save_keeps_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "agent"
    write_state(path, {"a": torch.zeros(3)}, {})

    def failing(descriptor: int) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", failing)
    with pytest.raises(SavedStateError, match="disk full"):
        write_state(path, {"a": torch.ones(3)}, {})
    assert torch.equal(read_state(path)[0]["a"], torch.zeros(3))
    assert [p.name for p in tmp_path.iterdir()] == ["agent"]


def test_saves_are_synced_to_the_disk_before_and_after_the_replacement(tmp_path, monkeypatch):
    events = []
    sync, replace = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda d: (events.append("sync"), sync(d))[1])
    monkeypatch.setattr(os, "replace", lambda a, b: (events.append("replace"), replace(a, b))[1])
    write_state(tmp_path / "state", {}, {})
    assert events == ["sync", "replace", "sync"]


def write_repeatedly(path: str, value: float, count: int) -> None:
    for _ in range(count):
        write_state(path, {"values": torch.full((20_000,), value)}, {"writer": str(value)})


@pytest.mark.slow
def test_two_processes_that_save_to_one_path_never_leave_a_mixed_file(tmp_path):
    path = str(tmp_path / "state")
    write_repeatedly(path, 0.0, 1)
    context = worker_context()
    writers = [context.Process(target=write_repeatedly, args=(path, v, 150)) for v in (1.0, 2.0)]
    for writer in writers:
        writer.start()
    reads = 0
    while any(writer.is_alive() for writer in writers):
        state, texts = read_state(path)
        assert texts == {"writer": str(float(state["values"][0]))}
        assert len(state["values"].unique()) == 1
        reads += 1
    for writer in writers:
        writer.join()
        assert writer.exitcode == 0
    assert reads > 0
    assert [p.name for p in tmp_path.iterdir()] == ["state"]


def test_the_checksum_covers_names_types_shapes_numbers_and_texts():
    base = checksum_of({"a": torch.zeros(4)}, {"b": "c"})
    others = [
        checksum_of({"d": torch.zeros(4)}, {"b": "c"}),
        checksum_of({"a": torch.zeros(4, dtype=torch.int32)}, {"b": "c"}),
        checksum_of({"a": torch.zeros(2, 2)}, {"b": "c"}),
        checksum_of({"a": torch.tensor([0.0, 0.0, 0.0, -0.0])}, {"b": "c"}),
        checksum_of({"a": torch.zeros(4)}, {"b": "d"}),
        checksum_of({"a": torch.zeros(4), "empty": torch.zeros(0)}, {"b": "c"}),
    ]
    assert len({base, *others}) == len(others) + 1


def test_a_pipe_and_a_directory_are_not_replaced(tmp_path):
    (tmp_path / "directory").mkdir()
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe")
    paths = sorted(tmp_path.iterdir())
    for path in paths:
        with pytest.raises(SavedStateError, match="it is no regular file"):
            write_state(path, {}, {})
    assert sorted(tmp_path.iterdir()) == paths
    assert not any(path.is_file() for path in paths)


def test_tensors_with_strides_of_zero_are_saved(tmp_path):
    row = torch.arange(3.0).expand(1, 3)[:, :1].expand(1, 1)
    state = {"one": torch.tensor(2.0).expand(1), "row": row}
    write_state(tmp_path / "state", state, {})
    read, _ = read_state(tmp_path / "state")
    assert all(torch.equal(read[name], state[name]) for name in state)
