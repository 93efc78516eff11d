"""Small logs whose exact values are known."""

from dataclasses import dataclass

import numpy as np
import torch

from gfucb.evaluation import LoggedDecisions


@dataclass(frozen=True)
class Problem:
    """Contexts with expected rewards, and a logging policy: all [context, action]."""

    expected: np.ndarray
    logged: np.ndarray

    def log(self, rows: int, seed: int) -> LoggedDecisions:
        """Draw a log: contexts in turn, actions and rewards 0 or 1 at random."""
        draws = np.random.default_rng(seed)
        contexts = np.arange(rows) % len(self.logged)
        sums = self.logged[contexts].cumsum(1)
        actions = (draws.random((rows, 1)) > sums).sum(1)
        rewards = (draws.random(rows) < self.expected[contexts, actions]).astype(float)
        return LoggedDecisions(
            actions,
            self.logged[contexts, actions],
            rewards,
            tasks=contexts,
            action_probabilities=self.logged[contexts],
        )

    def policy(self, probabilities: np.ndarray):
        """The policy with probabilities [context, action] in every log of this problem."""
        return lambda log: torch.as_tensor(probabilities)[log.tasks]

    def value(self, probabilities: np.ndarray) -> float:
        """The exact value of a policy [context, action]."""
        return float((probabilities * self.expected).sum(1).mean())


TWO_CONTEXTS = Problem(
    expected=np.array([[0.8, 0.3, 0.5], [0.1, 0.6, 0.4]]),
    logged=np.array([[0.6, 0.3, 0.1], [0.5, 0.2, 0.3]]),
)
TARGET = np.array([[0.7, 0.1, 0.2], [0.1, 0.8, 0.1]])


def table_rewards(train: LoggedDecisions, test: LoggedDecisions) -> torch.Tensor:
    """A reward model: mean rewards of each task and action, shrunk to 1/2."""
    sums = torch.full((train.num_tasks, train.num_actions), 0.5, dtype=torch.float64)
    counts = torch.ones_like(sums)
    where = (train.tasks, train.actions)
    sums.index_put_(where, train.rewards, accumulate=True)
    counts.index_put_(where, torch.ones_like(train.rewards), accumulate=True)
    return (sums / counts)[test.tasks]
