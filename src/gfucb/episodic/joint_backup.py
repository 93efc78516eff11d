"""One member of each stage's set, all selected together, as in ELEANOR (Zanette et al., 2020).

    max over heads W_1 .. W_H   sum_i V_1,i(s_1,i)
    s.t.  sum_i |W_h,i - fit_h,i[V_{h+1}]|^2_{V_h,i} <= squared_radius   for every stage h.

Values stay in the class, so low inherent Bellman error is enough for optimism; no tractable exact
algorithm is known. For a fixed representation the fit is linear in the next values, so for a fixed
policy the values are linear in the steps W_h - fit_h and their maximum has a closed form. The
heuristic alternates: best steps for the policy, greedy policy for the steps; the best round counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from gfucb.core.action_sets import ActionSets
from gfucb.core.errors import InvalidInputError
from gfucb.core.features import features_of
from gfucb.core.linalg import cholesky_solve, first_best, task_sums
from gfucb.core.protocols import ActionSelector
from gfucb.core.records import Selection
from gfucb.core.validation.settings import validate_count
from gfucb.episodic.buffer import StageBuffer
from gfucb.episodic.stage_plan import StagePlan, greedy
from gfucb.models import HeadPenalty, HeadStatistics, MultiheadFunction
from gfucb.models.heads import stepped

# The alternation stops when a round gains less than this.
SMALLEST_GAIN = 1e-12


@dataclass(frozen=True)
class JointBackup:
    """The members of all stages that together give the first states the largest values.

    A heuristic for small problems: alternating maximisation, `rounds` times, over the heads of the
    fitted representations. Each round costs as much as a plan. The first stage is solved by
    `action_selector`, exactly where that is exact: with one stage this is Algorithm 1.

    Args:
        action_selector: solves the first stage.
        rounds: largest number of rounds of the alternation.
    """

    action_selector: ActionSelector
    rounds: int = 10

    def __post_init__(self) -> None:
        validate_count(self.rounds, "rounds")

    def is_markov(self, num_tasks: int) -> bool:
        """Members depend on the first states of the episode."""
        return False

    def prepare(self, plan: StagePlan, generator: torch.Generator) -> StagePlan:
        """Use the fit until members are selected."""
        return replace(plan, policy_functions=(plan.center,))

    def start_episode(
        self, plans: list[StagePlan], buffers: Sequence[StageBuffer], action_sets: ActionSets
    ) -> list[StagePlan]:
        """Select the members for the first states of `action_sets`.

        The alternation starts twice: from the policy of the fit and from that of upper values.
        """
        episode = _Episode.of(plans, buffers, action_sets)
        optimistic = _best_steps(_pointwise(plans, episode), episode)
        best: tuple[float, list[StagePlan]] | None = None
        for steps in ([None] * len(plans), optimistic):
            last_value = -np.inf
            for _ in range(self.rounds):
                current, value = self._backward(plans, episode, steps)
                if best is None or value > best[0]:
                    best = (value, current)
                if value <= last_value + SMALLEST_GAIN:
                    break
                last_value, steps = value, _best_steps(current, episode)
        assert best is not None
        return best[1]

    def _backward(
        self,
        plans: Sequence[StagePlan],
        episode: _Episode,
        steps: Sequence[Tensor | None],
    ) -> tuple[list[StagePlan], float]:
        """Refit every stage to the next one and take its step; solve the first stage."""
        current: list[StagePlan] = []
        for stage in reversed(range(len(plans))):
            plan = plans[stage]
            if len(plan.confidence_set.data):
                plan = _refitted(plan, episode, stage, current[0] if current else None)
            step, member = steps[stage], plan.center
            if step is not None:
                bound = plan.confidence_set.head_norm_bound
                member = plan.center.with_heads(stepped(plan.center.heads, step, bound))
            if stage == 0:
                selection = self.action_selector(plan.confidence_set, episode.action_sets)
                member, value = _function_of(selection), float(selection.values.sum())
            current.insert(0, replace(plan, policy_functions=(member,)))
        return current, value

    def action_values(self, plan: StagePlan, inputs: Tensor, tasks: Tensor) -> Tensor:
        """Values of the member."""
        return plan.policy_values(inputs, tasks)

    def select(self, plan: StagePlan, action_sets: ActionSets) -> tuple[Tensor, Tensor]:
        """The best action of the member."""
        return greedy(action_sets, plan.policy_values)


@dataclass(frozen=True, eq=False)
class _Episode:
    """What all rounds of the alternation share; representations do not change in an episode.

    Attributes:
        buffers: the transitions of each stage, [stage].
        action_sets: the first states; they store their features.
        features: phi of the samples of each stage, [stage][sample, feature].
    """

    buffers: Sequence[StageBuffer]
    action_sets: ActionSets
    features: list[Tensor]

    @classmethod
    def of(
        cls, plans: Sequence[StagePlan], buffers: Sequence[StageBuffer], action_sets: ActionSets
    ) -> _Episode:
        """Compute all features, those of next observations into the caches of their plans."""
        features = []
        for stage, plan in enumerate(plans):
            phi, data = plan.center.representation, plan.confidence_set.data
            features.append(features_of(phi, data.inputs) if len(data) else plan.center.heads[:0])
            if stage > 0 and len(buffers[stage - 1].next_observations):
                inputs = buffers[stage - 1].next_observations.flat_rows
                plan.feature_cache.store("next observations", phi, inputs)
        return cls(buffers, action_sets.caching(plans[0].center.representation), features)


def _function_of(selection: Selection) -> MultiheadFunction:
    if selection.function is None:
        raise InvalidInputError(
            "the joint backup needs an action selector that returns a member of the confidence "
            "set, such as LastLayer() or ExactFinite()"
        )
    return selection.function


def _pointwise(plans: Sequence[StagePlan], episode: _Episode) -> list[StagePlan]:
    """The plans without members, each fitted to the upper values of the next."""
    current: list[StagePlan] = []
    for stage in reversed(range(len(plans))):
        without_member = replace(plans[stage], policy_functions=())
        if len(without_member.confidence_set.data):
            next_plan = current[0] if current else None
            without_member = _refitted(without_member, episode, stage, next_plan)
        current.insert(0, without_member)
    return current


def _refitted(
    plan: StagePlan, episode: _Episode, stage: int, next_plan: StagePlan | None
) -> StagePlan:
    """The plan on the same representation, around the fit to the values of `next_plan`."""
    confidence_set, buffer = plan.confidence_set, episode.buffers[stage]
    values = np.zeros(len(buffer.next_observations))
    if next_plan is not None and len(buffer.next_observations):
        values = next_plan.clip(_greedy_next(buffer, next_plan)[1]).numpy()
    targets = buffer.targets(values, len(confidence_set.data))
    data = buffer.dataset(targets)
    statistics = HeadStatistics.of(
        episode.features[stage], data.tasks, data.targets - plan.center.offset, data.num_tasks
    )
    penalty = HeadPenalty(confidence_set.ridge, confidence_set.head_norm_bound)
    center = plan.center.with_heads(statistics.heads(penalty))
    changed = replace(confidence_set, center=center, data=data, center_statistics=statistics)
    ellipsoid = changed.ellipsoid()
    assert ellipsoid is not None
    only = ((center.representation, ellipsoid),)
    return replace(plan, confidence_set=changed, ellipsoids=only)


def _greedy_next(buffer: StageBuffer, next_plan: StagePlan) -> tuple[Tensor, Tensor]:
    """Greedy features and values of the next observations: [observation, feature], [observation].

    Greedy for the member of the next stage, or for its upper values if none is selected.
    """
    inputs, num_next = buffer.next_observations.flat_rows, len(buffer.next_observations)
    tasks = buffer.next_observations.tasks.repeat_interleave(len(inputs) // num_next)
    has_member = bool(next_plan.policy_functions)
    values_of = next_plan.policy_values if has_member else next_plan.upper_values
    values = values_of(inputs, tasks).unflatten(0, (num_next, -1))
    best = first_best(values)
    features = next_plan.feature_cache(_member(next_plan).representation, inputs)
    rows = torch.arange(num_next)
    return features.unflatten(0, (num_next, -1))[rows, best], values[rows, best]


def _member(plan: StagePlan) -> MultiheadFunction:
    return plan.policy_functions[0] if plan.policy_functions else plan.center


def _best_steps(plans: Sequence[StagePlan], episode: _Episode) -> list[Tensor | None]:
    """The steps that raise the first values most while the greedy policy is fixed.

    The first values depend on the heads of stage h through directions g_h. Those of stage 1 are
    the features selected there, and g_{h+1} = sum_samples (g_h^T V_h^-1 phi) phi_{h+1}(s', greedy).
    The best step is V^-1 g sqrt(squared_radius / sum_i g_i^T V_i^-1 g_i).
    """
    first, action_sets = _member(plans[0]), episode.action_sets
    best = action_sets.best_actions(action_sets.values_of(first))
    chosen = action_sets.features_of_chosen(first.representation, best)
    directions = task_sums(chosen, action_sets.tasks, len(first.heads))
    steps: list[Tensor | None] = [None]
    for stage, next_plan in enumerate(plans[1:]):
        directions = _next_directions(plans[stage], episode, stage, next_plan, directions)
        step = _solve(next_plan, directions)
        length = float((directions * step).sum())
        radius = next_plan.confidence_set.squared_radius
        steps.append(step * (radius / length) ** 0.5 if length > 0 else None)
    return steps


def _next_directions(
    plan: StagePlan, episode: _Episode, stage: int, next_plan: StagePlan, directions: Tensor
) -> Tensor:
    """g_{h+1} from g_h, both [task, feature]."""
    solved, buffer = _solve(plan, directions), episode.buffers[stage]
    following = torch.zeros_like(next_plan.center.heads)
    data, num_next = plan.confidence_set.data, len(buffer.next_observations)
    if not (len(data) and num_next):
        return following
    sample_weights = (episode.features[stage] * solved[data.tasks]).sum(-1).numpy()
    next_indices = buffer.next_indices[: len(data)]
    continues = next_indices >= 0
    sums = np.bincount(
        next_indices[continues], weights=sample_weights[continues], minlength=num_next
    )
    next_features, next_values = _greedy_next(buffer, next_plan)
    weights = torch.from_numpy(sums)
    if next_plan.policy_functions:
        # A clipped value does not change with the heads. Upper values are often clipped.
        weights = weights * (next_plan.clip(next_values) == next_values)
    return task_sums(
        next_features * weights[:, None], buffer.next_observations.tasks, len(following)
    )


def _solve(plan: StagePlan, directions: Tensor) -> Tensor:
    """V^-1 g of a stage: [task, feature] -> [task, feature]."""
    statistics = plan.confidence_set.center_statistics
    assert statistics is not None
    return cholesky_solve(statistics.cholesky(plan.confidence_set.ridge), directions)
