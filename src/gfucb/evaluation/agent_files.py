"""Saved agents as policies."""

from __future__ import annotations

import ast
import os
from typing import Any

import torch

from gfucb.bandits import GFUCB
from gfucb.core.checkpoint import read_notes, read_state, restore
from gfucb.core.errors import InvalidInputError, SavedStateError
from gfucb.evaluation.logged_decisions import LoggedDecisions
from gfucb.evaluation.policies import AgentPolicy, PolicyOnLog, policy_on_log
from gfucb.evaluation.table_logs import NamedLog
from gfucb.tables import Schema

# Settings of a saved agent that its file states as Python literals.
LITERALS = ("seed", "ridge", "value_range", "refit_growth")


def restored_agent(path: str | os.PathLike[str]) -> GFUCB:
    """The `GFUCB` agent that was saved at `path`, built with the settings that the file states.

    Agents with a component of the user's own cannot be built from a file; they are refused by the
    name of the setting.
    """
    _, facts = read_state(path)
    if facts.get("agent") != "GFUCB":
        raise SavedStateError(
            f"{path} holds an agent of type {facts.get('agent')}, and only GFUCB can be built from "
            "a file; register a policy that builds and restores it, and pass its file as --plugin"
        )
    settings = {name: _literal(facts[name]) for name in LITERALS if name in facts}
    if facts.get("self_supervision") == "None":
        settings["self_supervision"] = None
    agent = GFUCB(int(facts["num_tasks"]), **settings)
    restore(agent, path)
    return agent


def _literal(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return float(text) if text == "inf" else text  # infinity and "auto" are no literals


def agent_policy(path: str | os.PathLike[str], named: NamedLog) -> AgentPolicy | SchemaPolicy:
    """A saved agent on a log.

    A log that was read from a table has columns with names, so the agent must have been saved with
    the schema that encodes them.
    """
    agent = restored_agent(path)
    if named.table is None:
        return AgentPolicy(agent, rows_per_call=_rows_per_call(agent))
    text = read_notes(path).get("schema")
    if text is None:
        raise SavedStateError(
            f"{path} has no schema, so it is unknown how the agent reads the columns of the log; "
            'save it by gfucb.save(agent, path, notes={"schema": schema.to_json()})'
        )
    return SchemaPolicy(agent, Schema.from_json(text), named)


class SchemaPolicy:
    """An agent that reads the table of a log by a schema of its own."""

    def __init__(self, agent: GFUCB, schema: Schema, named: NamedLog) -> None:
        self.agent, self.schema, self.named = agent, schema, named

    def on(self, log: LoggedDecisions) -> PolicyOnLog:
        """See `Policy.on`; the log must be the whole one that was read from the table."""
        table, names = self.named.table, [str(name) for name in self.named.action_names]
        if table is None or log is not self.named.log:
            raise InvalidInputError("a policy with a schema can be evaluated on its own log only")
        offered = [
            [name for name, is_offered in zip(names, row, strict=True) if is_offered]
            for row in log.available.tolist()
        ]
        offers = self.schema.offers(table, offered)
        if len(offers) != len(log):
            raise InvalidInputError(
                f"the schema of the agent makes {len(offers)} decisions of the {len(log)} rows of "
                "the log; only agents that decide once in every row can be evaluated"
            )
        available = offers.available
        if available is None:
            available = torch.ones(offers.candidates.shape[:2], dtype=torch.bool)
        policy = AgentPolicy(self.agent, rows_per_call=_rows_per_call(self.agent))
        found = policy.action_probabilities(offers.candidates, offers.tasks, available)
        probabilities = torch.zeros(log.available.shape, dtype=torch.float64)
        numbers = {name: number for number, name in enumerate(names)}
        for row, (own, values) in enumerate(zip(offers.names, found.tolist(), strict=True)):
            for name, value in zip(own, values, strict=False):  # values of padding are 0
                if value > 0:
                    probabilities[row, numbers[str(name)]] = value
        return policy_on_log(log, probabilities)


def _rows_per_call(agent: GFUCB) -> int:
    """Tables and ids have independent rows, so many of them can be decided at once."""
    return 256 if agent.learner.has_posterior else 1
