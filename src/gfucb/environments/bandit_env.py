"""One task of a bandit environment as a Gymnasium environment."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, SupportsFloat

import gymnasium
import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray

from gfucb.core.errors import InvalidInputError
from gfucb.core.protocols import BanditEnvironment
from gfucb.core.records import BanditRound
from gfucb.environments.image_bandit import ImageBandit
from gfucb.environments.images import load_digits
from gfucb.environments.synthetic_bandit import linear_bandit
from gfucb.environments.wheel_bandit import WheelBandit

Candidates = NDArray[Any]


class BanditEnv(gymnasium.Env[Candidates, np.int64]):
    """One task of a bandit environment: an episode is one round, with one step.

    >>> environment = BanditEnv(lambda seed: WheelBandit([0.9], seed=seed))
    >>> candidates, info = environment.reset(seed=3)
    >>> candidates.shape, info  # actions, columns
    ((5, 7), {'round': 1})
    >>> _, reward, terminated, _, info = environment.step(0)
    >>> terminated, sorted(info)
    (True, ['regret', 'round'])

    An observation is the array of all candidates, [action, *input]. `reset` goes to the next
    round; with a seed it starts at round 1 of the environment of that seed.

    Args:
        make_environment: from the seed to a bandit environment.
        task: which of its tasks.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 (as Gymnasium has it)

    def __init__(
        self,
        make_environment: Callable[[int], BanditEnvironment],
        task: int = 0,
        render_mode: str | None = None,
    ) -> None:
        self.make_environment, self.task, self.render_mode = make_environment, task, render_mode
        self._start(0)
        if not 0 <= task < self.environment.num_tasks:
            raise InvalidInputError(
                f"tasks are numbered 0 to {self.environment.num_tasks - 1}, got task {task}"
            )
        shown = self._candidates(self.environment.round(1))
        low, high = (0, 255) if shown.dtype == np.uint8 else (-np.inf, np.inf)
        self.observation_space = spaces.Box(low, high, shown.shape, dtype=shown.dtype.type)
        self.action_space = spaces.Discrete(len(shown))

    def _start(self, seed: int) -> None:
        self.environment = self.make_environment(seed)
        self._round_index, self._round = 0, None

    _round: BanditRound | None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Candidates, dict[str, Any]]:
        """Go to the next round, or to round 1 of another seed."""
        super().reset(seed=seed)
        if seed is not None:
            self._start(seed)
        self._round_index += 1
        self._round = self.environment.round(self._round_index)
        return self._candidates(self._round), {"round": self._round_index}

    def step(
        self, action: np.int64
    ) -> tuple[Candidates, SupportsFloat, bool, bool, dict[str, Any]]:
        """Return the reward, which ends the episode; the info has the regret."""
        if self._round is None:
            raise InvalidInputError("the episode has ended after its only step; reset it")
        if not self.action_space.contains(np.int64(action)):
            raise InvalidInputError(
                f"actions are integers from 0 to {len(self._candidates(self._round)) - 1}, got "
                f"{action!r}"
            )
        round_, self._round = self._round, None
        actions = torch.zeros(self.environment.num_tasks, dtype=torch.int64)
        actions[self.task] = int(action)
        reward, regret = round_.rewards(actions)[self.task], round_.regrets(actions)[self.task]
        info = {"round": self._round_index, "regret": float(regret)}
        return self._candidates(round_), float(reward), True, False, info

    def _candidates(self, round_: BanditRound) -> Candidates:
        return round_.candidates[self.task].numpy().copy()


def digits(seed: int) -> ImageBandit:
    """Ten handwritten digits to choose from; 16 tasks with rewards of their own."""
    return ImageBandit(load_digits(), num_tasks=16, reward_map="uniform", seed=seed)


def wheel(seed: int) -> WheelBandit:
    """The wheel bandit with delta 0.9."""
    return WheelBandit([0.9], seed=seed)


def linear(seed: int) -> BanditEnvironment:
    """Rewards that are linear in the inputs; ten tasks."""
    return linear_bandit(num_tasks=10, num_actions=10, seed=seed)


BANDITS: Mapping[str, Callable[[int], BanditEnvironment]] = {
    "gfucb/Digits-v0": digits,
    "gfucb/Wheel-v0": wheel,
    "gfucb/LinearBandit-v0": linear,
}
