"""Decisions for tables and samples from tables, with the names of their tasks and actions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from torch import Tensor

from gfucb.core.errors import InvalidInputError
from gfucb.core.validation.arrays import ArrayLike
from gfucb.serving.catalogues import Catalogue
from gfucb.serving.named_decision import NamedDecision
from gfucb.serving.names import Name
from gfucb.serving.runtime import Runtime
from gfucb.serving.table_names import common_names, schema_of, task_names
from gfucb.tables import Schema
from gfucb.tables.frames import TableLike


class TableCalls(ABC):
    """The members of an `Agent` that concern tables with a schema."""

    create_tasks: bool
    _runtime: Runtime

    def decide_table(
        self, table: TableLike, schema: Schema, available: Any = None
    ) -> NamedDecision:
        """Choose in every row of a table, with the names of its tasks and actions.

        `available` is that of `Schema.offers`. Tasks that the schema does not know are added as in
        `decide`, with `create_tasks`. The log keeps the first schema; one that encodes columns
        otherwise is refused.
        """
        schema = schema_of(schema, table, creates_tasks=self.create_tasks)
        offers = schema.offers(table, available)
        with self._runtime.call() as roster:
            self._runtime.expire_some()
            texts = roster.encode_tasks(task_names(schema, offers.tasks), len(offers))
            offered = Catalogue(offers.candidates, common_names(offers))
            new = self._runtime.new_schema(schema)
            return self._decide(offered, False, texts, offers.available, new)

    def learn_table(self, table: TableLike, schema: Schema, *, source: Name | None = None) -> int:
        """Learn from all rows of a table, or of a CSV file, such as a log; return how many.

        `source` is that of `learn`: rows of a file that was learned before count once.
        """
        schema = schema_of(schema, table, creates_tasks=self.create_tasks)
        tasks, inputs, rewards = schema.samples(table)
        with self._runtime.call():
            new = self._runtime.new_schema(schema)
            return self._learn(task_names(schema, tasks), inputs, rewards, source, new)

    def logged_schema(self, transformer: Any = None) -> Schema:
        """The schema of the first table; a `transformer` of scikit-learn is passed again."""
        with self._runtime.reading():
            text = self._runtime.roster.schema
        if text is None:
            raise InvalidInputError("no table was learned or decided yet, so there is no schema")
        return Schema.from_json(text, transformer)

    @abstractmethod
    def _decide(
        self,
        offered: Catalogue,
        is_shared: bool,
        texts: list[str],
        available: ArrayLike | None,
        schema: str | None = None,
    ) -> NamedDecision:
        """Decide, and keep a schema that the log does not have."""

    @abstractmethod
    def _learn(
        self,
        names: list[Name],
        inputs: ArrayLike | Tensor,
        rewards: ArrayLike | Tensor,
        source: Name | None,
        schema: str | None = None,
    ) -> int:
        """Learn, and keep a schema that the log does not have."""
