"""A posterior of heads as named tensors, checked when they are restored."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from gfucb.core.errors import InvalidInputError
from gfucb.core.nested import with_prefix
from gfucb.core.validation.settings import LARGEST_COMPUTED
from gfucb.core.validation.states import validate_state_tensor
from gfucb.models.copy_on_write import CopyOnWriteRows
from gfucb.models.head_posterior import HeadPosterior, PosteriorFit
from gfucb.models.sample_covariances import SampleCovariances
from gfucb.models.task_covariances import Covariances

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
        posterior.exploration_precision,
    )
    return {
        "posterior.numbers": torch.tensor(numbers, dtype=torch.float64),
        "posterior.moments": posterior.moments,
        "posterior.mean": posterior.mean,
        "posterior.mean_covariance": posterior.mean_covariance,
        "posterior.tries": posterior.tries,
        "posterior.heads": posterior.heads,
        **_tensors("covariances", posterior.covariances),
        **_tensors("exploration", posterior.exploration),
    }


def _tensors(name: str, matrices: Covariances) -> dict[str, Tensor]:
    """Matrices of all tasks as one tensor, or the tensors of samples."""
    if isinstance(matrices, SampleCovariances):
        return with_prefix(f"posterior.{name}.", matrices.tensors())
    return {f"posterior.{name}": matrices.whole}


def restored_posterior(
    state: Mapping[str, Tensor], num_tasks: int, device: torch.device
) -> tuple[float, HeadPosterior]:
    """The offset and the posterior of a state, checked."""
    offset, exploration_scale, noise, squared_radius, untried_rate, precision = checked_floats(
        state, "posterior.numbers", (6,)
    ).tolist()
    is_valid = min(noise, precision) > 0
    if not (is_valid and min(exploration_scale, squared_radius, untried_rate) >= 0):
        raise InvalidInputError(
            "'posterior.numbers' of the state: noise and precision must be positive, "
            "and no scale, radius or rate negative"
        )
    size = checked_floats(state, "posterior.mean", (None,)).shape[0]
    linear = len(
        validate_state_tensor(
            state, "posterior.tries", (None,), dtype=torch.float64, low=0, is_finite=False
        )
    )
    shapes = {
        "moments": (num_tasks, size),
        "mean": (size,),
        "mean_covariance": (size, size),
        "heads": (num_tasks, size + linear),
    }
    found = {
        name: checked_floats(state, f"posterior.{name}", shape).to(device, copy=True)
        for name, shape in shapes.items()
    }
    if bool((found["mean_covariance"].diagonal() < 0).any()):
        raise InvalidInputError("'posterior.mean_covariance' of the state has negative variances")
    _require_symmetric("mean_covariance", found["mean_covariance"])
    return offset, HeadPosterior(
        _restored_matrices(state, "covariances", num_tasks, size, device),
        found["moments"],
        found["mean"],
        found["mean_covariance"],
        _restored_matrices(state, "exploration", num_tasks, linear, device),
        exploration_scale,
        noise,
        squared_radius,
        state["posterior.tries"].to(device, copy=True),
        untried_rate,
        precision,
        found["heads"],
    )


def _restored_matrices(
    state: Mapping[str, Tensor], name: str, num_tasks: int, size: int, device: torch.device
) -> Covariances:
    """The matrices of all tasks, or samples from which they follow, checked."""
    key = f"posterior.{name}"
    if f"{key}.features" in state:
        rows = checked_floats(state, f"{key}.features", (None, size), is_double=False)
        shapes = {"tasks": (len(rows),), "heavy": (None,)}
        tensors = {
            part: validate_state_tensor(state, f"{key}.{part}", shape, dtype=torch.int64)
            for part, shape in shapes.items()
        }
        grams = checked_floats(state, f"{key}.grams", (len(tensors["heavy"]), size, size))
        _require_symmetric(f"{name}.grams", grams)
        tensors |= {"features": rows, "grams": grams}
        own = {part: tensor.to(device, copy=True) for part, tensor in tensors.items()}
        return SampleCovariances.restored(own, num_tasks)
    matrices = checked_floats(state, key, (num_tasks, size, size))
    if not bool((matrices.diagonal(dim1=-2, dim2=-1) > 0).all()):
        raise InvalidInputError(f"{key!r} of the state has no positive diagonal")
    _require_symmetric(name, matrices)
    return CopyOnWriteRows(matrices.to(device, copy=True))


def _require_symmetric(name: str, matrices: Tensor) -> None:
    if not torch.allclose(matrices, matrices.mT, rtol=ASYMMETRY, atol=ASYMMETRY):
        raise InvalidInputError(f"'posterior.{name}' of the state is not symmetric")


def checked_floats(
    state: Mapping[str, Tensor],
    name: str,
    shape: tuple[int | None, ...],
    *,
    low: float = -LARGEST_COMPUTED,
    is_double: bool = True,
) -> Tensor:
    """A tensor of finite float64 numbers, or of float32 ones if allowed, of a computable size."""
    is_single = not is_double and name in state and state[name].dtype == torch.float32
    dtype = torch.float32 if is_single else torch.float64
    return validate_state_tensor(state, name, shape, dtype=dtype, low=low, high=LARGEST_COMPUTED)
