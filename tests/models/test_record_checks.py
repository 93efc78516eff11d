"""Records of models refuse wrong types and shapes where they are built."""

from dataclasses import replace

import pytest
import torch
from torch import nn

from gfucb.core.errors import InvalidInputError
from gfucb.environments import SyntheticBandit
from gfucb.environments.synthetic_bandit import finite_bandit
from gfucb.models import (
    ConfidenceSet,
    HeadEllipsoid,
    IdentityRepresentation,
    LinearRepresentation,
    MultiheadFunction,
    MultitaskDataset,
    NeuralRepresentation,
)
from gfucb.models.copy_on_write import CopyOnWriteRows

FUNCTION = MultiheadFunction(IdentityRepresentation(), torch.zeros(2, 3).double())
DATA, OTHER = (MultitaskDataset(tasks, (3,), torch.float32) for tasks in (2, 3))
FACTORS = CopyOnWriteRows(torch.eye(3).double().expand(2, 3, 3))
ELLIPSOID = HeadEllipsoid(FUNCTION.heads, FACTORS, 1.0)
SET = ConfidenceSet(FUNCTION, DATA, 1.0)
BANDIT = finite_bandit(num_tasks=2)


@pytest.mark.parametrize(
    ("record", "changes", "message"),
    [
        (FUNCTION, {"representation": 3}, "representation must map inputs to features, got 3"),
        (
            FUNCTION,
            {"heads": [[1.0]]},
            r"of shape \[task, feature\], got list",
        ),
        (FUNCTION, {"heads": torch.zeros(3)}, r"heads must be floats .* of shape \[3\]"),
        (FUNCTION, {"heads": torch.zeros(2, 3).long()}, "heads must be floats .* torch.int64"),
        (FUNCTION, {"offset": "0"}, "offset must be a finite number, got '0'"),
        (FUNCTION, {"offset": float("nan")}, "offset must be a finite number, got nan"),
        (FUNCTION, {"value_range": (1.0, 0.0)}, "value_range must be None or"),
        (FUNCTION, {"value_range": 1.0}, "value_range must be None or"),
        (ELLIPSOID, {"centers": torch.zeros(3)}, r"centers must be floats .* of shape \[3\]"),
        (ELLIPSOID, {"factors": torch.eye(3)}, "factors must be a CopyOnWriteRows, got Tensor"),
        (ELLIPSOID, {"centers": torch.zeros(2, 4)}, r"of the centers \[2, 4\], got \[2, 3, 3\]"),
        (ELLIPSOID, {"squared_radius": -1.0}, "squared_radius must be finite and not negative"),
        (ELLIPSOID, {"squared_radius": float("nan")}, "squared_radius must be finite"),
        (ELLIPSOID, {"norm_bound": 0.0}, "norm_bound must be None or a number above 0, got 0.0"),
        (SET, {"center": None}, "center must be a MultiheadFunction, got NoneType"),
        (SET, {"data": torch.zeros(3)}, "data must be a MultitaskDataset, got Tensor"),
        (
            SET,
            {"data": OTHER},
            "2 heads, but .* 3 tasks",
        ),
        (SET, {"squared_radius": "1"}, "squared_radius must be finite .* got '1'"),
        (SET, {"ridge": None}, "ridge must be finite and not negative, got None"),
        (SET, {"head_norm_bound": "1"}, "head_norm_bound must be None or a number above 0"),
        (LinearRepresentation(torch.eye(2)), {"matrix": torch.zeros(2)}, "matrix must be floats"),
        (NeuralRepresentation(nn.ReLU()), {"module": torch.relu}, "module must be a Module"),
        (NeuralRepresentation(nn.ReLU()), {"normalisation": "l3"}, "normalisation must be one of"),
        (BANDIT, {"true_function": None}, "true_function must be a MultiheadFunction"),
        (BANDIT, {"num_tasks": 3}, "a head for each of 3 tasks, got 2"),
        (BANDIT, {"num_actions": 0}, "num_actions must be an integer of at least 1"),
        (BANDIT, {"input_dim": 2.5}, "input_dim must be an integer"),
        (BANDIT, {"true_function": FUNCTION}, "heads of 3 numbers for 6 features"),
    ],
)
def test_wrong_types_and_shapes_are_refused(record, changes, message):
    with pytest.raises(InvalidInputError, match=message):
        replace(record, **changes)


def test_the_records_themselves_are_accepted():
    for record in (FUNCTION, ELLIPSOID, SET, BANDIT):
        assert type(replace(record)) is type(record)
    assert isinstance(BANDIT, SyntheticBandit)
