"""A posterior of heads as named tensors, checked when they are restored."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from gfucb.core.errors import InvalidInputError
from gfucb.core.validation.settings import LARGEST_COMPUTED
from gfucb.core.validation.states import validate_state_tensor
from gfucb.models.copy_on_write import CopyOnWriteRows
from gfucb.models.head_posterior import HeadPosterior, PosteriorFit

# Numbers of symmetric matrices differ by no more than this, and by no larger share of them.
ASYMMETRY = 1e-9


def posterior_state(fit: PosteriorFit) -> dict[str, Tensor]:
    """The posterior and the offset; all names begin with `posterior.`."""
    posterior = fit.posterior
    numbers = (
        fit.offset,
        posterior.exploration_scale,
        posterior.noise,
        posterior.squared_radius,
        posterior.untried_rate,
    )
    return {
        "posterior.numbers": torch.tensor(numbers, dtype=torch.float64),
        "posterior.covariances": posterior.covariances.whole,
        "posterior.moments": posterior.moments,
        "posterior.mean": posterior.mean,
        "posterior.mean_covariance": posterior.mean_covariance,
        "posterior.exploration": posterior.exploration.whole,
        "posterior.tries": posterior.tries,
        "posterior.heads": posterior.heads,
    }


def restored_posterior(
    state: Mapping[str, Tensor], num_tasks: int, device: torch.device
) -> tuple[float, HeadPosterior]:
    """The offset and the posterior of a state, checked."""
    offset, exploration_scale, noise, squared_radius, untried_rate = checked_floats(
        state, "posterior.numbers", (5,)
    ).tolist()
    if not (noise > 0 and exploration_scale >= 0 and squared_radius >= 0 and untried_rate >= 0):
        raise InvalidInputError(
            "'posterior.numbers' of the state: the noise must be positive, "
            "and no scale, radius or rate negative"
        )
    size = checked_floats(state, "posterior.mean", (None,)).shape[0]
    linear = checked_floats(state, "posterior.exploration", (num_tasks, None, None)).shape[1]
    shapes = {
        "covariances": (num_tasks, size, size),
        "moments": (num_tasks, size),
        "mean": (size,),
        "mean_covariance": (size, size),
        "exploration": (num_tasks, linear, linear),
        "heads": (num_tasks, size + linear),
    }
    found = {
        name: checked_floats(state, f"posterior.{name}", shape).to(device, copy=True)
        for name, shape in shapes.items()
    }
    for name in ("covariances", "exploration"):
        if not bool((found[name].diagonal(dim1=-2, dim2=-1) > 0).all()):
            raise InvalidInputError(f"'posterior.{name}' of the state has no positive diagonal")
    if bool((found["mean_covariance"].diagonal() < 0).any()):
        raise InvalidInputError("'posterior.mean_covariance' of the state has negative variances")
    for name in ("covariances", "exploration", "mean_covariance"):
        if not torch.allclose(found[name], found[name].mT, rtol=ASYMMETRY, atol=ASYMMETRY):
            raise InvalidInputError(f"'posterior.{name}' of the state is not symmetric")
    tries = validate_state_tensor(
        state, "posterior.tries", (linear,), dtype=torch.float64, low=0, is_finite=False
    )
    return offset, HeadPosterior(
        CopyOnWriteRows(found["covariances"]),
        found["moments"],
        found["mean"],
        found["mean_covariance"],
        CopyOnWriteRows(found["exploration"]),
        exploration_scale,
        noise,
        squared_radius,
        tries.to(device, copy=True),
        untried_rate,
        found["heads"],
    )


def checked_floats(
    state: Mapping[str, Tensor],
    name: str,
    shape: tuple[int | None, ...],
    *,
    low: float = -LARGEST_COMPUTED,
) -> Tensor:
    """A tensor of finite float64 numbers of a computable size."""
    return validate_state_tensor(
        state, name, shape, dtype=torch.float64, low=low, high=LARGEST_COMPUTED
    )
