"""Explanations of decisions: predictions of all actions, and the rewards behind them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor

from gfucb.bandits.action_predictions import ActionPredictions, number_or_none, plain_values
from gfucb.bandits.explanation_figure import draw_explanation
from gfucb.bandits.influences import Influence
from gfucb.core.errors import InvalidInputError
from gfucb.core.optional_packages import optional_package


@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """Why a decision would be made today; made by `explain`.

    All numbers are those of the model of now, which may have learned since the decision; only
    `mean_at_decision` is from then.

    Attributes:
        predictions: of all actions of the rows.
        is_chosen: the chosen action of each row, [row, action].
        ids: of the rows; None without a log.
        mean_at_decision: the mean that was predicted when the action was chosen, [row]; NaN where
            nothing was.
        influences: the samples with the largest weights, by row and action: first those of the
            task of the row, then those of other tasks. Empty for actions that are not available.
        baseline: the mean minus the contributions of all samples, [row, action]: the offset; for
            items also what comes from their prior.
        num_samples: the number of rewards that the model has learned.
        num_fits: the number of its fits.
    """

    predictions: ActionPredictions
    is_chosen: Tensor
    ids: tuple[str, ...] | None
    mean_at_decision: Tensor
    influences: tuple[tuple[tuple[Influence, ...], ...], ...]
    baseline: Tensor
    num_samples: int
    num_fits: int

    def __len__(self) -> int:
        return len(self.predictions)

    def __repr__(self) -> str:
        return f"Explanation({len(self)} rows, {self.num_samples} rewards)"

    def with_means(self, means: Tensor) -> Explanation:
        """The same with the means that were predicted when the actions were chosen, [row]."""
        return replace(self, mean_at_decision=means.detach().cpu())

    def of_actions(self, actions: Tensor) -> Explanation:
        """That of one action in each row with the positions `actions` [row] of these actions.

        Which action is the greedy one is then not known.
        """
        positions = actions.detach().cpu()[:, None]
        return replace(
            self, predictions=replace(self.predictions, actions=positions, is_greedy=None)
        )

    def named(
        self,
        rows: Sequence[Any],
        actions: tuple[Any, ...] | None,
        ids: tuple[str, ...],
        name: Callable[[Influence], Influence],
    ) -> Explanation:
        """The same with names of the tasks of rows, names of actions, and ids.

        `name` replaces numbers by names in an influence.
        """
        predictions = replace(self.predictions, tasks=tuple(rows), action_names=actions)
        influences = tuple(
            tuple(tuple(name(found) for found in of_action) for of_action in of_row)
            for of_row in self.influences
        )
        return replace(self, predictions=predictions, influences=influences, ids=ids)

    def _action_row(self, row: int, column: int) -> dict[str, Any]:
        return {
            **self.predictions.action_row(row, column),
            "is_chosen": bool(self.is_chosen[row, column]),
            "baseline": number_or_none(self.baseline[row, column]),
        }

    def _labels(self, row: int) -> dict[str, Any]:
        ids = {} if self.ids is None else {"id": self.ids[row]}
        return {"row": row, **ids, "task": self.predictions.tasks[row]}

    def rows(self) -> list[dict[str, Any]]:
        """One dict for each available action, for `pandas.DataFrame` or JSON."""
        return [
            {**self._labels(row), **self._action_row(row, column)}
            for row, column in self.predictions.positions()
        ]

    def sample_rows(self) -> list[dict[str, Any]]:
        """One dict for each influential sample of each available action."""
        actions = self.predictions.actions
        return [
            {
                "row": row,
                "action": int(actions[row, column]),
                **found._asdict(),
            }
            for row, column in self.predictions.positions()
            for found in self.influences[row][column]
        ]

    def table(self) -> Any:
        """`rows` as a data frame; needs pandas."""
        return optional_package("pandas", "table()").DataFrame(self.rows())

    def to_dict(self) -> dict[str, Any]:
        """All of it in the types of JSON; names of other types are texts."""
        rows: list[dict[str, Any]] = [
            {
                **self._labels(row),
                "mean_at_decision": number_or_none(self.mean_at_decision[row]),
                "actions": [],
            }
            for row in range(len(self))
        ]
        for row, column in self.predictions.positions():
            samples = [found._asdict() for found in self.influences[row][column]]
            rows[row]["actions"].append({**self._action_row(row, column), "samples": samples})
        return {
            "model": {
                "at": "the time of the explanation, not of the decision",
                "num_samples": self.num_samples,
                "num_fits": self.num_fits,
            },
            "rows": plain_values(rows),
        }

    def figure(self, row: int = 0) -> Any:
        """A matplotlib figure of one row: intervals of its actions, and the largest weights."""
        if isinstance(row, bool) or not isinstance(row, int) or not 0 <= row < len(self):
            raise InvalidInputError(
                f"row must be an integer from 0 to {len(self) - 1}, got {row!r}"
            )
        actions = [action for action in self.rows() if action["row"] == row]
        column = int(self.is_chosen[row].nonzero()[0, 0])
        samples = [found._asdict() for found in self.influences[row][column]]
        return draw_explanation(actions, samples)

    def __str__(self) -> str:
        lines = [f"Explanation by the model of now: {self.num_samples} rewards"]
        for action in self.rows():
            marks = [mark for mark in ("chosen", "greedy") if action[f"is_{mark}"]]
            name = action.get("action_name", action["action"])
            lines.append(
                f"task {action['task']!s:<12} action {name!s:<12} mean {_shown(action['mean'])}"
                f"  interval {_shown(action['lower'])} to {_shown(action['upper'])}"
                f"  {' '.join(marks)}"
            )
        return "\n".join(line.rstrip() for line in lines)


def _shown(number: float | None) -> str:
    return "unknown" if number is None else f"{number:.4g}"
