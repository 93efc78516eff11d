"""The greedy policy of an agent: what it would do if it explored no more."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Protocol, runtime_checkable

from torch import Tensor

from gfucb.core.errors import InvalidInputError
from gfucb.core.protocols import EpisodicAgent
from gfucb.core.validation.bandits import gradients_allowed, validate_action_sets
from gfucb.episodic.backups import PointwiseBackup
from gfucb.episodic.cached_features import FeatureCache
from gfucb.episodic.function_learner import FunctionLearner
from gfucb.episodic.gfucb import EpisodicGFUCB
from gfucb.episodic.stage_plan import StagePlan, greedy
from gfucb.estimation import ConstantRadius


class Policy(Protocol):
    """Chooses actions, and neither learns nor changes."""

    def __call__(self, stage: int, candidates: Tensor, tasks: Tensor) -> Tensor:
        """Return an action for every row: candidates [row, action, *input], tasks [row]."""


@runtime_checkable
class HasGreedyPolicy(Protocol):
    """An agent that knows its greedy policy."""

    def greedy_policy(self) -> Policy:
        """Return the best policy by the estimates from all data so far, without exploration."""


def greedy_policy(agent: EpisodicAgent) -> Policy:
    """The greedy policy of an agent, which does not change.

    An agent with a method `greedy_policy` is asked for it. For `EpisodicGFUCB` it is a plan on
    all its data with a bonus of zero, on the representations or cells of its last fits. Any other
    agent is taken at its decisions, of which some may be exploration.
    """
    if isinstance(agent, HasGreedyPolicy):
        return agent.greedy_policy()
    if isinstance(agent, EpisodicGFUCB):
        learner = agent.learner
        if isinstance(learner, FunctionLearner):
            return _ZeroBonusPolicy(learner)
        policy = learner.greedy_policy()
        return lambda stage, candidates, tasks: policy(stage, candidates, tasks)
    return lambda stage, candidates, tasks: agent.decide(stage, candidates, tasks).actions


class _ZeroBonusPolicy:
    """Greedy with respect to least squares without bonuses or perturbations."""

    @gradients_allowed()
    def __init__(self, agent: FunctionLearner) -> None:
        self.num_tasks = agent.num_tasks
        planner = replace(
            agent._planner, backup=PointwiseBackup(), squared_radius=ConstantRadius(0.0)
        )
        last = agent._plan_state
        if last is None:
            raise InvalidInputError("there is no plan yet; call plan(candidates) before an episode")
        self.plans: list[StagePlan] = []
        for stage in reversed(range(agent.horizon)):
            fit = copy.copy(agent.fits[stage])
            fit.feature_cache = FeatureCache()
            next_plan = self.plans[0] if self.plans else None
            data = planner.data(stage, agent.buffers[stage], next_plan, last.example)
            fitted = planner.fit_heads(fit, data)
            self.plans.insert(0, planner.stage_plan(fit, data, fitted, agent.plan_index))

    @gradients_allowed()
    def __call__(self, stage: int, candidates: Tensor, tasks: Tensor) -> Tensor:
        action_sets = validate_action_sets(
            candidates, tasks, None, num_tasks=self.num_tasks, device="cpu"
        )
        return greedy(action_sets, self.plans[stage].estimates)[0]
