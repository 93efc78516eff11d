"""How an agent starts: from an empty log, or rebuilt from a log and its checkpoint."""

from __future__ import annotations

import copy
import inspect
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import torch

from gfucb.bandits import GFUCB, Randomised
from gfucb.core.errors import DecisionLogError, InvalidInputError, lookup
from gfucb.core.log_protocol import DecisionStore
from gfucb.core.setting_descriptions import describe_setting, find_difference
from gfucb.serving.checkpoints import load_checkpoint
from gfucb.serving.decision_log import DecisionLog
from gfucb.serving.live_model import LiveModel
from gfucb.serving.log_replay import replay
from gfucb.serving.roster import OPEN, Roster
from gfucb.serving.row_ids import new_token

# Arguments of `Randomised` that an agent accepts beside those of the model.
DRAWN = ("distribution", "epsilon", "holdback", "holdback_policy")
MODEL_OPTIONS = tuple(inspect.signature(GFUCB).parameters)[1:]  # without num_tasks


@dataclass(frozen=True)
class Session:
    """The time between opening and closing a log; ids begin with its token."""

    token: str
    event: int


@dataclass(frozen=True, eq=False)
class Decider:
    """How decisions are made: by the model itself, or drawn at random by a `Randomised`."""

    randomised: Randomised | None = None

    def of(self, agent: GFUCB, num_decisions: int, tasks: Sequence[int]) -> GFUCB | Randomised:
        """What decides with this model; the number of decisions in the log selects the draws.

        A holdback policy gets the `tasks` of the rows by their position among all names.
        """
        if self.randomised is None:
            return agent
        decider = copy.copy(self.randomised)
        decider.agent, decider.num_decisions = agent, num_decisions
        policy = decider.randomisation.holdback_policy
        if callable(policy):
            named = torch.tensor(tasks)
            decider.randomisation = replace(
                decider.randomisation,
                holdback_policy=lambda candidates, _, available: policy(
                    candidates, named, available
                ),
            )
        return decider

    def description(self) -> str:
        """For the log."""
        if self.randomised is None:
            return "the model"
        return describe_setting(self.randomised.randomisation)


def build_model(
    model: GFUCB | Randomised | None, options: dict[str, Any], others: Iterable[str]
) -> tuple[GFUCB, Decider]:
    """The bandit agent to serve, without data; by default one that is built with the options.

    `others` are the names of further arguments, which a misspelled option may have meant.
    """
    if "num_tasks" in options:
        raise InvalidInputError(
            "an Agent has no num_tasks: tasks have names, pass tasks=[...] or add them later"
        )
    known = dict.fromkeys([*MODEL_OPTIONS, *DRAWN, *others])
    for name in options:
        lookup(known, name, "argument of Agent")
    if model is None:
        drawn = {name: options[name] for name in DRAWN if name in options}
        built = GFUCB(1, **{name: options[name] for name in options if name not in drawn})
        if not drawn:
            return built, Decider()
        return built, Decider(Randomised(built, seed=options.get("seed", 0), **drawn))
    agent = model.agent if isinstance(model, Randomised) else model
    if not isinstance(agent, GFUCB):
        raise InvalidInputError(
            "model must be a GFUCB agent, or a Randomised one of it, got "
            f"{type(model).__name__ if agent is model else repr(model)}"
        )
    if options:
        raise InvalidInputError(
            f"pass {', '.join(options)} to the model itself: "
            f"{'Randomised(model' if next(iter(options)) in DRAWN else 'GFUCB(1'}, "
            f"{next(iter(options))}=...)"
        )
    if agent.learner.num_samples:
        raise InvalidInputError(
            "the model has data that no log holds; pass a new GFUCB and import the data with learn"
        )
    return agent.snapshot(), Decider(model if isinstance(model, Randomised) else None)


def as_log(log: DecisionStore | str | os.PathLike[str] | None) -> DecisionStore:
    """The log itself, or that at a path, or a new one in memory."""
    if isinstance(log, DecisionStore):
        if log.is_read_only:
            raise InvalidInputError(f"an agent writes to its log, but {log!r} is read-only")
        return log
    if log is not None and not isinstance(log, str | os.PathLike):
        raise InvalidInputError(f"log must be a path or a DecisionLog, got {log!r}")
    return DecisionLog(log)


def rebuild(log: DecisionStore, agent: GFUCB) -> tuple[LiveModel, Roster]:
    """The model and the names that the events of a log describe, from its checkpoint on."""
    first = next(log.events(0, [OPEN]), None)
    if first is not None:
        own = {"num_tasks": str(agent.num_tasks), **agent.settings()}
        difference = find_difference(own, first.detail["settings"])
        if difference is not None:
            name, mine, logged = difference
            raise DecisionLogError(
                f"{log.name} was written by an agent with other settings: its {name} is {logged}, "
                f"this agent's is {mine}. Build the agent with the logged setting, or start a "
                "new log"
            )
    model, roster = LiveModel(agent), Roster()
    replay(log, model, roster, after=load_checkpoint(log, agent))
    return model, roster


def open_session(log: DecisionStore, roster: Roster, **facts: Any) -> Session:
    """Begin a session: from now on this agent writes to the log, which also stores the facts."""
    token = new_token()
    detail = {"token": token, "version": _version(), **facts}
    with log.transaction():
        event = log.add_event(OPEN, detail)
    roster.apply(event)
    return Session(token, event.number)


def _version() -> str:
    try:
        return version("gfucb")
    except PackageNotFoundError:
        return "unknown"
