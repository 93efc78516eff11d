"""A baseline with settings of its own."""

from dataclasses import dataclass

import torch

from gfucb.core.validation.bandits import validate_action_sets, validate_feedback
from gfucb.runs import BanditAgentConfig, register_agent


@dataclass(frozen=True)
class FixedActionConfig(BanditAgentConfig):
    action: int = 0
    """The action that is always chosen."""


class FixedAction:
    def __init__(self, num_tasks, action):
        self.num_tasks, self.action = num_tasks, action
        self.rewards = torch.zeros(num_tasks, dtype=torch.float64)

    def decide(self, candidates, tasks=None, available=None):
        action_sets = validate_action_sets(
            candidates, tasks, available, num_tasks=self.num_tasks, device="cpu"
        )
        actions = torch.full((len(action_sets.tasks),), self.action)
        return action_sets.decision(actions, torch.zeros(len(actions), dtype=torch.float64))

    def observe(self, decision, rewards):
        tasks, _, rewards = validate_feedback(decision, rewards, num_tasks=self.num_tasks)
        self.rewards = self.rewards.index_add(0, tasks, rewards)

    def diagnostics(self):
        return {"action": self.action}

    def state(self):
        return {"rewards": self.rewards.clone()}

    def load_state(self, state):
        self.rewards = state["rewards"].clone()

    def settings(self):
        return {"action": str(self.action)}


@register_agent(
    "fixed-action",
    label="fixed action",
    description="Always chooses the same action.",
    colour="#123456",
    config=FixedActionConfig,
)
def fixed_action(config, environment, seed):
    return FixedAction(environment.num_tasks, config.action)
