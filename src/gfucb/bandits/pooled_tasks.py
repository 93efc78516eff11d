"""One agent of a single task that serves all tasks."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from gfucb.bandits.baselines import AGENT_METHODS
from gfucb.core.errors import InvalidInputError
from gfucb.core.nested import nested_settings
from gfucb.core.protocols import BanditAgent
from gfucb.core.records import Decision, Row
from gfucb.core.validation.arrays import ArrayLike
from gfucb.core.validation.bandits import (
    validate_action_sets,
    validate_feedback,
    validate_samples,
)
from gfucb.core.validation.settings import validate_count, validate_methods


class PooledTasks:
    """All tasks as one: the agent does not see which task a row belongs to.

    Args:
        num_tasks: M.
        agent: an agent of one task.
    """

    def __init__(self, num_tasks: int, agent: BanditAgent) -> None:
        self.num_tasks = validate_count(num_tasks, "num_tasks")
        self.agent = validate_methods(agent, "agent", AGENT_METHODS)
        if agent.num_tasks != 1:
            raise InvalidInputError(f"agent must have one task, got one of {agent.num_tasks}")

    def __repr__(self) -> str:
        return f"PooledTasks(num_tasks={self.num_tasks}, agent={self.agent!r})"

    def decide(
        self,
        candidates: ArrayLike,
        tasks: ArrayLike | None = None,
        available: ArrayLike | None = None,
    ) -> Decision:
        """Let the agent decide on all rows; see `GFUCB.decide` for the arguments."""
        rows = validate_action_sets(
            candidates, tasks, available, num_tasks=self.num_tasks, device="cpu"
        )
        pooled = self.agent.decide(rows.candidates, torch.zeros_like(rows.tasks), rows.available)
        return replace(pooled, tasks=rows.tasks)

    def observe(self, decision: Decision, rewards: ArrayLike) -> None:
        """Pass the rewards to the agent."""
        tasks, _, values = validate_feedback(decision, rewards, num_tasks=self.num_tasks)
        self.agent.observe(replace(decision, tasks=torch.zeros_like(tasks)), values)

    def learn(self, tasks: ArrayLike, inputs: ArrayLike, rewards: ArrayLike) -> None:
        """Pass a log to the agent, if it learns from logs."""
        if not hasattr(self.agent, "learn"):
            raise InvalidInputError(f"{type(self.agent).__name__} does not learn from logs")
        own, given, values = validate_samples(tasks, inputs, rewards, num_tasks=self.num_tasks)
        self.agent.learn(torch.zeros_like(own), given, values)

    def diagnostics(self) -> Row:
        """Those of the agent."""
        return self.agent.diagnostics()

    def state(self) -> dict[str, Tensor]:
        """The state of the agent."""
        return self.agent.state()

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Continue from the state of an agent built with the same arguments."""
        self.agent.load_state(state)

    def settings(self) -> dict[str, str]:
        """The settings of the agent."""
        return nested_settings({"": self.agent})
