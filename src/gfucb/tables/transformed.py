"""Tables encoded by a transformer of scikit-learn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from gfucb.core.errors import InvalidInputError
from gfucb.core.validation.arrays import to_tensor
from gfucb.core.validation.settings import validate_methods
from gfucb.tables.frames import TableLike


@dataclass(frozen=True, eq=False)
class Transformed:
    """A fitted transformer, such as a `ColumnTransformer`; its output may be sparse.

    JSON holds the names of the features. A schema that is read from JSON needs the transformer
    again, and refuses one with other features.

    Attributes:
        transformer: an object with `transform` and `get_feature_names_out`.
    """

    transformer: Any
    kind: ClassVar[str] = "transformed"

    def __post_init__(self) -> None:
        validate_methods(self.transformer, "transformer", ("transform", "get_feature_names_out"))
        try:
            self.feature_names  # noqa: B018 - fails if it is not fitted
        except Exception as error:  # of any class of scikit-learn
            raise InvalidInputError(
                f"the transformer must be fitted, for example by transformer.fit(table): {error}"
            ) from error

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Those that the transformer states."""
        return tuple(str(name) for name in self.transformer.get_feature_names_out())

    def encode(self, table: TableLike) -> Tensor:
        """The output of the transformer as float64 [row, feature]."""
        given = self._fitted_columns(table)
        try:
            output = self.transformer.transform(given)
        except Exception as error:  # of any class of scikit-learn
            raise InvalidInputError(
                f"the transformer {type(self.transformer).__name__} cannot encode the table: "
                f"{error}; pass a table like the one it was fitted to, and fit it to columns of "
                "the context only"
            ) from error
        dense = output.toarray() if hasattr(output, "toarray") else output
        encoded = to_tensor(np.asarray(dense), "the output of the transformer").to(torch.float64)
        if encoded.ndim != 2 or not bool(encoded.isfinite().all()):
            raise InvalidInputError(
                "the output of the transformer must be finite numbers [row, feature]; "
                "impute missing values, for example with SimpleImputer"
            )
        return encoded

    def _fitted_columns(self, table: TableLike) -> Any:
        """The columns of the table that the fit had, or the whole table if it had no names."""
        names = getattr(self.transformer, "feature_names_in_", None)
        if names is None:
            return table
        if not hasattr(table, "columns"):
            raise InvalidInputError(
                f"the transformer {type(self.transformer).__name__} was fitted to a data frame and "
                f"needs one, got {type(table).__name__}"
            )
        # A log has action and reward. The table of a decision has not, and a ColumnTransformer
        # that does not use them accepts it.
        found = set(table.columns)
        return table[[name for name in names if name in found]]
