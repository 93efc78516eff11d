"""Decisions of an agent with names and ids."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from gfucb.core.records import Prediction
from gfucb.core.row_selection import selected_rows
from gfucb.serving.names import Name


@dataclass(frozen=True, eq=False, repr=False)
class NamedDecision:
    """The chosen actions, with the ids to which rewards refer.

    `decision[rows]` is the decision on some of its rows: a number, a list, a slice or a mask. Keep
    the ids and forget the rest: the log holds it.

    Attributes:
        ids: one for each row.
        tasks: the name of the task of each row.
        actions: positions among the actions offered, [row].
        action_names: the names of the chosen actions; None if they have none.
        inputs: the chosen candidates, [row, *input].
        optimistic_values: [row].
        probabilities: with which the actions were chosen, [row].
        prediction: means and unit variances; None before the first reward if the scale of rewards
            is not known.
        action_probabilities: of all actions, [row, action]; None if the choice was not random.
    """

    ids: tuple[str, ...]
    tasks: tuple[Name, ...]
    actions: Tensor
    action_names: tuple[Name, ...] | None
    inputs: Tensor
    optimistic_values: Tensor
    probabilities: Tensor
    prediction: Prediction | None = None
    action_probabilities: Tensor | None = None

    @property
    def id(self) -> str:
        """The id of the whole decision."""
        return self.ids[0].rpartition(".")[0]

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, rows: int | list[int] | slice | Tensor) -> NamedDecision:
        index = selected_rows(rows, len(self))
        chosen = index.tolist()
        names = self.action_names
        return NamedDecision(
            tuple(self.ids[row] for row in chosen),
            tuple(self.tasks[row] for row in chosen),
            self.actions[index],
            None if names is None else tuple(names[row] for row in chosen),
            self.inputs[index],
            self.optimistic_values[index],
            self.probabilities[index],
            self.prediction and self.prediction[index],
            None if self.action_probabilities is None else self.action_probabilities[index],
        )

    def __repr__(self) -> str:
        rows = "1 row" if len(self) == 1 else f"{len(self)} rows"
        return f"NamedDecision({self.id if self.ids else 'none'}, {rows})"
