"""Functions of all tasks: one shared representation, one linear head per task."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from gfucb.core.errors import InvalidInputError
from gfucb.core.features import feature_dim_of, features_of
from gfucb.core.protocols import Representation, RepresentationClass
from gfucb.core.validation.record_fields import require_floats
from gfucb.models.dataset import MultitaskDataset
from gfucb.models.heads import HeadStatistics


@dataclass(frozen=True, eq=False)
class HeadFit:
    """What the fit of the heads computed from the data, for reuse.

    It is valid for the representation object, the data object and the number of samples it was
    computed from, see `MultiheadFunction.head_fit_of`.

    Attributes:
        statistics: of all samples.
        features: phi of all samples, [sample, feature], if they are at hand.
    """

    representation: Representation
    data: MultitaskDataset
    num_samples: int
    statistics: HeadStatistics
    features: Tensor | None = None


@dataclass(frozen=True, eq=False)
class MultiheadFunction:
    """f_i(x) = offset + <heads[i], phi(x)>, a member of F^M: the paper's f with M heads.

    Attributes:
        representation: phi, shared by all tasks.
        heads: w_i, [task, feature], float64.
        offset: a constant; with zero heads every value is the offset.
        value_range: (low, high), a range that contains the expected rewards; None if unknown.
        head_fit: what the fit of the heads computed; read it with `head_fit_of`.
    """

    representation: Representation
    heads: Tensor
    offset: float = 0.0
    value_range: tuple[float, float] | None = None
    head_fit: HeadFit | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if not callable(self.representation):
            raise InvalidInputError(
                f"representation must map inputs to features, got {self.representation!r}"
            )
        require_floats(self.heads, "heads", "task", "feature")
        if not isinstance(self.offset, int | float) or not math.isfinite(self.offset):
            raise InvalidInputError(f"offset must be a finite number, got {self.offset!r}")
        if self.value_range is not None and not _is_range(self.value_range):
            raise InvalidInputError(
                f"value_range must be None or (low, high), low < high, got {self.value_range!r}"
            )

    @property
    def num_tasks(self) -> int:
        """Number of heads."""
        return len(self.heads)

    def values(self, inputs: Tensor, tasks: Tensor) -> Tensor:
        """f_tasks(inputs), not clipped: [n, *input], [n] -> [n]."""
        return self.values_of_features(features_of(self.representation, inputs), tasks)

    def values_of_features(self, features: Tensor, tasks: Tensor) -> Tensor:
        """The same from features [..., n, feature]; tasks [n] or broadcastable."""
        return self.offset + (features * self.heads[tasks]).sum(-1)

    def clip(self, values: Tensor) -> Tensor:
        """Values clipped to `value_range`.

        Clipping never leaves a confidence set around a clipped center: it only brings two
        values closer together.
        """
        # Paper: (*) requires |f| <= 1 of every member at every input. We clip the reported values
        # and choose by values that are not clipped, so that saturated bonuses still differ.
        return values if self.value_range is None else values.clamp(*self.value_range)

    def with_heads(self, heads: Tensor) -> MultiheadFunction:
        """The function on the same representation with other heads [task, feature]."""
        return replace(self, heads=heads, head_fit=None)

    def with_statistics(
        self, statistics: HeadStatistics, data: MultitaskDataset, features: Tensor | None = None
    ) -> MultiheadFunction:
        """The same function with the statistics, and maybe features, of all samples of `data`."""
        fit = HeadFit(self.representation, data, len(data), statistics, features)
        return replace(self, head_fit=fit)

    def head_fit_of(self, data: MultitaskDataset) -> HeadFit | None:
        """The record of this function's representation and all samples of `data`, if it has one."""
        fit = self.head_fit
        if fit is None or fit.representation is not self.representation:
            return None
        return fit if fit.data is data and fit.num_samples == len(data) else None


def _is_range(value: object) -> bool:
    return (
        isinstance(value, tuple)
        and len(value) == 2
        and all(isinstance(end, int | float) for end in value)
        and value[0] < value[1]
    )


def prior_function(
    representation_class: RepresentationClass,
    inputs: Tensor,
    *,
    num_tasks: int,
    offset: float,
    value_range: tuple[float, float] | None,
    generator: torch.Generator,
    device: torch.device | str,
) -> MultiheadFunction:
    """The function before any data: the initial representation of the class with zero heads.

    `inputs` [n, *input] give the shape and type of all inputs to come; `generator` draws the
    initial weights.
    """
    representation_class.validate_inputs(inputs)
    representation = representation_class.initial(inputs, generator, device)
    feature_dim = feature_dim_of(representation, inputs)
    heads = torch.zeros(num_tasks, feature_dim, dtype=torch.float64, device=device)
    return MultiheadFunction(representation, heads, offset, value_range)
