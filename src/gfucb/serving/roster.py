"""Who takes part: tasks and items by name, retired tasks, and the sessions of an agent."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor

from gfucb.core.errors import GFUCBWarning, InvalidInputError
from gfucb.core.log_records import LogEvent
from gfucb.serving.catalogues import Catalogue
from gfucb.serving.names import Name, NameTable, decode_name, encode_name, name_list
from gfucb.serving.task_numbers import TaskNumbers

# The kinds of events that change a roster.
OPEN, TASKS, RETIRE, REOPEN, ITEMS = "open", "tasks", "retire", "reopen", "items"
NUMBERS = "numbers"  # tasks that get a number of the model, with their first rewards
SCHEMA = "schema"  # of tables: the first one that was used
KINDS = (OPEN, TASKS, RETIRE, REOPEN, ITEMS, NUMBERS, SCHEMA)


class Roster:
    """Names and sessions of an agent; only events change it."""

    def __init__(self) -> None:
        self._tasks = NameTable()
        self._items = NameTable()
        self.numbers = TaskNumbers()
        self._retired: set[str] = set()
        self._tokens: dict[str, int] = {}
        self.schema: str | None = None

    def apply(self, event: LogEvent) -> None:
        """Change the roster as an event says; other events change nothing."""
        detail = event.detail
        if event.kind == OPEN:
            self._tokens[detail["token"]] = event.number
        elif event.kind == TASKS:
            before = len(self._tasks)
            self._tasks.add(detail["names"])
            if "num_tasks" in detail:  # before version 3 tasks got their numbers at once
                self.numbers.add(range(before, len(self._tasks)))
        elif event.kind == NUMBERS:
            self.numbers.add(detail["tasks"])
        elif event.kind == ITEMS:
            self._items.add(detail["names"])
        elif event.kind == RETIRE:
            self._retired.add(detail["name"])
        elif event.kind == REOPEN:
            self._retired.discard(detail["name"])
        elif event.kind == SCHEMA:
            self.schema = detail["schema"]

    @property
    def num_tasks(self) -> int:
        """How many tasks were ever added."""
        return len(self._tasks)

    @property
    def num_active(self) -> int:
        """How many tasks there are without the retired ones."""
        return len(self._tasks) - len(self._retired)

    def tasks(self, *, retired: bool = False) -> tuple[Name, ...]:
        """The names of all active tasks, or of all retired ones, in the order they were added."""
        return tuple(
            decode_name(text) for text in self._tasks.texts() if (text in self._retired) == retired
        )

    def session_of(self, token: str) -> int | None:
        """The event with which the session of a token began; None for a token of another agent."""
        return self._tokens.get(token)

    def token_of(self, session: int) -> str:
        """The token of the session that began with this event."""
        return next(token for token, event in self._tokens.items() if event == session)

    def task_texts(self) -> list[str]:
        """The encoded names of all tasks, active or retired, by number."""
        return self._tasks.texts()

    def item_texts(self) -> list[str]:
        """The encoded names of all items without inputs, by number."""
        return self._items.texts()

    def encode_tasks(self, names: Any, num_rows: int | None) -> list[str]:
        """The encoded name of the task of each row; by default all active tasks, in order.

        Without `num_rows` any number of rows will do, but for none.
        """
        if names is None:
            texts = [text for text in self._tasks.texts() if text not in self._retired]
            if not texts:
                raise InvalidInputError(
                    "this agent has no active tasks; pass the name of the task of each row as tasks"
                )
            if num_rows is not None and len(texts) != num_rows:
                raise InvalidInputError(
                    f"without tasks there is one row for each of the {len(texts)} active tasks, "
                    f"in order, but there are {num_rows} rows; pass the name of the task of each "
                    "row as tasks"
                )
            return texts
        texts = [encode_name(name) for name in name_list(names)]
        if num_rows is None and not texts:
            raise InvalidInputError("tasks must have at least one name, got none")
        if num_rows is not None and len(texts) != num_rows:
            raise InvalidInputError(
                f"tasks must have one name for each of the {num_rows} rows, got {len(texts)}"
            )
        return texts

    def new_tasks(
        self, texts: Sequence[str], *, create: bool, accepts_retired: bool = False
    ) -> list[str]:
        """Those of the encoded names that are new; retired ones, and new ones, may be refused."""
        new = [text for text in dict.fromkeys(texts) if text not in self._tasks]
        if new and not create:
            raise InvalidInputError(
                f"there is no task {decode_name(new[0])!r}; add it with add_task, or build the "
                "agent with create_tasks=True"
            )
        for text in texts:
            if text in self._retired and not accepts_retired:
                raise InvalidInputError(
                    f"the task {decode_name(text)!r} is retired; reopen it with reopen_task"
                )
        self._warn_of_spaces(new)
        return new

    def missing_tasks(self, names: Iterable[Name]) -> list[str]:
        """The encoded names of those tasks that were never added."""
        texts = dict.fromkeys(encode_name(name) for name in names)
        new = [text for text in texts if text not in self._tasks]
        self._warn_of_spaces(new)
        return new

    def _warn_of_spaces(self, new: Sequence[str]) -> None:
        """Name the first new task that is another one with spaces around it.

        They stay two tasks: a name is what the program says.
        """
        names = (name for name in map(decode_name, new) if isinstance(name, str))
        for name in (name for name in names if name != name.strip() != ""):
            other = encode_name(name.strip())
            if other in self._tasks or other in new:
                warnings.warn(
                    f"{name!r} and {name.strip()!r} are two tasks, which learn apart. If they are "
                    "one, pass names without the spaces around them, as gfucb.tables reads them",
                    GFUCBWarning,
                    stacklevel=2,
                )
                return

    def numbers_detail(self, tasks: Iterable[int]) -> dict[str, Any] | None:
        """The detail of the event that gives numbers to those of the tasks without; None if none.

        The event comes before the one with the first rewards of the tasks, in the same order.
        """
        missing = self.numbers.missing(tasks)
        num_tasks = len(self.numbers) + len(missing)
        return {"tasks": missing, "num_tasks": num_tasks} if missing else None

    def new_items(self, texts: Sequence[str] | None) -> list[str]:
        """Those of the encoded names of items that are new."""
        return [text for text in texts or () if text not in self._items]

    def inputs_of(self, offered: Catalogue) -> Tensor:
        """The inputs of a catalogue; those of items without inputs are their numbers."""
        if offered.inputs is not None:
            return offered.inputs
        names = offered.names or ()
        return torch.tensor(self._items.numbers(names, self.new_items(names)))

    def require_task(self, name: Any, *, retired: bool) -> str:
        """The encoded name of a task that is, or is not, retired."""
        text = encode_name(name)
        if text not in self._tasks:
            raise InvalidInputError(f"there is no task {name!r}; see agent.tasks")
        if (text in self._retired) != retired:
            state = "not retired" if retired else "retired already"
            raise InvalidInputError(f"the task {name!r} is {state}")
        return text

    def require_new_task(self, name: Any) -> str:
        """The encoded name of a task that does not exist."""
        text = encode_name(name)
        if text in self._retired:
            raise InvalidInputError(
                f"the task {name!r} was retired, and names are not used twice; "
                "reopen it with reopen_task"
            )
        if text in self._tasks:
            raise InvalidInputError(f"there is a task {name!r} already")
        return text

    def task_numbers(self, texts: Sequence[str], new: Sequence[str]) -> list[int]:
        """The number of each encoded name among all, where `new` ones get the next numbers."""
        return self._tasks.numbers(texts, new)
