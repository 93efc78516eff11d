"""From the settings of a GFUCB agent to its learner."""

from __future__ import annotations

from typing import Literal

import torch

from gfucb.bandits.candidate_learning import candidate_learning
from gfucb.bandits.forgetting import KeepingRules
from gfucb.bandits.learner import Learner
from gfucb.core.protocols import (
    ActionSelector,
    LeastSquares,
    RepresentationClass,
    SelfSupervision,
)
from gfucb.core.validation.settings import validate_component, validate_number
from gfucb.estimation.default_fits import default_fit
from gfucb.estimation.reward_scaling import RewardScaling
from gfucb.models import HeadPenalty


def build_learner(
    num_tasks: int,
    representation_class: RepresentationClass,
    fit: LeastSquares | None,
    penalty: HeadPenalty,
    scaling: RewardScaling,
    action_selector: ActionSelector,
    *,
    refit_growth: float | None,
    seed: int,
    self_supervision: SelfSupervision | Literal["auto"] | None,
    keeping: KeepingRules,
    device: torch.device | str,
) -> Learner:
    """The learner of a representation class; a fit and a growth of None are its defaults."""
    return Learner(
        num_tasks=num_tasks,
        representation_class=representation_class,
        fit=validate_component(
            default_fit(representation_class) if fit is None else fit,
            "fit",
            "a least-squares fit such as VariableProjection()",
        ),
        penalty=penalty,
        scaling=scaling,
        refit_growth=(
            representation_class.default_refit_growth
            if refit_growth is None
            else validate_number(refit_growth, "refit_growth", at_least=1.0, is_finite=False)
        ),
        seed=seed,
        device=device,
        weight_statistics=action_selector.weight_statistics,
        reward_perturbation=action_selector.reward_perturbation,
        candidates=candidate_learning(self_supervision, representation_class, seed),
        keeping=keeping,
    )
