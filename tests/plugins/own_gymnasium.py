"""A Gymnasium environment of one's own, for `gfucb compare --environment.name gymnasium`."""

import gymnasium
from gymnasium import spaces


class Corridor(gymnasium.Env):
    """Three steps to the right end with a reward."""

    def __init__(self, reward: float = 1.0) -> None:
        self.observation_space, self.action_space = spaces.Discrete(4), spaces.Discrete(2)
        self.reward, self.position = reward, 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.position = 0
        return 0, {}

    def step(self, action):
        self.position = self.position + 1 if action == 1 else 0
        at_end = self.position == 3
        return self.position, self.reward if at_end else 0.0, at_end, False, {}


gymnasium.register("Corridor-v0", Corridor)
