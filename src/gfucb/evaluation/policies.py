"""Policies that can be evaluated on a log."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

from gfucb.bandits import Randomised
from gfucb.core.action_probabilities import certain_distribution, uniform_distribution
from gfucb.core.errors import InvalidInputError
from gfucb.core.protocols import BanditAgent
from gfucb.core.validation.distributions import validate_distribution
from gfucb.core.validation.settings import validate_count, validate_methods
from gfucb.evaluation.logged_decisions import LoggedDecisions
from gfucb.serving import Agent


@dataclass(frozen=True, eq=False)
class PolicyOnLog:
    """What a policy does in the rows of a log.

    Attributes:
        action_probabilities: of all actions, [row, action]. The logged policy has one-hot chosen
            actions where its other probabilities are unknown: a sample of its actions.
        weights: importance weights, the probability of the chosen action under the policy divided
            by that under which it was logged, [row].
    """

    action_probabilities: Tensor
    weights: Tensor


class Policy(Protocol):
    """Probabilities of actions, given what was offered."""

    def on(self, log: LoggedDecisions) -> PolicyOnLog:
        """Return what the policy does in each row; it must not depend on actions or rewards."""


@dataclass(frozen=True)
class UniformPolicy:
    """All available actions with the same probability."""

    def on(self, log: LoggedDecisions) -> PolicyOnLog:
        """See `Policy.on`."""
        return policy_on_log(log, uniform_distribution(log.available))


@dataclass(frozen=True)
class FixedActionPolicy:
    """Always the same action; a log in which some row does not offer it is refused."""

    action: int

    def __post_init__(self) -> None:
        validate_count(self.action, "action", at_least=0)

    def on(self, log: LoggedDecisions) -> PolicyOnLog:
        """See `Policy.on`."""
        if self.action >= log.num_actions:
            raise InvalidInputError(
                f"the log has actions 0 to {log.num_actions - 1}, got the fixed action "
                f"{self.action}"
            )
        actions = torch.full((len(log),), self.action)
        return policy_on_log(log, certain_distribution(actions, log.num_actions))


@dataclass(frozen=True)
class LoggedPolicy:
    """The policy that made the log. All its weights are 1, and IPS is the mean reward."""

    def on(self, log: LoggedDecisions) -> PolicyOnLog:
        """See `Policy.on`."""
        distribution = log.action_probabilities
        if distribution is None:
            distribution = certain_distribution(log.actions, log.num_actions)
        return PolicyOnLog(distribution, torch.ones(len(log), dtype=torch.float64))


class AgentPolicy:
    """The decisions of an agent as it is now, without further learning.

    Agents that randomise are evaluated by the probabilities of their decisions. An agent that
    learned from the same log is evaluated too favourably: train it on other rows.

    Args:
        agent: a bandit agent.
        rows_per_call: rows of the log in one call of `decide`. By default 1, as if each row was a
            call of its own. Larger numbers are faster; agents that choose the actions of all rows
            of a call jointly then choose for so many rows.
    """

    def __init__(self, agent: BanditAgent, *, rows_per_call: int = 1) -> None:
        self.agent = validate_methods(agent, "agent", ("decide", "state", "load_state"))
        self.rows_per_call = validate_count(rows_per_call, "rows_per_call")

    def __repr__(self) -> str:
        return f"AgentPolicy({self.agent!r})"

    def on(self, log: LoggedDecisions) -> PolicyOnLog:
        """See `Policy.on`."""
        found = self.action_probabilities(log.candidates, log.tasks, log.available)
        return policy_on_log(log, found)

    def action_probabilities(self, candidates: Tensor, tasks: Tensor, available: Tensor) -> Tensor:
        """Probabilities of all actions for the arguments of `decide`: [row, action]."""
        if int(tasks.max()) >= self.agent.num_tasks:
            raise InvalidInputError(
                f"the log has tasks 0 to {int(tasks.max())}, the agent has "
                f"{self.agent.num_tasks} tasks"
            )
        rows = torch.arange(len(tasks)).split(self.rows_per_call)
        return torch.cat([self._decided(candidates[r], tasks[r], available[r]) for r in rows])

    def _decided(self, candidates: Tensor, tasks: Tensor, available: Tensor) -> Tensor:
        if isinstance(self.agent, Randomised):
            return self.agent.action_probabilities(candidates, tasks, available)
        decision = self.agent.decide(candidates, tasks, available)
        if decision.action_probabilities is not None:
            return decision.action_probabilities.cpu()
        return certain_distribution(decision.actions, available.shape[1])


@dataclass(frozen=True)
class FunctionPolicy:
    """A function from a log to probabilities [row, action] of all actions."""

    function: Callable[[LoggedDecisions], Any]

    def on(self, log: LoggedDecisions) -> PolicyOnLog:
        """See `Policy.on`."""
        return policy_on_log(log, self.function(log))


def as_policy(policy: Any) -> Policy:
    """A policy, an agent, a function from a log to probabilities, or the probabilities."""
    if isinstance(policy, type):
        raise InvalidInputError(
            f"policy must be an instance, got the class {policy.__name__}; pass {policy.__name__}()"
        )
    if callable(getattr(policy, "on", None)):
        return policy
    if isinstance(policy, Agent):
        raise InvalidInputError(
            "an Agent writes all its decisions to its log; pass agent.model, whose tasks have the "
            "numbers of log_of_decisions(agent.log)"
        )
    if callable(getattr(policy, "decide", None)):
        return AgentPolicy(policy)
    if callable(policy):
        return FunctionPolicy(policy)
    if not hasattr(policy, "__len__") or isinstance(policy, str | Mapping):
        raise InvalidInputError(
            "policy must be a policy such as UniformPolicy(), an agent, a function from a log to "
            f"probabilities, or probabilities [row, action], got {policy!r:.80}"
        )
    return FunctionPolicy(lambda log: policy)


def policy_on_log(log: LoggedDecisions, action_probabilities: Any) -> PolicyOnLog:
    """Check the probabilities [row, action] of a policy, and compute its weights."""
    name = "the probabilities of the policy"
    given = validate_distribution(action_probabilities, log.available, name)
    return PolicyOnLog(given, log.of_chosen(given) / log.probabilities)
