"""Decisions and rewards as named tensors, sent between processes as safetensors: no code runs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from multiprocessing.connection import Connection

import torch
from safetensors.torch import load, save
from torch import Tensor

from gfucb.core.offered_candidates import OfferedCandidates
from gfucb.core.records import Decision, Prediction

TEXT = "text"


@dataclass(frozen=True, eq=False)
class Message:
    """A command or an answer.

    Attributes:
        name: of the command, or "done" or "failed".
        tensors: its arguments.
        facts: further arguments: texts and numbers.
    """

    name: str
    tensors: Mapping[str, Tensor] = field(default_factory=dict)
    facts: Mapping[str, str | int] = field(default_factory=dict)


def send(connection: Connection, message: Message) -> None:
    """Send a message; the other process calls `receive`."""
    text = json.dumps({"name": message.name, "facts": dict(message.facts)}).encode()
    tensors = {name: x.detach().cpu().contiguous() for name, x in message.tensors.items()}
    tensors[TEXT] = torch.frombuffer(bytearray(text), dtype=torch.uint8)
    connection.send_bytes(save(tensors))


def receive(connection: Connection) -> Message:
    """The next message of the other process."""
    tensors = load(connection.recv_bytes())
    content = json.loads(bytes(tensors.pop(TEXT).tolist()))
    return Message(content["name"], tensors, content["facts"])


def decision_tensors(decision: Decision) -> dict[str, Tensor]:
    """A decision without its features, which belong to the process that computed them."""
    tensors = {
        "tasks": decision.tasks,
        "actions": decision.actions,
        "inputs": decision.inputs,
        "optimistic_values": decision.optimistic_values,
    }
    if decision.prediction is not None:
        tensors |= {"mean": decision.prediction.mean, "variance": decision.prediction.variance}
    if decision.offered is not None:
        tensors |= {
            "offered": decision.offered.candidates,
            "offered_available": decision.offered.available,
        }
    return tensors


def decision_of(tensors: Mapping[str, Tensor]) -> Decision:
    """The decision with these tensors."""
    prediction = offered = None
    if "mean" in tensors:
        prediction = Prediction(tensors["mean"], tensors["variance"])
    if "offered" in tensors:
        offered = OfferedCandidates(tensors["offered"], tensors["offered_available"])
    return Decision(
        tensors["tasks"],
        tensors["actions"],
        tensors["inputs"],
        tensors["optimistic_values"],
        prediction,
        offered=offered,
    )
