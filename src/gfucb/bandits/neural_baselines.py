"""Methods of the field, with the interface, the network and the fit of GFUCB.

Each is `GFUCB` with another way to explore, so that comparisons are about that alone; options are
those of `GFUCB`. With `num_tasks` tasks they share one representation; `Grouped` makes them learn
each task by itself. Those with widths scale them by the squared radius, each entry alone: by
default the calibrated one, or whatever is passed as `squared_radius`.
"""

from __future__ import annotations

from typing import Any

from gfucb.bandits.gfucb import GFUCB
from gfucb.estimation import ConstantRadius
from gfucb.exploration import (
    DiagonalSampling,
    DiagonalUCB,
    HeadSampling,
    InverseGap,
    LastLayer,
    PerturbedRewards,
)


def neural_ucb(num_tasks: int, representation: Any = None, **options: Any) -> GFUCB:
    """NeuralUCB (Zhou, Li and Gu 2020), diagonal: see `DiagonalUCB`."""
    return GFUCB(num_tasks, representation, action_selector=DiagonalUCB(), **options)


def neural_ts(
    num_tasks: int, representation: Any = None, *, seed: int = 0, **options: Any
) -> GFUCB:
    """NeuralTS (Zhang, Zhou, Li and Gu 2021), diagonal: see `DiagonalSampling`."""
    action_selector = DiagonalSampling(seed)
    return GFUCB(num_tasks, representation, seed=seed, action_selector=action_selector, **options)


def neural_linear_ucb(num_tasks: int, representation: Any = None, **options: Any) -> GFUCB:
    """LinUCB on the fitted features:  <w_i, phi(x)> + sqrt(squared_radius) |phi(x)|_{V_i^-1}.

    (Xu, Wen, Zhao and Gu 2022.) GFUCB with a radius for each entry instead of one for all.
    """
    return GFUCB(num_tasks, representation, action_selector=LastLayer(joint=False), **options)


def neural_linear_ts(
    num_tasks: int, representation: Any = None, *, seed: int = 0, **options: Any
) -> GFUCB:
    """Thompson sampling of heads (Riquelme, Tucker and Snoek 2018): see `HeadSampling`."""
    action_selector = HeadSampling(seed)
    return GFUCB(num_tasks, representation, seed=seed, action_selector=action_selector, **options)


def squarecb(
    num_tasks: int,
    representation: Any = None,
    *,
    scale: float = 10.0,
    seed: int = 0,
    **options: Any,
) -> GFUCB:
    """SquareCB (Foster and Rakhlin 2020), inverse gap weighting: see `InverseGap`."""
    return GFUCB(
        num_tasks,
        representation,
        seed=seed,
        squared_radius=ConstantRadius(0.0),
        action_selector=InverseGap(scale, seed),
        **options,
    )


def perturbed_rewards(
    num_tasks: int, representation: Any = None, *, perturbation: float = 0.1, **options: Any
) -> GFUCB:
    """NPR (Jia, Zhang, Zhou, Gu and Wang 2022), greedy on perturbed rewards: see `PerturbedRewards`."""
    return GFUCB(
        num_tasks,
        representation,
        squared_radius=ConstantRadius(0.0),
        action_selector=PerturbedRewards(perturbation),
        **options,
    )
