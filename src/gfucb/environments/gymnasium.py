"""Gymnasium environments as the tasks of an episodic environment, and the converse.

This module needs the extra `gymnasium`; no other package of the library imports it. The converse is
`TaskEnv` for a task of an MDP (`gfucb.environments.task_env`) and `BanditEnv` for one of a bandit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from gfucb.core.discrete_actions import with_actions
from gfucb.core.errors import InvalidInputError
from gfucb.core.random import random_stream
from gfucb.core.records import Outcome
from gfucb.core.validation.settings import validate_count, validate_pair, validate_seed
from gfucb.environments.table_validation import require_actions
from gfucb.environments.tabular_mdp import one_hot_inputs

try:
    import gymnasium
    from gymnasium import spaces
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "these environments need Gymnasium: pip install 'gfucb[gymnasium]'"
    ) from error

from gfucb.environments.bandit_env import BANDITS, BanditEnv
from gfucb.environments.task_env import (
    REGISTERED,
    TaskEnv,
    make_task_env,
    register_environments,
)

__all__ = [
    "BANDITS",
    "REGISTERED",
    "BanditEnv",
    "GymnasiumEpisode",
    "GymnasiumMDPs",
    "TaskEnv",
    "make_task_env",
    "register_environments",
]

# From an observation to the vector that agents see.
Observe = Callable[[Any], ArrayLike]
# Spaces whose observations Gymnasium itself makes vectors of: one-hot states and numbers.
FLATTENED = (spaces.MultiDiscrete, spaces.MultiBinary, spaces.Tuple, spaces.Dict)
INTERFACE = (
    "reset(*, seed, options) -> (observation, info) and "
    "step(action) -> (observation, reward, terminated, truncated, info)"
)


class GymnasiumMDPs:
    """M Gymnasium environments, one per task, with discrete actions and a finite horizon.

    >>> import gymnasium
    >>> lakes = [gymnasium.make("FrozenLake-v1", is_slippery=slip) for slip in (False, True)]
    >>> environment = GymnasiumMDPs(lakes, horizon=8)
    >>> tasks, candidates = environment.episode(1).offered()
    >>> tuple(candidates.shape)  # tasks, actions, one-hot vectors of (state, action)
    (2, 4, 64)

    Optimal values are not known, so a run reports returns instead of regrets. The episode of a
    task ends when it is terminated or truncated, and after H steps.

    Args:
        environments: one object per task, all with the same `Discrete` actions and, where
            `observe` is not given, the same kind of observations.
        horizon: H, the largest number of steps.
        seed: episode t of task i is reset with a seed that derives from (seed, t, i).
        observe: maps an observation to a vector, for example to scale large numbers; inputs are
            then (vector, one-hot action). By default inputs are the flattened numbers of `Box`
            observations with a one-hot action, and for `Discrete` observations a one-hot vector
            of (state, action); `gymnasium.spaces.flatten` makes vectors of tuples and dicts.
        value_range: smallest and largest sum of rewards of an episode, if known.
    """

    # All episodes step the same objects.
    concurrent_episodes = False

    def __init__(
        self,
        environments: Sequence[gymnasium.Env[Any, Any]],
        horizon: int,
        *,
        seed: int = 0,
        observe: Observe | None = None,
        value_range: tuple[float, float] | None = None,
    ) -> None:
        self.value_range = (
            None if value_range is None else validate_pair(value_range, "value_range")
        )
        _require_environments(environments)
        self.horizon, self.seed = validate_count(horizon, "horizon"), validate_seed(seed)
        _require_distinct_objects(environments)
        counts = [_num_actions(environment) for environment in environments]
        if len(set(counts)) > 1:
            raise InvalidInputError(
                f"all tasks must have the same actions, got environments with {counts} actions"
            )
        if observe is None:
            _require_same_observations(
                [environment.observation_space for environment in environments]
            )
        self.environments, self._has_own_inputs = list(environments), observe is not None
        self.num_tasks, self.num_actions = len(counts), counts[0]
        self._input_function = _input_function(
            environments[0].observation_space, observe, counts[0]
        )

    @property
    def observation_dim(self) -> int | None:
        """Length of observations, without the action; None for states and where it is unknown."""
        space = self.environments[0].observation_space
        if self._has_own_inputs or not isinstance(space, spaces.Box):
            return None
        return math.prod(space.shape)

    def episode(self, episode_index: int) -> GymnasiumEpisode:
        """Reset all environments for episode `episode_index`, from 1."""
        return GymnasiumEpisode(self, episode_index)

    def inputs(self, observation: Any) -> Tensor:
        """The inputs of all actions at an observation, [action, input]."""
        return self._input_function(observation)

    def describe(self) -> Mapping[str, Any]:
        """Facts about the environment for reports."""
        names = [e.spec.id if e.spec else type(e).__name__ for e in self.environments]
        return {
            "environments": ", ".join(names),
            "actions": self.num_actions,
            "horizon": self.horizon,
        }


class GymnasiumEpisode:
    """One episode of all environments; a task leaves it when its environment ends."""

    def __init__(self, environment: GymnasiumMDPs, episode_index: int) -> None:
        self.environment = environment
        self.stage = 0
        self._inputs: dict[int, Tensor] = {}
        for task, task_env in enumerate(environment.environments):
            stream = random_stream(environment.seed, "episode", episode_index, task)
            seed = stream.initial_seed() % 2**31
            found = task_env.reset(seed=seed)
            _require_length(found, task, 2)
            observation, _ = found
            self._inputs[task] = environment.inputs(observation)
        shapes = [tuple(inputs.shape) for inputs in self._inputs.values()]
        if len(set(shapes)) > 1:
            raise InvalidInputError(
                "observe= must map the observations of all tasks to vectors of one length, "
                f"got inputs [action, input] of the shapes {shapes}, by task"
            )
        self._shape = shapes[0]

    def offered(self) -> tuple[Tensor, Tensor]:
        """Tasks still playing, [row], and their candidates, [row, action, input]."""
        tasks = torch.tensor(list(self._inputs), dtype=torch.int64)
        if not self._inputs:
            return tasks, torch.zeros(0, self.environment.num_actions, 0)
        return tasks, torch.stack(list(self._inputs.values()))

    def play(self, actions: Tensor) -> Outcome:
        """Step the environments of the tasks still playing with actions [row]."""
        if not self._inputs:
            raise InvalidInputError("the episode has ended in all tasks")
        require_actions(actions.cpu().numpy(), len(self._inputs), self.environment.num_actions)
        self.stage += 1
        rewards, next_inputs, ended = [], [], []
        for task, action in zip(list(self._inputs), actions.tolist(), strict=True):
            task_env = self.environment.environments[task]
            found = task_env.step(action)
            _require_length(found, task, 5)
            observation, reward, terminated, truncated, _ = found
            has_ended = bool(terminated or truncated or self.stage >= self.environment.horizon)
            inputs = self.environment.inputs(observation)
            if tuple(inputs.shape) != self._shape:
                raise InvalidInputError(
                    f"the environment of task {task} must give observations of one length, got "
                    f"inputs [action, input] of shape {tuple(inputs.shape)} after {self._shape}"
                )
            rewards.append(_reward(reward, task))
            next_inputs.append(inputs)
            ended.append(has_ended)
            if has_ended:
                del self._inputs[task]
            else:
                self._inputs[task] = inputs
        return Outcome(
            torch.tensor(rewards, dtype=torch.float64),
            torch.stack(next_inputs),
            torch.tensor(ended),
        )


def _require_environments(environments: Any) -> None:
    """Refuse what is no list of environments of Gymnasium, with a message that says what to do."""
    if isinstance(environments, gymnasium.Env | str) or not isinstance(environments, Sequence):
        raise InvalidInputError(
            "GymnasiumMDPs needs a list of environments, one object for each task, got "
            f"{type(environments).__name__}"
        )
    if not environments:
        raise InvalidInputError("GymnasiumMDPs needs at least one environment, got none")
    for task, environment in enumerate(environments):
        if isinstance(environment, gymnasium.Env | gymnasium.vector.VectorEnv):
            continue
        if isinstance(environment, str):
            cure = f"; pass gymnasium.make({environment!r})"
        else:
            cure = "; make an object of it" if isinstance(environment, type) else ""
        raise InvalidInputError(
            f"the environment of task {task} must be a gymnasium.Env, got {environment!r:.80}{cure}"
        )


def _require_length(found: Any, task: int, length: int) -> None:
    """Refuse what an environment of an older interface returns."""
    if not isinstance(found, tuple) or len(found) != length:
        raise InvalidInputError(
            f"the environment of task {task} must have the interface {INTERFACE}, but a call "
            f"returned {found!r:.80}"
        )


def _reward(found: Any, task: int) -> float:
    """The reward of a step, which must be a finite number."""
    try:
        reward = float(found)
    except (TypeError, ValueError):
        reward = math.nan
    if not math.isfinite(reward):
        raise InvalidInputError(
            f"the environment of task {task} must give finite numbers as rewards, got {found!r:.80}"
        )
    return reward


def _num_actions(environment: gymnasium.Env[Any, Any]) -> int:
    space = environment.action_space
    if not isinstance(space, spaces.Discrete):
        raise InvalidInputError(
            f"an environment must have discrete actions (gymnasium.spaces.Discrete), got {space}"
        )
    if space.start != 0:
        raise InvalidInputError(f"actions must be numbered from 0, got {space}")
    return int(space.n)


def _require_distinct_objects(environments: Sequence[gymnasium.Env[Any, Any]]) -> None:
    """Refuse one object for two tasks: a step of one would change the state of the other."""
    first: dict[int, int] = {}
    for task, environment in enumerate(environments):
        before = first.setdefault(id(environment.unwrapped), task)
        if before != task:
            raise InvalidInputError(
                "every task needs an environment object of its own, got the same one for tasks "
                f"{before} and {task}; call gymnasium.make once for each"
            )


def _require_same_observations(observation_spaces: Sequence[spaces.Space[Any]]) -> None:
    """Refuse different numbers of states or shapes of arrays; bounds of boxes may differ."""
    kinds = [
        (type(s), int(s.n), int(s.start)) if isinstance(s, spaces.Discrete) else (type(s), s.shape)
        for s in observation_spaces
    ]
    for task, kind in enumerate(kinds):
        if kind != kinds[0]:
            raise InvalidInputError(
                "all tasks must have the same kind of observations, got "
                f"{observation_spaces[0]} in task 0 and {observation_spaces[task]} in task {task}; "
                "pass observe= to map them to vectors of one length"
            )


def _flattened(space: spaces.Space[Any], observation: Any) -> Any:
    """The numbers of a tuple or a dict."""
    try:
        return spaces.flatten(space, observation)
    except (LookupError, TypeError, ValueError) as error:
        raise InvalidInputError(f"got {observation!r:.80} as an observation of {space}") from error


def _input_function(
    space: spaces.Space[Any], observe: Observe | None, num_actions: int
) -> Callable[[Any], Tensor]:
    if observe is None and isinstance(space, spaces.Discrete):
        pairs = one_hot_inputs(int(space.n), num_actions).to(torch.float32)

        def of_state(observation: Any) -> Tensor:
            try:
                state = int(observation) - int(space.start)
            except (TypeError, ValueError):
                state = -1
            if not 0 <= state < len(pairs):
                raise InvalidInputError(f"got the observation {observation!r}, not of {space}")
            return pairs[state]

        return of_state
    if observe is None and isinstance(space, FLATTENED):
        observe = partial(_flattened, space)
    if observe is None and not isinstance(space, spaces.Box):
        raise InvalidInputError(
            f"observations of {space} need a function that maps them to vectors: pass observe="
        )

    def with_every_action(observation: Any) -> Tensor:
        seen = observation if observe is None else observe(observation)
        try:
            vector = np.asarray(seen, dtype=np.float32).reshape(-1)
        except (TypeError, ValueError) as error:
            raise InvalidInputError(f"got {seen!r:.80} as an observation of {space}") from error
        return with_actions(torch.from_numpy(vector)[None], num_actions)[0]

    return with_every_action
