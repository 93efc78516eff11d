"""What an agent can choose from, with the names of tasks and actions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from gfucb.core.errors import InvalidInputError
from gfucb.core.records import Decision
from gfucb.core.validation.arrays import to_tensor
from gfucb.tables.labels import shown_names
from gfucb.tables.raw_columns import Label, text_of


@dataclass(frozen=True, eq=False)
class Offers:
    """The arguments of `decide`, and the names of its actions: `agent.decide(*offers)`.

    Attributes:
        candidates: [row, action, *input].
        tasks: [row].
        available: [row, action], or None if all are.
        names: of the actions of each row; rows of the table have their numbers.
    """

    candidates: Tensor
    tasks: Tensor
    available: Tensor | None
    names: Sequence[Sequence[Label]]

    def __len__(self) -> int:
        return len(self.tasks)

    def __iter__(self) -> Iterator[Tensor | None]:
        return iter((self.candidates, self.tasks, self.available))

    def __repr__(self) -> str:
        rows = "1 row" if len(self) == 1 else f"{len(self)} rows"
        return f"Offers({rows} of {self.candidates.shape[1]} actions)"

    def chosen(self, decision: Decision) -> list[Label]:
        """The names of the actions of a decision on all of these rows."""
        actions = getattr(decision, "actions", None)
        if not isinstance(actions, Tensor) or len(actions) != len(self):
            raise InvalidInputError(
                f"these are the offers of {len(self)} rows; pass the decision on all of them"
            )
        return [names[action] for names, action in zip(self.names, actions.tolist(), strict=True)]


def availability(available: Any, names: Sequence[Sequence[Label]]) -> Tensor | None:
    """The mask [row, action] of booleans, or of a list of available names for each row."""
    if available is None:
        return None
    width = max(len(own) for own in names)
    if hasattr(available, "columns"):  # a data frame
        available = _in_order_of_names(available, names)
    rows = available if hasattr(available, "dtype") else _listed(available)
    if isinstance(rows, list) and not all(isinstance(v, bool) for row in rows for v in row):
        return _mask_of_names(rows, names, width)
    mask = to_tensor(rows, "available").cpu()
    if mask.dtype != torch.bool or tuple(mask.shape) != (len(names), width):
        raise InvalidInputError(
            f"available must be booleans [row, action] = {[len(names), width]}, or a list of names "
            f"for each row, got {mask.dtype} of shape {list(mask.shape)}"
        )
    return mask


def _in_order_of_names(frame: Any, names: Sequence[Sequence[Label]]) -> Any:
    """The values of a data frame whose columns are named like the actions, in their order."""
    columns = [text_of(column) for column in frame.columns]
    actions = [text_of(name) for name in names[0]]
    is_numbered = columns == [str(number) for number in range(len(columns))]
    if any(own != names[0] for own in names) or (is_numbered and set(columns) != set(actions)):
        return frame.to_numpy()
    if set(columns) != set(actions) or len(columns) != len(actions):
        raise InvalidInputError(
            "the columns of available must be the names of all actions, "
            f"{shown_names(names[0])}, got {shown_names(list(frame.columns))}"
        )
    return frame.to_numpy()[:, [columns.index(name) for name in actions]]


def _mask_of_names(rows: list[list[Any]], names: Sequence[Sequence[Label]], width: int) -> Tensor:
    if len(rows) != len(names):
        raise InvalidInputError(
            f"available must be a list of names for each of the {len(names)} rows, got {len(rows)}"
        )
    mask = torch.zeros(len(names), width, dtype=torch.bool)
    for index, (row, own) in enumerate(zip(rows, names, strict=True)):
        exact = {text_of(name): number for number, name in enumerate(own)}
        numbers = {text.strip(): number for text, number in exact.items()} | exact
        for name in row:
            text = text_of(name)
            number = numbers.get(text, numbers.get(text.strip()))  # as tables are read
            if number is None:
                raise InvalidInputError(
                    f"available names the action {name!r} in row {index}, which is none of "
                    f"{shown_names(own)}"
                )
            mask[index, number] = True
    return mask


def _listed(available: Any) -> list[list[Any]]:
    """Rows of values; texts and single values are refused."""
    rows = list(available) if hasattr(available, "__iter__") else [available]
    wrong = [row for row in rows if isinstance(row, str) or not hasattr(row, "__iter__")]
    if isinstance(available, str) or wrong:
        raise InvalidInputError(
            "available must be booleans [row, action], or a list of names for each row, got "
            f"{(wrong or [available])[0]!r:.60} for a row"
        )
    return [list(row) for row in rows]
