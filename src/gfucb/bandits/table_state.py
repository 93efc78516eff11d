"""The saved state of a fitted table: named tensors, checked when they are restored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, fields

import torch
from torch import Tensor

from gfucb.bandits.state_validation import validate_data
from gfucb.core.errors import InvalidInputError
from gfucb.core.validation.settings import LARGEST_COMPUTED
from gfucb.core.validation.states import validate_state_names, validate_state_tensor
from gfucb.estimation.reward_scale import STATE_NAME, RewardScale
from gfucb.estimation.table_fit import TableFit
from gfucb.models.copy_on_write import CopyOnWriteRows
from gfucb.models.head_posterior import HeadPosterior
from gfucb.models.table_features import TableColumns, TableFeatures, TableScales
from gfucb.models.table_layout import TableLayout

PROJECTION = "table.projection"
NAMES = (
    "counters",
    "data.inputs",
    "data.tasks",
    "data.targets",
    STATE_NAME,
    "table.layout",
    "table.location",
    "table.spread",
    "table.frequencies",
    "table.scales",
    "table.numbers",
    "posterior.covariances",
    "posterior.moments",
    "posterior.mean",
    "posterior.mean_covariance",
    "posterior.exploration",
)


def state_of_fit(fit: TableFit) -> dict[str, Tensor]:
    """The fit as named tensors."""
    columns, posterior = fit.features.columns, fit.posterior
    layout = columns.layout
    state = {
        "table.layout": torch.tensor(
            [
                layout.num_columns,
                layout.first_action,
                layout.num_actions,
                int(columns.explores_columns),
            ]
        ),
        "table.location": columns.location,
        "table.spread": columns.spread,
        "table.frequencies": columns.frequencies,
        "table.scales": torch.tensor(astuple(fit.features.scales), dtype=torch.float64),
        "table.numbers": torch.tensor(
            [fit.offset, posterior.exploration_scale, posterior.noise], dtype=torch.float64
        ),
        "posterior.covariances": posterior.covariances.whole,
        "posterior.moments": posterior.moments,
        "posterior.mean": posterior.mean,
        "posterior.mean_covariance": posterior.mean_covariance,
        "posterior.exploration": posterior.exploration.whole,
    }
    if columns.projection is not None:
        state[PROJECTION] = columns.projection
    return state


def restored_fit(
    state: Mapping[str, Tensor], num_tasks: int, device: torch.device
) -> tuple[TableFit, RewardScale, tuple[int, int]]:
    """The fit, the reward scale and the counters of a state, checked."""
    validate_state_names(state, NAMES, optional_prefixes=[PROJECTION])
    num_samples = validate_data(state, num_tasks)
    counters = validate_state_tensor(state, "counters", (2,), dtype=torch.int64, low=0)
    num_fits, samples_at_fit = counters.tolist()
    if samples_at_fit > num_samples:
        raise InvalidInputError(
            f"'counters' of the state give {samples_at_fit} samples at the last fit, but the "
            f"state has {num_samples} samples"
        )
    columns = _restored_columns(state, device)
    scales = TableScales(*_floats(state, "table.scales", (len(fields(TableScales)),)).tolist())
    numbers = _floats(state, "table.numbers", (3,)).tolist()
    posterior = _restored_posterior(state, columns, num_tasks, device, *numbers[1:])
    fit = TableFit(TableFeatures(columns, scales), posterior, numbers[0])
    return fit, RewardScale.restored({STATE_NAME: state[STATE_NAME]}), (num_fits, samples_at_fit)


def _restored_columns(state: Mapping[str, Tensor], device: torch.device) -> TableColumns:
    saved = validate_state_tensor(state, "table.layout", (4,), dtype=torch.int64, low=0)
    num_columns, first_action, num_actions, explores_columns = saved.tolist()
    width = state["data.inputs"].flatten(1).shape[1]
    if num_columns != width or first_action + num_actions > width:
        raise InvalidInputError(
            f"'table.layout' of the state is {saved.tolist()}, but its inputs have {width} columns"
        )
    layout = TableLayout(num_columns, first_action, num_actions)
    context = layout.num_context
    projection = None
    if PROJECTION in state:
        projection = _floats(state, PROJECTION, (context, None)).to(device)
    directions = context if projection is None else projection.shape[1]
    return TableColumns(
        layout,
        _floats(state, "table.location", (context,)).to(device),
        _floats(state, "table.spread", (context,), low=0.0).to(device),
        projection,
        _floats(state, "table.frequencies", (None, directions)).to(device),
        bool(explores_columns),
    )


def _restored_posterior(
    state: Mapping[str, Tensor],
    columns: TableColumns,
    num_tasks: int,
    device: torch.device,
    exploration_scale: float,
    noise: float,
) -> HeadPosterior:
    size = len(columns.scales(TableScales()))
    one = state["data.inputs"][:1].flatten(1).to(device)
    linear = columns.linear_features(one).shape[1]
    shapes = {
        "covariances": (num_tasks, size, size),
        "moments": (num_tasks, size),
        "mean": (size,),
        "mean_covariance": (size, size),
        "exploration": (num_tasks, linear, linear),
    }
    found = {
        name: _floats(state, f"posterior.{name}", shape).to(device, copy=True)
        for name, shape in shapes.items()
    }
    for name in ("covariances", "exploration"):
        if not bool((found[name].diagonal(dim1=-2, dim2=-1) > 0).all()):
            raise InvalidInputError(f"'posterior.{name}' of the state has no positive diagonal")
    if not (noise > 0 and exploration_scale >= 0):
        raise InvalidInputError("'table.numbers' of the state: the noise must be positive")
    return HeadPosterior(
        CopyOnWriteRows(found["covariances"]),
        found["moments"],
        found["mean"],
        found["mean_covariance"],
        CopyOnWriteRows(found["exploration"]),
        exploration_scale,
        noise,
    )


def _floats(
    state: Mapping[str, Tensor],
    name: str,
    shape: tuple[int | None, ...],
    *,
    low: float = -LARGEST_COMPUTED,
) -> Tensor:
    return validate_state_tensor(
        state, name, shape, dtype=torch.float64, low=low, high=LARGEST_COMPUTED
    )
