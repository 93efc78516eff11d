"""Agents as coba learners, and coba environments as environments of this library.

This module needs the extra `coba`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

import torch
from torch import Tensor

from gfucb.adapters.coba_inputs import CobaInputs, without_task
from gfucb.bandits import GFUCB
from gfucb.core.errors import InvalidInputError
from gfucb.core.protocols import BanditAgent
from gfucb.core.random import random_stream
from gfucb.core.records import BanditRound, Decision
from gfucb.core.validation.settings import validate_pair
from gfucb.tables.labels import shown_names

try:
    import coba
except ModuleNotFoundError as error:
    raise ModuleNotFoundError("this adapter needs coba: pip install 'gfucb[coba]'") from error

# From (number of tasks, seed) to an agent.
MakeAgent = Callable[[int, int], BanditAgent]


def default_agent(num_tasks: int, seed: int) -> BanditAgent:
    """The default agent."""
    return GFUCB(num_tasks, seed=seed)


@dataclass(frozen=True, eq=False)
class _Sample:
    """What was learned: the task [1], the rest of the context, the action, its reward."""

    task: Tensor
    context: Any
    action: Any
    reward: float


class CobaLearner(coba.Learner):  # type: ignore[misc]
    """An agent as a learner of coba's experiments.

    >>> environments = coba.Environments.from_linear_synthetic(20, n_actions=3, seed=1)
    >>> result = coba.Experiment(environments, CobaLearner()).run(quiet=True)
    >>> len(result.interactions)
    20

    The agent is made at the first interaction, so every environment of an experiment has an agent
    of its own. The probability is that of a `Randomised` agent, otherwise 1.

    Actions that are names become one-hot. If later interactions have further names, the agent is
    made again with a column for each of them, and learns all its samples once more; `actions`
    saves this time.

    Args:
        make_agent: from (number of tasks, seed) to an agent; by default `gfucb.GFUCB`. Experiments
            with several processes need a function of a module.
        task: the name or number of the column of the context that holds the task, if there are
            several tasks.
        tasks: the values of that column.
        actions: the names of all actions, if they have names and the first interaction does not
            have all of them.
        seed: of the agent.
        name: the column "family" of the learners in results.
    """

    def __init__(
        self,
        make_agent: MakeAgent = default_agent,
        *,
        task: str | int | None = None,
        tasks: Sequence[Hashable] = (),
        actions: Sequence[str] = (),
        seed: int = 0,
        name: str = "GFUCB",
    ) -> None:
        if not callable(make_agent):
            raise InvalidInputError(
                "make_agent must be a function (number of tasks, seed) -> agent, so that every "
                "environment of an experiment has an agent of its own; got "
                f"{type(make_agent).__name__}"
            )
        if (task is None) != (not tasks):
            raise InvalidInputError(
                "several tasks need both task=, the column of the context, and tasks=, its "
                f"values; got task={task!r} and {len(tasks)} tasks"
            )
        self._make_agent, self._column, self._seed, self._name = make_agent, task, seed, name
        self._tasks = {name: number for number, name in enumerate(tasks)}
        self._agent: BanditAgent | None = None
        self._num_agents = 0
        self._inputs = CobaInputs(_names_of_actions(actions))
        self._samples: list[_Sample] = []  # only of actions with names

    @property
    def params(self) -> Mapping[str, Any]:
        """What the results of an experiment say about the learner."""
        several = {"tasks": len(self._tasks)} if self._tasks else {}
        return {"family": self._name, "seed": self._seed, **several}

    @property
    def agent(self) -> BanditAgent:
        """The agent."""
        if self._agent is None:
            # Not the former draws again: what an agent has learned depends on them.
            again = random_stream(self._seed, "agent", self._num_agents).initial_seed()
            seed = again if self._num_agents else self._seed
            self._agent = self._make_agent(max(1, len(self._tasks)), seed)
            self._num_agents += 1
        return self._agent

    def score(self, context: Any, actions: Sequence[Any], action: Any) -> float:
        """The probability of an action."""
        decision = self._decide(context, actions)
        number = list(actions).index(action)
        if decision.action_probabilities is None:
            return float(int(decision.actions[0]) == number)
        return float(decision.action_probabilities[0, number])

    def predict(
        self, context: Any, actions: Sequence[Any]
    ) -> tuple[Any, float, dict[str, Decision]]:
        """The chosen action, its probability, and the decision, which coba returns to `learn`."""
        decision = self._decide(context, actions)
        known = decision.probabilities
        probability = 1.0 if known is None else float(known[0])
        return actions[int(decision.actions[0])], probability, {"decision": decision}

    def learn(
        self,
        context: Any,
        action: Any,
        reward: float,
        probability: float | None,
        decision: Decision | None = None,
    ) -> None:
        """Learn from the reward of a decision, or of an action that another policy chose."""
        task, own = self._task_of(context)
        sample = _Sample(task, own, action, float(reward))
        self._know_names([action])
        if decision is not None and decision.inputs.shape[1:] == self._input(sample).shape[1:]:
            self.agent.observe(decision, torch.tensor([sample.reward], dtype=torch.float64))
        else:
            self._learn([sample])
        if self._inputs.names:
            self._samples.append(sample)

    def _decide(self, context: Any, actions: Sequence[Any]) -> Decision:
        task, own = self._task_of(context)
        self._know_names(actions)
        return self.agent.decide(self._inputs.candidates(own, actions)[None], task)

    def _know_names(self, actions: Sequence[Any]) -> None:
        """Give columns to new names; an agent that has learned is made again with them."""
        new = self._inputs.new_names(actions)
        if new and self._samples:
            self._learner()  # may refuse; nothing has changed
            # The agent recognises one-hot actions of a log if the first columns were tried.
            self._inputs.add(new, first=[str(sample.action) for sample in self._samples])
            self._agent = None
            self._learn(self._samples)
        elif new:
            self._inputs.add(new)

    def _learn(self, samples: Sequence[_Sample]) -> None:
        if not samples:
            return
        self._learner()(
            torch.cat([sample.task for sample in samples]),
            torch.cat([self._input(sample) for sample in samples]),
            torch.tensor([sample.reward for sample in samples], dtype=torch.float64),
        )

    def _input(self, sample: _Sample) -> Tensor:
        """The input [1, column] of the action of a sample."""
        return self._inputs.candidates(sample.context, [sample.action])

    def _learner(self) -> Callable[[Tensor, Tensor, Tensor], None]:
        """The method `learn` of the agent, or of the agent whose actions it draws."""
        for agent in (self.agent, getattr(self.agent, "agent", None)):
            learn: Callable[[Tensor, Tensor, Tensor], None] | None = getattr(agent, "learn", None)
            if learn is not None:
                return learn
        raise InvalidInputError(
            f"{type(self.agent).__name__} has no method learn, so it cannot learn from the actions "
            "of another policy, nor get actions that the first interaction did not have; evaluate "
            "it by SequentialCB(learn='on'), and pass the names of all actions as actions=[...]"
        )

    def _task_of(self, context: Any) -> tuple[Tensor, Any]:
        """The number of the task, [1], and the context without its name."""
        if self._column is None:
            return torch.zeros(1, dtype=torch.int64), context
        name, own = without_task(context, self._column)
        if name not in self._tasks:
            known = shown_names([str(task) for task in self._tasks])
            raise InvalidInputError(f"task {name!r} is not among tasks=, {known}")
        return torch.tensor([self._tasks[name]]), own


class CobaBandit:
    """coba environments as the tasks of a bandit environment.

    >>> made = [coba.Environments.from_linear_synthetic(50, n_actions=3, seed=s)[0] for s in (1, 2)]
    >>> tuple(CobaBandit(made).round(1).candidates.shape)  # tasks, actions, context and action
    (2, 3, 10)

    Round t is the t-th interaction of every environment. Rewards are those of the interactions,
    and the regret of an action is its difference to the largest of them.

    Args:
        environments: one for each task, with equally many actions in each round.
        num_rounds: how many interactions to read; by default all.
        value_range: bounds of the rewards, if they are known.
    """

    def __init__(
        self,
        environments: Sequence[Any],
        *,
        num_rounds: int | None = None,
        value_range: tuple[float, float] | None = None,
    ) -> None:
        if not environments:
            raise InvalidInputError("CobaBandit needs at least one environment, got none")
        if not all(hasattr(own, "read") for own in environments):
            raise InvalidInputError(
                "CobaBandit needs a list of environments of coba, one for each task, got "
                f"{type(environments).__name__}; for one task pass [environment]"
            )
        self.value_range = None
        if value_range is not None:
            self.value_range = validate_pair(value_range, "value_range")
        self.environments = list(environments)
        read = [list(islice(own.read(), num_rounds)) for own in self.environments]
        self.num_tasks, self.num_rounds = len(read), min(map(len, read))
        inputs = CobaInputs()
        for interaction in chain.from_iterable(read):
            inputs.add(inputs.new_names(interaction.get("actions")))
        self._candidates = [[_candidates(inputs, i) for i in own] for own in read]
        self._rewards = [[_rewards(i) for i in own] for own in read]

    def round(self, round_index: int) -> BanditRound:
        """The interactions number `round_index`, from 1, of all environments."""
        if not 1 <= round_index <= self.num_rounds:
            raise InvalidInputError(
                f"the environments have {self.num_rounds} interactions, got round {round_index}"
            )
        offered = [own[round_index - 1] for own in self._candidates]
        shapes = [tuple(candidates.shape) for candidates in offered]
        if len(set(shapes)) > 1:
            raise InvalidInputError(
                "all tasks need equally many actions and columns in a round, got the shapes "
                f"{shapes} in round {round_index}"
            )
        candidates = torch.stack(offered)
        return BanditRound(
            candidates=candidates,
            mean_rewards=torch.stack([own[round_index - 1] for own in self._rewards]),
            noise=torch.zeros(self.num_tasks, dtype=torch.float64),
            true_features=candidates,
        )

    def describe(self) -> Mapping[str, Any]:
        """Facts about the environment for reports."""
        return {"environments": "; ".join(map(str, self.environments)), "rounds": self.num_rounds}


def _names_of_actions(actions: Any) -> list[str]:
    if isinstance(actions, str) or not all(isinstance(name, str) for name in actions):
        raise InvalidInputError(
            f"actions must be the list of the names of all actions, got {actions!r:.80}; actions "
            "that are numbers or features need no names"
        )
    return list(actions)


def _candidates(inputs: CobaInputs, interaction: Mapping[str, Any]) -> Tensor:
    return inputs.candidates(interaction.get("context"), interaction.get("actions"))


def _rewards(interaction: Mapping[str, Any]) -> Tensor:
    rewards = interaction.get("rewards")
    if rewards is None:
        raise InvalidInputError(
            "the interactions need the rewards of all actions, got logged ones; evaluate policies "
            "on logs by gfucb.evaluation"
        )
    values = [rewards(action) for action in interaction["actions"]]
    return torch.tensor(values, dtype=torch.float64)
