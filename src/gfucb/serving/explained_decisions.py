"""Predictions and explanations of an agent with names and ids, which change nothing of it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import torch

from gfucb.bandits import GFUCB
from gfucb.bandits.action_predictions import ActionPredictions
from gfucb.bandits.explained_agent import NUM_SAMPLES
from gfucb.bandits.explanations import Explanation
from gfucb.bandits.influences import Influence
from gfucb.core.errors import InvalidInputError
from gfucb.core.log_protocol import DecisionStore
from gfucb.core.log_records import LoggedDecision
from gfucb.core.offered_candidates import is_repeated
from gfucb.core.validation.arrays import ArrayLike
from gfucb.core.validation.bandits import gradients_allowed, validate_action_sets
from gfucb.core.validation.settings import validate_count
from gfucb.serving.catalogues import Catalogue, offered_rows
from gfucb.serving.named_decision import NamedDecision
from gfucb.serving.names import Name, decode_name
from gfucb.serving.operations import GrowTo
from gfucb.serving.rewards import rows_of
from gfucb.serving.row_ids import RowId
from gfucb.serving.runtime import Runtime
from gfucb.serving.table_names import common_names, schema_of, task_names
from gfucb.tables import Schema
from gfucb.tables.frames import TableLike


class ExplainedDecisions:
    """`predict` and `explain` of an `Agent`. They are computed on a snapshot, without the lock."""

    create_tasks: bool
    log: DecisionStore
    _runtime: Runtime

    def predict(
        self,
        candidates: ArrayLike,
        tasks: Iterable[Name] | None = None,
        available: ArrayLike | None = None,
    ) -> ActionPredictions:
        """Mean and interval of every action, without a decision; the arguments of `decide`.

        A task that does not exist yet is predicted as `decide` would add it, but not added.
        Retired tasks are refused.
        """
        given = offered_rows(candidates)
        is_shared = is_repeated(given)
        offered = Catalogue(given[0] if is_shared else given, None)
        return self._predict(offered, is_shared, tasks, len(given), available)

    def predict_from(
        self,
        catalogue: Any,
        tasks: Iterable[Name] | None = None,
        available: ArrayLike | None = None,
    ) -> ActionPredictions:
        """The same for one catalogue that all rows share, see `decide_from`."""
        given = Catalogue.of(catalogue)
        return self._predict(given, True, tasks, None, given.mask(available))

    def predict_table(
        self, table: TableLike, schema: Schema, available: Any = None
    ) -> ActionPredictions:
        """The same for every row of a table, see `decide_table`."""
        schema = schema_of(schema, table, creates_tasks=self.create_tasks)
        offers = schema.offers(table, available)
        with self._runtime.call():
            self._runtime.new_schema(schema)  # one that would misread the table is refused
        tasks = task_names(schema, offers.tasks)
        offered = Catalogue(offers.candidates, common_names(offers))
        return self._predict(offered, False, tasks, len(offers), offers.available)

    def _predict(
        self,
        offered: Catalogue,
        is_shared: bool,
        tasks: Iterable[Name] | None,
        num_rows: int | None,
        available: ArrayLike | None,
    ) -> ActionPredictions:
        with self._runtime.call() as roster:
            texts = roster.encode_tasks(tasks, num_rows)
            new = roster.new_tasks(texts, create=self.create_tasks)
            numbers = roster.numbers.of(roster.task_numbers(texts, new))
            inputs = roster.inputs_of(offered)
            model = self._runtime.model.agent.snapshot()
        GrowTo(max(numbers) + 1).apply(model)
        predict = model.predict_from if is_shared else model.predict
        found = predict(inputs, torch.tensor(numbers), available)
        names = offered.names
        return replace(
            found,
            tasks=tuple(decode_name(text) for text in texts),
            action_names=None if names is None else tuple(decode_name(name) for name in names),
        )

    def explain(
        self, what: NamedDecision | str | Iterable[str], *, num_samples: int = NUM_SAMPLES
    ) -> Explanation:
        """Explain a decision, or some of its rows, by what the agent knows now.

        What was offered and chosen is read from the log. All numbers are those of the model of
        now, also for an old decision, of a retired task too; `mean_at_decision` is that of then.

        Args:
            what: a decision of this agent, its id, or ids of rows of one decision.
            num_samples: how many samples of the same task, and how many of other tasks, are
                listed for each action.
        """
        num_samples = validate_count(num_samples, "num_samples", at_least=0)
        with self._runtime.call() as roster:
            log_rows = list(dict.fromkeys(rows_of(what, self.log, roster)))
            numbers = {number for number, _ in log_rows}
            if len(numbers) != 1:
                raise InvalidInputError(
                    f"explain takes one decision or rows of it, got rows of {len(numbers)} "
                    "decisions; call it for each of them"
                )
            logged = self.log.decision(numbers.pop())
            assert logged is not None  # `rows_of` has found it
            token = roster.token_of(logged.session)
            # Encoded: there may be a million, and few are shown.
            tasks, items = roster.task_texts(), roster.item_texts()
            numbers_of_rows = roster.numbers.of([row.task for row in logged.rows])
            learned = roster.numbers.tasks()
            model = self._runtime.model.agent.snapshot()
        GrowTo(max(numbers_of_rows) + 1).apply(model)

        def named(found: Influence) -> Influence:
            number = found.input
            is_item = isinstance(number, int) and 0 <= number < len(items)
            given = decode_name(items[number]) if is_item else number
            return found._replace(task=decode_name(tasks[learned[found.task]]), input=given)

        rows = [row for _, row in log_rows]
        names = None
        if logged.action_names is not None:
            names = tuple(decode_name(name) for name in logged.action_names)
        return _explained(model, logged, numbers_of_rows, rows, num_samples).named(
            [decode_name(tasks[logged.rows[row].task]) for row in rows],
            names,
            tuple(str(RowId(token, logged.number, row)) for row in rows),
            named,
        )


@gradients_allowed()
def _explained(
    model: GFUCB, logged: LoggedDecision, tasks: list[int], rows: list[int], num_samples: int
) -> Explanation:
    """The explanation of some rows of a decision with these tasks, with numbers for names."""
    sets = validate_action_sets(
        logged.candidates,
        torch.tensor(tasks),
        logged.mask,
        num_tasks=model.num_tasks,
        device=model.device,
    )
    actions = torch.tensor([row.action for row in logged.rows])
    means = [logged.rows[row].mean for row in rows]
    known = [math.nan if mean is None else mean for mean in means]
    return model.explain_sets(sets, actions, num_samples, rows).with_means(
        torch.tensor(known, dtype=torch.float64)
    )
