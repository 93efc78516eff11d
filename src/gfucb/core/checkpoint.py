"""Saving and restoring agents: safetensors files, which hold numbers and cannot run code.

A file stores the tensors of an agent's state, the settings the agent was built with, and a checksum
of both. Reading refuses a file in which a single bit has changed.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors.torch import load, save_file
from safetensors.torch import save as save_bytes
from torch import Tensor

from gfucb.core.errors import GFUCBError, InvalidInputError, SavedStateError
from gfucb.core.files import atomic_write
from gfucb.core.protocols import Agent
from gfucb.core.setting_descriptions import INITIAL_WEIGHTS, find_difference
from gfucb.core.validation.settings import validate_methods

FORMAT = "gfucb state 2"
WEIGHTS = "representation."  # in the names of all tensors of a representation
NOTE = "note."  # in the names of notes
SAVED_METHODS = ("state", "load_state", "settings")


def save(
    agent: Agent, path: str | os.PathLike[str], notes: Mapping[str, str] | None = None
) -> None:
    """Write the state and the settings of `agent` to `path`.

    A file at `path` is replaced atomically and synced to the disk: a reader, or a process after a
    crash, finds the old file or the new one. Two processes may save to one path; the last one wins.
    `notes` are texts that belong to the agent, such as the JSON of its `gfucb.tables.Schema`;
    `read_notes` returns them.
    """
    validate_methods(agent, "agent", SAVED_METHODS)
    given = {} if notes is None else notes
    if not isinstance(given, Mapping) or not all(isinstance(v, str) for v in given.values()):
        raise InvalidInputError("notes must be texts by name, such as {'schema': schema.to_json()}")
    texts = {f"{NOTE}{name}": text for name, text in given.items()}
    write_state(path, agent.state(), _facts(agent) | texts)


def read_notes(path: str | os.PathLike[str]) -> dict[str, str]:
    """The notes of a file written by `save`."""
    _, facts = read_state(path)
    return {n.removeprefix(NOTE): text for n, text in facts.items() if n.startswith(NOTE)}


def restore(agent: Agent, path: str | os.PathLike[str]) -> None:
    """Load a file written by `save`.

    `agent` must be built with the same arguments as the saved one; from then on it decides as that
    one would have. Only the device may differ. If the file is damaged, or was saved by an agent
    with other settings, `SavedStateError` says what is wrong and the agent does not change.
    """
    validate_methods(agent, "agent", SAVED_METHODS)
    state, facts = read_state(path)
    # The agent's settings first: a file has no order, and their order explains best.
    difference = find_difference(_relevant(_facts(agent), state), _relevant(facts, state))
    if difference is not None:
        name, own, saved = difference
        raise SavedStateError(
            f"{path} was saved by an agent with other settings: its {name} is {saved}, this "
            f"agent's is {own}. Build the agent with the saved setting, or start without the file"
        )
    for name, tensor in state.items():
        if tensor.is_floating_point() and bool(tensor.isnan().any()):
            raise SavedStateError(f"{path} holds NaN in {name!r}; the saved agent had diverged")
    before = agent.state()
    try:
        agent.load_state(state)
    except Exception as error:
        # Agents of this library check before they change; others may not.
        agent.load_state(before)
        raise SavedStateError(f"{path} does not fit this agent: {error}") from error


def _relevant(facts: Mapping[str, str], state: Mapping[str, Tensor]) -> dict[str, str]:
    """All facts but notes, and the initial weights of agents whose weights the state holds."""
    return {
        name: value
        for name, value in facts.items()
        if not name.startswith(NOTE)
        and not (name.endswith(INITIAL_WEIGHTS) and _has_weights(state, name))
    }


def _has_weights(state: Mapping[str, Tensor], setting: str) -> bool:
    prefix = setting.removesuffix(INITIAL_WEIGHTS)
    return any(name.startswith(prefix) and WEIGHTS in name for name in state)


def _facts(agent: Agent) -> dict[str, str]:
    return {
        "agent": type(agent).__name__,
        "num_tasks": str(agent.num_tasks),
        **agent.settings(),
    }


def write_state(
    path: str | os.PathLike[str], state: Mapping[str, Tensor], facts: Mapping[str, str]
) -> None:
    """Write named tensors and texts with their checksum as one file, atomically."""
    tensors, texts = _with_checksum(state, facts)
    try:
        if Path(path).exists() and not Path(path).is_file():
            # safetensors would replace a device or a pipe by a file.
            raise SavedStateError(f"cannot write {path}: it is no regular file")
        if not Path(path).parent.is_dir():
            raise SavedStateError(f"cannot write {path}: there is no directory {Path(path).parent}")
        atomic_write(path, lambda target: save_file(tensors, target, texts))
    except (GFUCBError, MemoryError):
        raise
    except Exception as error:  # safetensors has no common error class for input and output
        raise SavedStateError(f"cannot write {path}: {error}") from error


def state_content(state: Mapping[str, Tensor], facts: Mapping[str, str]) -> bytes:
    """The content of the file that `write_state` writes."""
    return save_bytes(*_with_checksum(state, facts))


def _with_checksum(
    state: Mapping[str, Tensor], facts: Mapping[str, str]
) -> tuple[dict[str, Tensor], dict[str, str]]:
    # Clones, because safetensors refuses tensors that share memory, as tied weights do.
    tensors = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in state.items()}
    # safetensors refuses a file without tensors; the marker also identifies our files.
    tensors["format"] = torch.zeros(1)
    texts = dict(facts) | {"format": FORMAT}
    texts["checksum"] = checksum_of(tensors, texts)
    return tensors, texts


def read_state(path: str | os.PathLike[str]) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Read the tensors and texts that `write_state` wrote, if the checksum is right."""
    if not isinstance(path, str | os.PathLike):
        raise InvalidInputError(f"the path of a saved state must be text or a Path, got {path!r}")
    if not Path(path).is_file():
        raise SavedStateError(f"there is no saved state at {path}")
    try:
        # The file is opened once: a reader that opens it twice, as safe_open does, can see the
        # header of one version and the numbers of another.
        content = Path(path).read_bytes()
    except OSError as error:
        raise SavedStateError(f"cannot read {path}: {error}") from error
    return parse_state(content, path)


def parse_state(
    content: bytes, path: str | os.PathLike[str]
) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The same from the content of a file; `path` is its name in errors."""
    try:
        tensors = load(content)
        texts = _texts_of(content)
    except Exception as error:  # a damaged header can fail in any way
        raise SavedStateError(
            f"{path} is damaged or not a safetensors file: {error}; use an older copy"
        ) from error
    if not texts.get("format", "").startswith("gfucb state"):
        raise SavedStateError(f"{path} is a safetensors file, but not one of this library")
    if texts["format"] != FORMAT:
        raise SavedStateError(
            f"{path} has the format {texts['format']!r}, this version reads {FORMAT!r}; "
            "restore it with the version that wrote it"
        )
    if texts.pop("checksum", None) != checksum_of(tensors, texts):
        raise SavedStateError(f"{path} is damaged: its checksum is wrong; use an older copy")
    del texts["format"], tensors["format"]
    return tensors, texts


def _texts_of(content: bytes) -> dict[str, str]:
    """The texts in the header of a safetensors file, which follows its length in 8 bytes."""
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    return dict(header.get("__metadata__", {}))


def checksum_of(tensors: Mapping[str, Tensor], texts: Mapping[str, str]) -> str:
    """A digest of all names, types, shapes and numbers of tensors on the CPU, and of all texts."""
    hasher = hashlib.blake2b(json.dumps(sorted(texts.items())).encode(), digest_size=32)
    for name, tensor in sorted(tensors.items()):
        # A clone, because a contiguous tensor of one row may have strides of 0.
        rows = tensor.clone(memory_format=torch.contiguous_format)
        content = rows.reshape(-1).view(torch.uint8).numpy().tobytes()
        header = [name, str(tensor.dtype), list(tensor.shape), len(content)]
        hasher.update(json.dumps(header).encode() + content)
    return hasher.hexdigest()
