"""Neural baselines from the literature, with the interface, the network and the fit of GFUCB.

Each one is `GFUCB` with another action selector, so comparisons differ in exploration only. Options
are those of `GFUCB`. With `num_tasks` tasks they share one representation; `Grouped` gives each
task its own. Methods that use a variance scale it by the squared radius of each row: by default the
calibrated one, otherwise the argument `squared_radius`.
"""

from __future__ import annotations

from typing import Any

from torch import nn

from gfucb.bandits.gfucb import GFUCB
from gfucb.core.protocols import RepresentationClass
from gfucb.estimation import ConstantRadius
from gfucb.exploration import (
    DiagonalSampling,
    DiagonalUCB,
    HeadSampling,
    InverseGap,
    LastLayer,
    PerturbedRewards,
)
from gfucb.models import DefaultNetworkClass

Representations = nn.Module | RepresentationClass | None


def neural_ucb(num_tasks: int, representation: Representations = None, **options: Any) -> GFUCB:
    """NeuralUCB (Zhou, Li and Gu 2020) with a diagonal Gram matrix: see `DiagonalUCB`."""
    return GFUCB(num_tasks, representation, action_selector=DiagonalUCB(), **options)


def neural_ts(
    num_tasks: int, representation: Representations = None, *, seed: int = 0, **options: Any
) -> GFUCB:
    """NeuralTS (Zhang, Zhou, Li and Gu 2021), diagonal too: see `DiagonalSampling`."""
    selector = DiagonalSampling(seed)
    return GFUCB(num_tasks, representation, seed=seed, action_selector=selector, **options)


def neural_linear_ucb(
    num_tasks: int, representation: Representations = None, **options: Any
) -> GFUCB:
    """LinUCB on the fitted features:  <w_i, phi(x)> + sqrt(squared_radius) |phi(x)|_{V_i^-1}.

    (Xu, Wen, Zhao and Gu 2022.) GFUCB with one radius for each row instead of one for all.
    """
    network = DefaultNetworkClass() if representation is None else representation
    return GFUCB(num_tasks, network, action_selector=LastLayer(joint=False), **options)


def neural_linear_ts(
    num_tasks: int, representation: Representations = None, *, seed: int = 0, **options: Any
) -> GFUCB:
    """Thompson sampling of heads (Riquelme, Tucker and Snoek 2018): see `HeadSampling`."""
    selector = HeadSampling(seed)
    return GFUCB(num_tasks, representation, seed=seed, action_selector=selector, **options)


def squarecb(
    num_tasks: int,
    representation: Representations = None,
    *,
    scale: float = 10.0,
    seed: int = 0,
    **options: Any,
) -> GFUCB:
    """SquareCB (Foster and Rakhlin 2020), inverse gap weighting: see `InverseGap`."""
    return GFUCB(
        num_tasks,
        DefaultNetworkClass() if representation is None else representation,
        seed=seed,
        squared_radius=ConstantRadius(0.0),
        action_selector=InverseGap(scale, seed),
        **options,
    )


def perturbed_rewards(
    num_tasks: int,
    representation: Representations = None,
    *,
    perturbation: float = 0.1,
    **options: Any,
) -> GFUCB:
    """NPR (Jia, Zhang, Zhou, Gu and Wang 2022), greedy on a fit to perturbed rewards.

    See `PerturbedRewards`.
    """
    return GFUCB(
        num_tasks,
        representation,
        squared_radius=ConstantRadius(0.0),
        action_selector=PerturbedRewards(perturbation),
        **options,
    )
