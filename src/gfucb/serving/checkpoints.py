"""Checkpoints: the state of a model after an event of a log, so that a restart is fast."""

from __future__ import annotations

from pathlib import Path

from gfucb.bandits import GFUCB
from gfucb.core.checkpoint import read_state, write_state
from gfucb.core.errors import GFUCBError, SavedStateError
from gfucb.core.log_protocol import DecisionStore
from gfucb.core.setting_descriptions import find_difference
from gfucb.serving.operations import GrowTo

KIND = "checkpoint of a decision log"
REMEDY = "delete it to rebuild the agent from the log alone"


def checkpoint_path(log: DecisionStore) -> Path | None:
    """The file of the checkpoint of a log; None for a log in memory."""
    return None if log.path is None else log.path.with_name(f"{log.path.name}.checkpoint")


def write_checkpoint(path: Path, agent: GFUCB, event: int, checksum: bytes) -> None:
    """Write the state of an agent after an event with this chained checksum, atomically."""
    facts = {
        "kind": KIND,
        "event": str(event),
        "log": checksum.hex(),
        "num_tasks": str(agent.num_tasks),
        **agent.settings(),
    }
    write_state(path, agent.state(), facts)


def load_checkpoint(log: DecisionStore, agent: GFUCB) -> int:
    """Load the checkpoint of a log, if there is one; return the event after which it was written.

    Damaged files, and those of another log or of another agent, are refused.
    """
    path = checkpoint_path(log)
    if path is None or not path.exists():
        return 0
    try:
        state, facts = read_state(path)
    except SavedStateError as error:
        raise SavedStateError(f"{error}; or {REMEDY}") from error
    try:
        if facts.pop("kind", None) != KIND:
            raise SavedStateError("it is no checkpoint of a decision log")
        event, checksum = int(facts.pop("event")), bytes.fromhex(facts.pop("log"))
        if log.checksum(event) != checksum:
            raise SavedStateError("it belongs to another log, or to a later state of this one")
        num_tasks = int(facts.pop("num_tasks"))
        difference = find_difference(agent.settings(), facts)
        if difference is not None:
            name, own, saved = difference
            raise SavedStateError(f"its {name} is {saved}, this agent's is {own}")
        GrowTo(num_tasks).apply(agent)
        agent.load_state(state)
    except (GFUCBError, KeyError, ValueError) as error:
        raise SavedStateError(f"{path} cannot be used: {error}; {REMEDY}") from error
    return event
