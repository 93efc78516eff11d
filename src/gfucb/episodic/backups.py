"""What is handed from stage h + 1 to stage h, and how a stage is played: the seam of Algorithm 2.

literal      V_{h+1} = max_a fit,            played with line 9; as printed, and not optimistic
pointwise    V_{h+1} = max_a upper value,    played greedily; optimistic in linear MDPs
joint        one member a stage, chosen together for the first states; optimistic with low IBE
randomised   V_{h+1} = max_a perturbed fit,  played greedily; optimistic often enough
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import torch
from torch import Tensor

from gfucb.core.protocols import ActionSelector
from gfucb.core.records import ActionSets
from gfucb.episodic.finite_stage import MemberFeatures
from gfucb.models import (
    ConfidenceSet,
    HeadEllipsoid,
    MultiheadFunction,
    Representation,
    features_of,
)
from gfucb.models.heads import stepped


@dataclass(frozen=True, eq=False)
class StagePlan:
    """What is believed of one stage until the next plan.

    Attributes:
        confidence_set: F_h around the fit; its center has no value range.
        ellipsoids: the heads left on every representation of the set, for upper values.
        value_range: what values of this stage lie in, or None.
        played: the functions this stage is played with, where a backup has chosen some: the
            member of `joint`, the samples of `randomised`.
        member_features: features of all members, where the class has several.
    """

    confidence_set: ConfidenceSet
    ellipsoids: Sequence[tuple[Representation, HeadEllipsoid]]
    value_range: tuple[float, float] | None
    played: tuple[MultiheadFunction, ...] = ()
    member_features: MemberFeatures | None = None

    @property
    def center(self) -> MultiheadFunction:
        """The fit of line 4."""
        return self.confidence_set.center

    def estimates(self, inputs: Tensor, tasks: Tensor) -> Tensor:
        """Values of the fit, not clipped: [n, *input], [n] -> [n]."""
        return self.center.values(inputs, tasks)

    def upper_values(self, inputs: Tensor, tasks: Tensor) -> Tensor:
        """Sup over the set of f_task(x), each input alone, not clipped: [n, *input], [n] -> [n].

        For one representation this is <w, phi> + sqrt(squared_radius phi^T V^-1 phi).
        """
        centers, inverses, radii = self._stacked
        if self.member_features is None:
            features = features_of(self.ellipsoids[0][0], inputs)[None]
        else:
            features = self.member_features(inputs)[self._members]
        best = torch.empty(len(inputs), dtype=torch.float64)
        for task in tasks.unique().tolist():
            own = (tasks == task).nonzero().squeeze(1)
            phi = features[:, own]
            values = (phi @ centers[:, task, :, None]).squeeze(-1)
            widths = (phi @ inverses[:, task].transpose(1, 2)).norm(dim=-1)
            best[own] = (values + radii[:, None] * widths).amax(0)
        return self.center.offset + best

    def squared_widths(self, features: Tensor, tasks: Tensor) -> Tensor:
        """phi^T V^-1 phi on the fitted representation: [n, feature], [n] -> [n]."""
        return (
            (self.center_inverse_factor[tasks] @ features.unsqueeze(-1))
            .squeeze(-1)
            .square()
            .sum(-1)
        )

    def played_values(self, inputs: Tensor, tasks: Tensor) -> Tensor:
        """The largest value of the functions in `played`, not clipped: [n]."""
        values = [function.values(inputs, tasks) for function in self.played]
        return torch.stack(values).amax(0)

    def clip(self, values: Tensor) -> Tensor:
        """Values moved into the range of the stage."""
        return values if self.value_range is None else values.clamp(*self.value_range)

    @cached_property
    def _stacked(self) -> tuple[Tensor, Tensor, Tensor]:
        """Centers, inverse factors and radii, [member, task, ...] and [member]."""
        found = [ellipsoid for _, ellipsoid in self.ellipsoids]
        centers = torch.stack([ellipsoid.centers for ellipsoid in found])
        factors = _inverse_factor(torch.stack([ellipsoid.cholesky for ellipsoid in found]))
        squares = torch.tensor([e.squared_radius for e in found], dtype=torch.float64)
        return centers, factors, squares.sqrt()

    @cached_property
    def _members(self) -> list[int]:
        assert self.member_features is not None
        return [self.member_features.index(member) for member, _ in self.ellipsoids]

    @cached_property
    def center_inverse_factor(self) -> Tensor:
        """L^-1 on the fitted representation, [task, feature, feature]."""
        statistics = self.confidence_set.center_statistics
        assert statistics is not None
        return _inverse_factor(statistics.cholesky(self.confidence_set.ridge))


def _inverse_factor(cholesky: Tensor) -> Tensor:
    """L^-1 of lower factors [task, feature, feature]: |L^-1 phi|^2 = phi^T V^-1 phi."""
    eye = torch.eye(cholesky.shape[-1], dtype=cholesky.dtype).expand_as(cholesky)
    return torch.linalg.solve_triangular(cholesky, eye, upper=False)


class Backup(Protocol):
    """How a stage is valued from below and played."""

    @property
    def name(self) -> str:
        """What it is called in settings."""

    @property
    def is_markov(self) -> bool:
        """Whether actions depend on their own entry and stage alone until the next plan."""

    def prepare(self, plan: StagePlan, generator: torch.Generator) -> StagePlan:
        """Complete the plan of a stage, before anything is asked of it."""

    def values(self, plan: StagePlan, inputs: Tensor, tasks: Tensor) -> Tensor:
        """The action values handed to the stage before, not clipped: [n, *input], [n] -> [n]."""

    def choose(self, plan: StagePlan, action_sets: ActionSets) -> tuple[Tensor, Tensor]:
        """Actions, and the values hoped for, not clipped: both [row]."""


@dataclass(frozen=True)
class Pointwise:
    """Back up and play the upper value of every pair of state and action alone.

    In a linear MDP the true backup of *any* next values is linear, so it stays in the set
    although upper values are not linear: each stage is optimistic if the next one is. With one
    representation this is LSVI-UCB (Jin et al., 2020); `squared_radius` is its beta^2.
    """

    name: str = "pointwise"
    is_markov: bool = True

    def prepare(self, plan: StagePlan, generator: torch.Generator) -> StagePlan:
        """Nothing to choose beforehand."""
        return plan

    def values(self, plan: StagePlan, inputs: Tensor, tasks: Tensor) -> Tensor:
        """Upper values."""
        return plan.upper_values(inputs, tasks)

    def choose(self, plan: StagePlan, action_sets: ActionSets) -> tuple[Tensor, Tensor]:
        """The action with the largest upper value.

        Ties at the top of the value range are broken by the value before clipping.
        """
        return greedy(action_sets, plan.upper_values)


@dataclass(frozen=True)
class Literal:
    """Algorithm 2 as printed: back up the fit (line 5), bonus_scale only where one stands (line 9).

    Not optimistic: what is unknown further on never raises a value here. Kept for the record.
    """

    action_selector: ActionSelector
    name: str = "literal"
    is_markov: bool = False

    def prepare(self, plan: StagePlan, generator: torch.Generator) -> StagePlan:
        """Nothing to choose beforehand."""
        return plan

    def values(self, plan: StagePlan, inputs: Tensor, tasks: Tensor) -> Tensor:
        """Values of the fit: line 5."""
        return plan.estimates(inputs, tasks)

    def choose(self, plan: StagePlan, action_sets: ActionSets) -> tuple[Tensor, Tensor]:
        """Line 9: f in F_h and actions with the largest sum over the tasks."""
        choice = self.action_selector(plan.confidence_set, action_sets)
        return choice.actions, choice.values


@dataclass(frozen=True)
class Randomised:
    """Back up and play a fit to perturbed targets (Osband et al., 2016; Ishfaq et al., 2021).

    Gaussian noise of variance `squared_radius` on every target, and on the prior of the heads,
    moves them by N(0, squared_radius V^-1): that is drawn. Values stay in the class. The largest of
    `num_samples` draws is taken at every input.
    """

    num_samples: int = 1
    name: str = "randomised"
    is_markov: bool = True

    def prepare(self, plan: StagePlan, generator: torch.Generator) -> StagePlan:
        """Draw the perturbed heads."""
        center, scale = plan.center, plan.confidence_set.squared_radius**0.5
        shape = (self.num_samples, *center.heads.shape)
        noise = torch.randn(shape, generator=generator, dtype=torch.float64)
        # L^-T z has covariance V^-1.
        steps = (plan.center_inverse_factor.transpose(-1, -2) @ noise.unsqueeze(-1)).squeeze(-1)
        bound = plan.confidence_set.head_norm_bound
        played = tuple(
            center.with_heads(stepped(center.heads, scale * step, bound)) for step in steps
        )
        return replace(plan, played=played)

    def values(self, plan: StagePlan, inputs: Tensor, tasks: Tensor) -> Tensor:
        """Values of the perturbed fits, the largest at every input."""
        return plan.played_values(inputs, tasks)

    def choose(self, plan: StagePlan, action_sets: ActionSets) -> tuple[Tensor, Tensor]:
        """The action the perturbed fits like best."""
        return greedy(action_sets, plan.played_values)


def greedy(
    action_sets: ActionSets, values_of: Callable[[Tensor, Tensor], Tensor]
) -> tuple[Tensor, Tensor]:
    """The best actions under `values_of`(inputs, tasks), and their values: both [row]."""
    entries, actions = action_sets.available.shape
    tasks = action_sets.tasks.repeat_interleave(actions)
    values = values_of(action_sets.candidates.flatten(0, 1), tasks).unflatten(0, (entries, actions))
    chosen = action_sets.best_actions(values)
    return chosen, values.gather(1, chosen[:, None]).squeeze(1)
