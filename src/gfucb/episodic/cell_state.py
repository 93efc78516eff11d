"""The saved state of the default episodic agent: transitions, and what cells follow from."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from gfucb.core.errors import InvalidInputError
from gfucb.core.nested import below, with_prefix
from gfucb.core.validation.arrays import LARGEST_INPUT
from gfucb.core.validation.settings import LARGEST_REWARD
from gfucb.core.validation.states import validate_state_names, validate_state_tensor
from gfucb.episodic.cell_decoder import DistinctCells
from gfucb.episodic.cell_model import CellModel
from gfucb.episodic.distinct_rows import Integers
from gfucb.episodic.input_layout import InputLayout
from gfucb.episodic.observation_table import ObservationTable

SHARED, ACTIONS = "layout.shared", "layout.actions"
FITS, FIT_SIZES = "fits", "fit_sizes"
MODEL_NAMES = (SHARED, ACTIONS, FITS, FIT_SIZES)
_COLUMNS = ("tasks", "key_indices", "actions", "next_observations")


def model_state(model: CellModel) -> dict[str, Tensor]:
    """The model as named tensors."""
    layout = model.layout
    tables = [np.zeros((model.num_actions, 0))] if layout.actions is None else [layout.actions]
    tensors = {
        SHARED: torch.from_numpy(layout.shared.copy()),
        ACTIONS: torch.from_numpy(tables[0].copy()),
        FITS: torch.tensor([model.num_fits, _fit_kind(model), _layout_kind(layout)]),
        FIT_SIZES: torch.tensor(model.fit_sizes),
    }
    for stage, (table, own) in enumerate(zip(model.tables, model.stages, strict=True)):
        columns = {name: getattr(table, name) for name in (*_COLUMNS, "rewards")}
        columns |= {"keys": table.keys.rows, "observations": table.observations.rows}
        columns["cells"] = own.cells
        saved = {name: torch.from_numpy(column.copy()) for name, column in columns.items()}
        tensors |= with_prefix(f"{stage}/", saved)
    return tensors


def restored_model(
    state: Mapping[str, Tensor], num_tasks: int, horizon: int, seed: int
) -> CellModel:
    """The model with this state, after a check of all its tensors."""
    shared = validate_state_tensor(state, SHARED, [None], dtype=torch.bool)
    table = validate_state_tensor(
        state, ACTIONS, [None, None], dtype=torch.float64, low=-LARGEST_INPUT, high=LARGEST_INPUT
    )
    fits = validate_state_tensor(state, FITS, [3], dtype=torch.int64, low=0)
    sizes = validate_state_tensor(state, FIT_SIZES, [horizon], dtype=torch.int64, low=0)
    layout, num_actions = _restored_layout(int(fits[2]), shared, table), len(table)
    may_share = horizon > 1 and layout.is_factored and bool(sizes.sum())
    if fits[1] > 3 or (fits[1] > 1 and not may_share):
        raise InvalidInputError(f"{FITS!r} of the state names no decoder of its observations")
    stages = [below(f"{stage}/", state) for stage in range(horizon)]
    keys = stages[0].get("keys", torch.zeros(0))
    if not isinstance(keys, Tensor) or keys.dtype not in (torch.float32, torch.float64):
        raise InvalidInputError("'0/keys' of the state must be a tensor of floats")
    model = CellModel(layout, horizon, num_actions, keys.numpy().dtype, seed)
    cells = []
    for stage, own in enumerate(stages):
        following = stages[stage + 1] if stage + 1 < horizon else {}
        num_next = len(following.get("observations", ()))
        _restore_table(model.tables[stage], own, num_tasks, num_actions, num_next, keys.dtype)
        cells.append(_cells(own, len(model.tables[stage].keys)))
    model.num_fits = int(fits[0])
    model.fit_is_recurrent, model.fit_shares_stages = bool(fits[1] % 2), int(fits[1]) > 1
    model.fit_sizes = [int(size) for size in sizes]
    if any(n > len(table.keys) for n, table in zip(model.fit_sizes, model.tables, strict=True)):
        raise InvalidInputError(f"{FIT_SIZES!r} of the state are larger than its tables")
    decoder = model.fitted() if model.num_fits else DistinctCells(model.tables)
    model.use_decoder(decoder, cells)
    for stage, saved in enumerate(cells):
        follows = np.array_equal(model.stages[stage].cells, saved)
        if follows and model.num_shared:
            rows, number = model.tables[stage].keys.rows, model.num_shared
            follows = np.array_equal(model.decoder.find(stage, rows, number), saved)
        if not follows:
            raise InvalidInputError(
                f"'{stage}/cells' of the state do not follow from its observations. The state was "
                "changed"
            )
    return model


def _fit_kind(model: CellModel) -> int:
    """1 if observations recurred at the last fit, and 2 more if stages share their cells."""
    return 2 * model.fit_shares_stages + model.fit_is_recurrent


def _layout_kind(layout: InputLayout) -> int:
    """0 for inputs of pairs, 1 for observation and action, 2 for their products."""
    return 2 if layout.is_product else int(layout.is_factored)


def _restored_layout(kind: int, shared: Tensor, table: Tensor) -> InputLayout:
    number = len(table)
    columns = {0: table.shape[1], 1: int((~shared).sum()), 2: 0}
    is_whole = kind != 2 or (number > 1 and len(shared) % number == 0)
    if not number or not is_whole or columns.get(kind) != table.shape[1]:
        raise InvalidInputError(f"{ACTIONS!r} and {SHARED!r} of the state do not fit together")
    actions = table.numpy().copy() if kind == 1 else None
    return InputLayout(shared.numpy().copy(), actions, is_product=kind == 2)


def _restore_table(
    table: ObservationTable,
    state: Mapping[str, Tensor],
    num_tasks: int,
    num_actions: int,
    num_next: int,
    dtype: torch.dtype,
) -> None:
    """Fill a table from its saved tensors."""
    validate_state_names(state, [*_COLUMNS, "rewards", "keys", "observations", "cells"])
    length, per_observation = table.keys.rows.shape[1], table.observations.rows.shape[1]
    keys = validate_state_tensor(
        state, "keys", [None, length], dtype=dtype, low=-LARGEST_INPUT, high=LARGEST_INPUT
    )
    observations = validate_state_tensor(
        state, "observations", [None, per_observation], dtype=torch.int64, low=0, high=len(keys) - 1
    )
    table.keys.add(keys.numpy())
    table.observations.add(observations.numpy())
    if len(table.keys) != len(keys) or len(table.observations) != len(observations):
        raise InvalidInputError("the state holds an observation twice")
    rewards = validate_state_tensor(
        state, "rewards", [None], dtype=torch.float64, low=-LARGEST_REWARD, high=LARGEST_REWARD
    )
    highs = (num_tasks - 1, len(keys) - 1, num_actions - 1, num_next - 1)
    columns = [
        validate_state_tensor(
            state,
            name,
            [len(rewards)],
            dtype=torch.int64,
            low=-1 if name == "next_observations" else 0,
            high=high,
        ).numpy()
        for name, high in zip(_COLUMNS, highs, strict=True)
    ]
    tasks, key_indices, actions, following = columns
    table.add_transitions(tasks, key_indices, actions, rewards.numpy(), following)


def _cells(state: Mapping[str, Tensor], num_keys: int) -> Integers:
    cells = validate_state_tensor(state, "cells", [num_keys], dtype=torch.int64, low=0)
    return np.asarray(cells.numpy().copy())
