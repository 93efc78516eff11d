"""Variants of Algorithm 2: which values stage h + 1 passes to stage h, and how actions follow.

pointwise    V_{h+1} = max_a upper value,    greedy actions; optimistic in linear MDPs
literal      V_{h+1} = max_a fit,            actions by line 9; as printed, and not optimistic
joint        one member per stage, selected together for the first states (`joint_backup`)
randomised   V_{h+1} = max_a perturbed fit,  greedy actions; optimistic with constant probability
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from gfucb.core.action_sets import ActionSets
from gfucb.core.protocols import ActionSelector
from gfucb.core.validation.settings import validate_count
from gfucb.episodic.buffer import StageBuffer
from gfucb.episodic.stage_plan import StagePlan, greedy
from gfucb.models.heads import stepped


class _FixedPlans:
    """The parts of a `Backup` that do not depend on the first states of an episode."""

    def is_markov(self, num_tasks: int) -> bool:
        """Actions are greedy for values that are fixed between plans."""
        return True

    def prepare(self, plan: StagePlan, generator: torch.Generator) -> StagePlan:
        """Return the plan as it is."""
        return plan

    def start_episode(
        self, plans: list[StagePlan], buffers: Sequence[StageBuffer], action_sets: ActionSets
    ) -> list[StagePlan]:
        """Return the plans as they are."""
        return plans


@dataclass(frozen=True)
class PointwiseBackup(_FixedPlans):
    """Back up, and act on, the upper value of every pair of state and action alone.

    In a linear MDP the backup of *any* next values is linear, so it is in the set although upper
    values are not linear: each stage is optimistic if the next one is. With one representation
    this is LSVI-UCB (Jin et al., 2020); `squared_radius` is its beta^2.
    """

    def action_values(self, plan: StagePlan, inputs: Tensor, tasks: Tensor) -> Tensor:
        """Upper values."""
        return plan.upper_values(inputs, tasks)

    def select(self, plan: StagePlan, action_sets: ActionSets) -> tuple[Tensor, Tensor]:
        """The action with the largest upper value.

        Ties at the top of the value range are broken by the value before clipping.
        """
        return greedy(action_sets, plan.upper_values)


@dataclass(frozen=True)
class LiteralBackup(_FixedPlans):
    """Algorithm 2 as printed: back up the fit (line 5), be optimistic in the current stage only.

    Uncertainty is not propagated backwards, so later stages are never explored deliberately. It is
    here for comparison.
    """

    action_selector: ActionSelector

    def is_markov(self, num_tasks: int) -> bool:
        """Line 9 chooses the actions of all tasks together, so they depend on each other."""
        return num_tasks == 1

    def action_values(self, plan: StagePlan, inputs: Tensor, tasks: Tensor) -> Tensor:
        """Values of the fit: line 5."""
        return plan.estimates(inputs, tasks)

    def select(self, plan: StagePlan, action_sets: ActionSets) -> tuple[Tensor, Tensor]:
        """Line 9: f in F_h and actions with the largest sum over the tasks."""
        selection = self.action_selector(plan.confidence_set, action_sets)
        return selection.actions, selection.values


@dataclass(frozen=True)
class RandomisedBackup(_FixedPlans):
    """Back up, and act on, a fit to perturbed targets (Osband et al., 2016; Ishfaq et al., 2021).

    Gaussian noise of variance `squared_radius` on every target, and on the prior of the heads,
    changes the heads by N(0, squared_radius V^-1); `prepare` draws that change. Values stay in the
    class. With several samples, the value of an input is the largest of the draws.

    Args:
        num_samples: number of draws.
    """

    num_samples: int = 1

    def __post_init__(self) -> None:
        validate_count(self.num_samples, "num_samples")

    def prepare(self, plan: StagePlan, generator: torch.Generator) -> StagePlan:
        """Draw the perturbed heads."""
        center, scale = plan.center, plan.confidence_set.squared_radius**0.5
        shape = (self.num_samples, *center.heads.shape)
        noise = torch.randn(shape, generator=generator, dtype=torch.float64)
        # L^-T z has covariance V^-1.
        steps = (plan.center_inverse_factor.transpose(-1, -2) @ noise.unsqueeze(-1)).squeeze(-1)
        bound = plan.confidence_set.head_norm_bound
        perturbed = tuple(
            center.with_heads(stepped(center.heads, scale * step, bound)) for step in steps
        )
        return replace(plan, policy_functions=perturbed)

    def action_values(self, plan: StagePlan, inputs: Tensor, tasks: Tensor) -> Tensor:
        """Values of the perturbed fits, the largest at every input."""
        return plan.policy_values(inputs, tasks)

    def select(self, plan: StagePlan, action_sets: ActionSets) -> tuple[Tensor, Tensor]:
        """The best action of the perturbed fits."""
        return greedy(action_sets, plan.policy_values)
