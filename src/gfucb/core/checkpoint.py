"""Agents on disk: safetensors files, which hold numbers and can run nothing."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from gfucb.core.errors import GFUCBError, SavedStateError
from gfucb.core.protocols import BanditAgent, EpisodicAgent

FORMAT = "gfucb state 1"


def save(agent: BanditAgent | EpisodicAgent, path: str | os.PathLike[str]) -> None:
    """Write what `agent` has learned to `path`; a file that is there is replaced at once."""
    write_state(path, agent.state(), _facts(agent))


def restore(agent: BanditAgent | EpisodicAgent, path: str | os.PathLike[str]) -> None:
    """Continue from a file written by `save`.

    `agent` must be built with the same arguments as the one that was saved; it then decides
    as that one would have. If anything is wrong with the file the agent stays as it was.
    """
    state, facts = read_state(path)
    for name, mine in _facts(agent).items():
        if facts.get(name) != mine:
            raise SavedStateError(
                f"{path} was saved by an agent built otherwise: its {name} is {facts.get(name)}, "
                f"this agent's is {mine}"
            )
    before = agent.state()
    try:
        agent.load_state(state)
    except (KeyError, RuntimeError, ValueError, IndexError, AssertionError, GFUCBError) as error:
        agent.load_state(before)
        raise SavedStateError(
            f"{path} does not fit this agent; build it as it was when it was saved: {error}"
        ) from error


def _facts(agent: BanditAgent | EpisodicAgent) -> dict[str, str]:
    return {
        "agent": type(agent).__name__,
        "num_tasks": str(agent.num_tasks),
        **agent.settings(),
    }


def write_state(
    path: str | os.PathLike[str], state: Mapping[str, Tensor], facts: Mapping[str, str]
) -> None:
    """Write tensors and facts as one file that is either whole or not there."""
    target = Path(path)
    partial = target.with_name(target.name + ".partial")
    # An empty file is no safetensors file; the marker also makes foreign files recognisable.
    # Copies, because safetensors refuses tensors that share memory, as tied weights do.
    tensors = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in state.items()}
    try:
        save_file(tensors | {"format": torch.zeros(1)}, partial, dict(facts) | {"format": FORMAT})
        os.replace(partial, target)
    except (SafetensorError, OSError) as error:
        raise SavedStateError(f"cannot write {target}: {error}") from error


def read_state(path: str | os.PathLike[str]) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Read what `write_state` wrote."""
    if not Path(path).is_file():
        raise SavedStateError(f"there is no saved state at {path}")
    try:
        with safe_open(path, framework="pt") as file:
            facts = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}
    except (SafetensorError, OSError) as error:
        raise SavedStateError(f"{path} is torn or is no safetensors file: {error}") from error
    if facts.pop("format", None) != FORMAT:
        raise SavedStateError(f"{path} is a safetensors file, but not one this library wrote")
    tensors.pop("format", None)
    return tensors, facts
