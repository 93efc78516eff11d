"""Gymnasium environments as tasks, and this library's environments as Gymnasium environments.

Needs the extra `gymnasium`; nothing else in the library imports this module.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, SupportsFloat

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gfucb.core.errors import InvalidInputError
from gfucb.core.random import random_stream
from gfucb.core.records import Outcome
from gfucb.environments.linear_mdp import linear_mdps
from gfucb.environments.locks import rich_lock, tabular_lock, with_actions
from gfucb.environments.mdp_tables import is_positive_integer, require_actions
from gfucb.environments.tabular_mdp import TabularMDPs, one_hot_inputs

try:
    import gymnasium
    from gymnasium import spaces
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "these environments need Gymnasium: pip install 'gfucb[gymnasium]'"
    ) from error


class GymnasiumMDPs:
    """M Gymnasium environments, one a task, with discrete actions and a finite horizon.

    >>> import gymnasium
    >>> lakes = [gymnasium.make("FrozenLake-v1", is_slippery=slip) for slip in (False, True)]
    >>> environment = GymnasiumMDPs(lakes, horizon=8)
    >>> tasks, candidates = environment.episode(1).offered()
    >>> tuple(candidates.shape)  # tasks, actions, a number for each pair of state and action
    (2, 4, 64)

    There are no optimal values, so a run has returns instead of regrets. An episode that is
    terminated or truncated ends; after H steps it ends for everybody.

    Args:
        environments: one a task, no object twice, all with the same `Discrete` actions and, where
            `observe` is not given, observations alike.
        horizon: H, the largest number of steps.
        seed: episode t of task i is reset with a seed that derives from (seed, t, i).
        observe: from an observation to a vector, for example to scale large numbers; inputs are
            then (vector, one-hot action). By default the flattened numbers of `Box` observations,
            and for `Discrete` ones every pair of state and action its own unit vector.
    """

    def __init__(
        self,
        environments: Sequence[gymnasium.Env[Any, Any]],
        horizon: int,
        *,
        seed: int = 0,
        observe: Callable[[Any], Any] | None = None,
    ) -> None:
        if not environments:
            raise InvalidInputError("a environment needs at least one environment, got none")
        if not is_positive_integer(horizon):
            raise InvalidInputError(f"horizon must be at least 1 and an integer, got {horizon!r}")
        _require_own_objects(environments)
        counts = [_num_actions(environment) for environment in environments]
        if len(set(counts)) > 1:
            raise InvalidInputError(
                f"all tasks must have the same actions, got environments with {counts} actions"
            )
        if observe is None:
            _require_alike([environment.observation_space for environment in environments])
        self.environments = list(environments)
        self.num_tasks, self.num_actions, self.horizon = len(counts), counts[0], horizon
        self.seed = seed
        self._make_inputs = _inputs_of(environments[0].observation_space, observe, counts[0])

    def episode(self, episode_index: int) -> GymnasiumEpisode:
        """Reset all environments for episode `episode_index`, from 1."""
        return GymnasiumEpisode(self, episode_index)

    def inputs(self, observation: Any) -> Tensor:
        """What an agent sees of an observation and every action: [action, input]."""
        return self._make_inputs(observation)

    def describe(self) -> Mapping[str, Any]:
        """Facts about the environment for reports."""
        names = [e.spec.id if e.spec else type(e).__name__ for e in self.environments]
        return {"environments": ", ".join(names), "actions": self.num_actions}


class GymnasiumEpisode:
    """One episode of all environments; tasks leave it as they end."""

    def __init__(self, environment: GymnasiumMDPs, episode_index: int) -> None:
        self.environment = environment
        self.stage = 0
        self._inputs: dict[int, Tensor] = {}
        for task, task_env in enumerate(environment.environments):
            stream = random_stream(environment.seed, "episode", episode_index, task)
            observation, _ = task_env.reset(seed=stream.initial_seed() % 2**31)
            self._inputs[task] = environment.inputs(observation)
        shapes = [tuple(inputs.shape) for inputs in self._inputs.values()]
        if len(set(shapes)) > 1:
            raise InvalidInputError(
                "observe= must make vectors of one length of all tasks' observations, got inputs "
                f"[action, input] of the shapes {shapes}, by task"
            )

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
        rewards, following, ended = [], [], []
        for task, action in zip(list(self._inputs), actions.tolist(), strict=True):
            task_env = self.environment.environments[task]
            observation, reward, terminated, truncated, _ = task_env.step(action)
            over = bool(terminated or truncated or self.stage >= self.environment.horizon)
            inputs = self.environment.inputs(observation)
            rewards.append(float(reward))
            following.append(inputs)
            ended.append(over)
            if over:
                del self._inputs[task]
            else:
                self._inputs[task] = inputs
        return Outcome(
            torch.tensor(rewards, dtype=torch.float64), torch.stack(following), torch.tensor(ended)
        )


Observation = np.int64 | NDArray[np.float64]


class TaskEnv(gymnasium.Env[Observation, np.int64]):
    """One task of a finite environment as a Gymnasium environment.

    Observations are state numbers, and where states are seen through an emission what is seen.

    An episode is truncated after H steps; there is nothing to terminate it before.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 (as Gymnasium has it)

    def __init__(
        self, environment: TabularMDPs, task: int = 0, render_mode: str | None = None
    ) -> None:
        if not 0 <= task < environment.num_tasks:
            raise InvalidInputError(
                f"tasks are numbered 0 to {environment.num_tasks - 1}, got task {task}"
            )
        self.environment, self.task, self.render_mode = environment, task, render_mode
        self._seen = _seen(environment)
        self.observation_space = (
            spaces.Discrete(environment.num_states)
            if self._seen is None
            else spaces.Box(self._seen.min(0), self._seen.max(0), dtype=np.float64)
        )
        self.action_space = spaces.Discrete(environment.num_actions)
        self._stage, self._state = 0, 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Draw the first state."""
        super().reset(seed=seed)
        self._stage = 0
        self._state = int(self.np_random.choice(self.environment.num_states, p=self._start()))
        return self._observation(), {}

    def step(
        self, action: np.int64
    ) -> tuple[Observation, SupportsFloat, bool, bool, dict[str, Any]]:
        """Draw the reward and the next state."""
        environment = self.environment
        if self._stage >= environment.horizon:
            raise InvalidInputError(
                f"the episode has ended after {environment.horizon} steps; reset it"
            )
        here = (self.task, self._stage, self._state, self._checked(action))
        reward = float(environment.rewards[here])
        if environment.noisy is None or environment.noisy[here]:
            reward = self._noisy(reward)
        self._state = int(
            self.np_random.choice(environment.num_states, p=environment.transitions[here])
        )
        self._stage += 1
        return self._observation(), reward, False, self._stage == environment.horizon, {}

    def _observation(self) -> Observation:
        return np.int64(self._state) if self._seen is None else self._seen[self._state].copy()

    def _checked(self, action: Any) -> int:
        try:
            number = operator.index(action)
        except TypeError:
            number = -1
        if not 0 <= number < self.environment.num_actions:
            raise InvalidInputError(
                f"actions are integers from 0 to {self.environment.num_actions - 1}, got {action!r}; "
                "action_space.sample() draws one"
            )
        return number

    def _start(self) -> NDArray[np.float64]:
        return self.environment.start[self.task]

    def _noisy(self, mean: float) -> float:
        environment = self.environment
        if environment.reward_noise == "bernoulli":
            low, high = environment.reward_range
            return high if self.np_random.random() * (high - low) < mean - low else low
        if environment.reward_noise == "gaussian":
            return mean + environment.noise_scale * float(self.np_random.standard_normal())
        return mean


def _seen(environment: TabularMDPs) -> NDArray[np.float64] | None:
    """What is seen of each state, [state, observation]; None if it is the state itself."""
    if (
        environment.decoding is None
        or len(np.unique(environment.decoding)) == environment.num_states
    ):
        return None
    # Inputs are an observation and, behind it, the action as a one-hot vector.
    inputs = environment.inputs[:, 0, : environment.inputs.shape[-1] - environment.num_actions]
    return inputs.to(torch.float64).numpy()


def make_task_env(
    make_environment: Callable[..., TabularMDPs],
    task: int = 0,
    render_mode: str | None = None,
    **settings: Any,
) -> TaskEnv:
    """One task of the environment that `make_environment` builds from `settings`."""
    return TaskEnv(make_environment(**settings), task, render_mode)


REGISTERED: Mapping[str, Callable[..., TabularMDPs]] = {
    "gfucb/Lock-v0": tabular_lock,
    "gfucb/RichLock-v0": rich_lock,
    "gfucb/LinearMDP-v0": linear_mdps,
}


def register_environments() -> None:
    """Make this library's environments known to `gymnasium.make`.

    >>> import gymnasium
    >>> register_environments()
    >>> gymnasium.make("gfucb/Lock-v0", horizon=5, seed=3).observation_space
    Discrete(3)
    """
    for name, make_environment in REGISTERED.items():
        if name not in gymnasium.registry:
            gymnasium.register(
                name,
                entry_point="gfucb.environments.gymnasium:make_task_env",
                kwargs={"make_environment": make_environment},
            )


def _num_actions(environment: gymnasium.Env[Any, Any]) -> int:
    space = environment.action_space
    if not isinstance(space, spaces.Discrete):
        raise InvalidInputError(
            f"an environment must have discrete actions (gymnasium.spaces.Discrete), got {space}"
        )
    if space.start != 0:
        raise InvalidInputError(f"actions must be numbered from 0, got {space}")
    return int(space.n)


def _require_own_objects(environments: Sequence[gymnasium.Env[Any, Any]]) -> None:
    """Tasks that stepped one object would move each other."""
    first: dict[int, int] = {}
    for task, environment in enumerate(environments):
        before = first.setdefault(id(environment.unwrapped), task)
        if before != task:
            raise InvalidInputError(
                "every task needs an environment object of its own, got the same one for tasks "
                f"{before} and {task}; call gymnasium.make once for each"
            )


def _require_alike(observation_spaces: Sequence[spaces.Space[Any]]) -> None:
    """The same numbers of states, or arrays of the same shape; bounds of boxes may differ."""
    kinds = [
        (type(s), int(s.n), int(s.start)) if isinstance(s, spaces.Discrete) else (type(s), s.shape)
        for s in observation_spaces
    ]
    for task, kind in enumerate(kinds):
        if kind != kinds[0]:
            raise InvalidInputError(
                "all tasks must have observations alike, got "
                f"{observation_spaces[0]} in task 0 and {observation_spaces[task]} in task {task}; "
                "pass observe= to make vectors of one length of them"
            )


def _inputs_of(
    space: spaces.Space[Any], observe: Callable[[Any], Any] | None, num_actions: int
) -> Callable[[Any], Tensor]:
    if observe is None and isinstance(space, spaces.Discrete):
        pairs, first = one_hot_inputs(int(space.n), num_actions).to(torch.float32), int(space.start)
        return lambda observation: pairs[int(observation) - first]
    if observe is None and not isinstance(space, spaces.Box):
        raise InvalidInputError(
            f"observations of {space} need a function that makes vectors of them: pass observe="
        )

    def with_every_action(observation: Any) -> Tensor:
        seen = observation if observe is None else observe(observation)
        vector = np.asarray(seen, dtype=np.float32).reshape(-1)
        return with_actions(torch.from_numpy(vector)[None], num_actions)[0]

    return with_every_action
