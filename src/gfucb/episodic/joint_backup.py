"""One member of each stage's set, all chosen together, as ELEANOR does (Zanette et al., 2020).

    max over heads W_1 .. W_H   sum_i V_1,i(s_1,i)
    s.t.  sum_i |W_h,i - fit_h,i[V_{h+1}]|^2_{V_h,i} <= squared_radius   for every stage h.

Values stay in the class, so low inherent Bellman error is enough for optimism; no tractable exact
algorithm is known. For a fixed representation the fit is linear in the next values, so for a fixed
policy the whole chain is linear in the steps W_h - fit_h and its maximum is known in closed form.
Alternate: best steps for the policy, greedy policy for the steps; keep the best round.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from gfucb.core.errors import InvalidInputError
from gfucb.core.linalg import cholesky_solve, task_sums
from gfucb.core.protocols import ActionSelector
from gfucb.core.records import ActionSets, Selection
from gfucb.episodic.backups import StagePlan, greedy
from gfucb.episodic.buffer import StageBuffer
from gfucb.models import HeadPenalty, HeadStatistics, MultiheadFunction, features_of
from gfucb.models.heads import stepped

# A round that gains less than this was the last one.
SMALLEST_GAIN = 1e-12


@dataclass(frozen=True)
class Joint:
    """The member of each stage that together prediction the first states most.

    A heuristic for small problems: alternating maximisation, `rounds` times, over the heads of the
    fitted representations. Each round costs a plan. The first stage is solved by
    `action_selector`, exactly where that is exact: with one stage this is Algorithm 1.
    """

    action_selector: ActionSelector
    rounds: int = 10
    name: str = "joint"
    is_markov: bool = False

    def prepare(self, plan: StagePlan, generator: torch.Generator) -> StagePlan:
        """Play the fit until members are chosen."""
        return replace(plan, played=(plan.center,))

    def values(self, plan: StagePlan, inputs: Tensor, tasks: Tensor) -> Tensor:
        """Values of the member."""
        return plan.played_values(inputs, tasks)

    def choose(self, plan: StagePlan, action_sets: ActionSets) -> tuple[Tensor, Tensor]:
        """The action the member likes best."""
        return greedy(action_sets, plan.played_values)


def plan_jointly(
    backup: Joint,
    plans: Sequence[StagePlan],
    buffers: Sequence[StageBuffer],
    action_sets: ActionSets,
) -> list[StagePlan]:
    """The plans with members chosen together for the first states of `action_sets`.

    Two starts: the policy of the fit, and the policy of the upper values.
    """
    optimistic = _best_steps(_pointwise(plans, buffers), buffers, action_sets)
    best: tuple[float, list[StagePlan]] | None = None
    for steps in ([None] * len(plans), optimistic):
        reached = -np.inf
        for _ in range(backup.rounds):
            present, value = _backward(backup, plans, buffers, steps, action_sets)
            if best is None or value > best[0]:
                best = (value, present)
            if value <= reached + SMALLEST_GAIN:
                break
            reached, steps = value, _best_steps(present, buffers, action_sets)
    assert best is not None
    return best[1]


def _pointwise(plans: Sequence[StagePlan], buffers: Sequence[StageBuffer]) -> list[StagePlan]:
    """The plans without members, each fitted to the upper values of the next."""
    present: list[StagePlan] = []
    for plan, memory in zip(reversed(plans), reversed(buffers), strict=True):
        nobody = replace(plan, played=())
        if len(plan.confidence_set.data):
            nobody = _refitted(nobody, memory, present[0] if present else None)
        present.insert(0, nobody)
    return present


def _backward(
    backup: Joint,
    plans: Sequence[StagePlan],
    buffers: Sequence[StageBuffer],
    steps: Sequence[Tensor | None],
    action_sets: ActionSets,
) -> tuple[list[StagePlan], float]:
    """Refit every stage to the values of the next and take its step; the first one is solved."""
    present: list[StagePlan] = []
    for stage in reversed(range(len(plans))):
        plan = plans[stage]
        if len(plan.confidence_set.data):
            following = present[0] if present else None
            plan = _refitted(plan, buffers[stage], following)
        step = steps[stage]
        center, bound = plan.center, plan.confidence_set.head_norm_bound
        played = center
        if step is not None:
            played = center.with_heads(stepped(center.heads, step, bound))
        if stage == 0:
            selection = backup.action_selector(plan.confidence_set, action_sets)
            played, value = _function_of(selection), float(selection.values.sum())
        present.insert(0, replace(plan, played=(played,)))
    return present, value


def _function_of(selection: Selection) -> MultiheadFunction:
    if selection.function is None:
        raise InvalidInputError(
            "the joint backup needs an action selector that returns a member of the confidence "
            "set, such as LastLayer() or ExactFinite()"
        )
    return selection.function


def _refitted(plan: StagePlan, memory: StageBuffer, following: StagePlan | None) -> StagePlan:
    """The plan of a stage on the same representation, around the fit to other next values."""
    confidence_set = plan.confidence_set
    values = np.zeros(len(memory.places))
    if following is not None and len(memory.places):
        values = following.clip(_places(memory, following)[1]).numpy()
    targets = memory.targets(values, len(confidence_set.data))
    data = memory.dataset(targets)
    features = features_of(plan.center.representation, data.inputs)
    offset = plan.center.offset
    statistics = HeadStatistics.of(features, data.tasks, data.targets - offset, data.num_tasks)
    penalty = HeadPenalty(confidence_set.ridge, confidence_set.head_norm_bound)
    center = plan.center.with_heads(statistics.heads(penalty))
    changed = replace(confidence_set, center=center, data=data, center_statistics=statistics)
    ellipsoid = changed.ellipsoid()
    assert ellipsoid is not None
    only = ((center.representation, ellipsoid),)
    return replace(plan, confidence_set=changed, ellipsoids=only)


def _places(memory: StageBuffer, following: StagePlan) -> tuple[Tensor, Tensor]:
    """Greedy features of the places a stage led to, and their values: [place, k], [place].

    Greedy for the member of the stage, or for its upper values where none is chosen yet.
    """
    candidates, tasks = memory.places.rows, memory.places.tasks
    action_sets = ActionSets(candidates, tasks, torch.ones(candidates.shape[:2], dtype=torch.bool))
    best, values = greedy(
        action_sets, following.played_values if following.played else following.upper_values
    )
    features = features_of(_member(following).representation, action_sets.inputs_of(best))
    return features, values


def _member(plan: StagePlan) -> MultiheadFunction:
    return plan.played[0] if plan.played else plan.center


def _best_steps(
    plans: Sequence[StagePlan], buffers: Sequence[StageBuffer], action_sets: ActionSets
) -> list[Tensor | None]:
    """The steps that raise the first values most while the greedy policy stays as it is.

    The first values depend on the heads of stage h through directions g_h: those of stage 1 are the
    features chosen there, and  g_{h+1} = sum_samples (g_h^T V_h^-1 phi) phi_{h+1}(s', greedy).
    The best step is V^-1 g sqrt(squared_radius / sum_i g_i^T V_i^-1 g_i).
    """
    first = _member(plans[0])
    values = action_sets.values_of(first)
    chosen = action_sets.inputs_of(action_sets.best_actions(values))
    directions = task_sums(
        features_of(first.representation, chosen), action_sets.tasks, len(first.heads)
    )
    steps: list[Tensor | None] = [None]
    for stage, following in enumerate(plans[1:]):
        plan, memory = plans[stage], buffers[stage]
        reach = _reach(plan, directions)
        directions = torch.zeros_like(following.center.heads)
        data = plan.confidence_set.data
        if len(data) and len(memory.places):
            features = features_of(plan.center.representation, data.inputs)
            weights = (features * reach[data.tasks]).sum(-1).numpy()
            entered = memory.entered[: len(data)]
            going = entered >= 0
            mass = np.bincount(entered[going], weights=weights[going], minlength=len(memory.places))
            greedy_features, place_values = _places(memory, following)
            mass_now = torch.from_numpy(mass)
            if following.played:
                # A value at the end of its range does not move. Upper values often are there.
                mass_now = mass_now * (following.clip(place_values) == place_values)
            directions = task_sums(
                greedy_features * mass_now[:, None], memory.places.tasks, len(directions)
            )
        step = _reach(following, directions)
        length = float((directions * step).sum())
        radius = following.confidence_set.squared_radius
        steps.append(step * (radius / length) ** 0.5 if length > 0 else None)
    return steps


def _reach(plan: StagePlan, directions: Tensor) -> Tensor:
    """V^-1 g of a stage: [task, feature] -> [task, feature]."""
    statistics = plan.confidence_set.center_statistics
    assert statistics is not None
    return cholesky_solve(statistics.cholesky(plan.confidence_set.ridge), directions)
