"""Policies that `gfucb evaluate` knows by name.

A policy is added by a decorator; a plugin may do so:

    @register_policy("mine", description="What it chooses.")
    def mine(argument, named):
        return lambda log: probabilities  # [row, action]

`--policy mine=TEXT` passes TEXT as `argument`, `--policy mine` passes None. `named` is the log with
the names of its actions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gfucb.core.errors import InvalidInputError
from gfucb.runs.registry import Factory, Registry

if TYPE_CHECKING:
    from gfucb.evaluation import NamedLog, Policy

# From the text after "=" and the log to a policy, an agent, a function or probabilities.
PolicyFactory = Callable[[str | None, "NamedLog"], Any]


@dataclass(frozen=True)
class PolicyEntry:
    """A policy of `gfucb evaluate --policy`."""

    name: str
    factory: PolicyFactory
    description: str


POLICIES: Registry[PolicyEntry] = Registry("policy")


def register_policy(name: str, *, description: str = "") -> Callable[[Factory], Factory]:
    """Register the decorated factory (argument, named log) -> policy under `name`."""

    def register(factory: Factory) -> Factory:
        POLICIES.register(name, PolicyEntry(name, factory, description), factory)
        return factory

    return register


def named_policy(word: str, named: NamedLog) -> Policy:
    """The policy of a word of the command line, NAME or NAME=ARGUMENT."""
    from gfucb.evaluation.policies import as_policy

    name, separator, argument = word.partition("=")
    return as_policy(POLICIES[name].factory(argument if separator else None, named))


@register_policy("logged", description="The policy that made the log: its mean reward.")
def _logged(argument: str | None, named: NamedLog) -> Policy:
    from gfucb.evaluation import LoggedPolicy

    _require_no_argument("logged", argument)
    return LoggedPolicy()


@register_policy("uniform", description="Every available action with the same probability.")
def _uniform(argument: str | None, named: NamedLog) -> Policy:
    from gfucb.evaluation import UniformPolicy

    _require_no_argument("uniform", argument)
    return UniformPolicy()


@register_policy("action", description="Always one action, action=NAME.")
def _action(argument: str | None, named: NamedLog) -> Policy:
    from gfucb.evaluation import FixedActionPolicy

    if not argument:
        raise InvalidInputError("the policy action needs the name of the action: action=NAME")
    return FixedActionPolicy(named.action(argument))


@register_policy("agent", description="A saved GFUCB agent, agent=FILE.")
def _agent(argument: str | None, named: NamedLog) -> Policy:
    from gfucb.evaluation.agent_files import agent_policy

    if not argument:
        raise InvalidInputError("the policy agent needs the file of a saved agent: agent=FILE")
    return agent_policy(Path(argument), named)


def _require_no_argument(name: str, argument: str | None) -> None:
    if argument is not None:
        raise InvalidInputError(f"the policy {name} takes no argument, got {name}={argument}")
