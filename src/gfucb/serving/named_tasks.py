"""The tasks of an agent by name: which there are, new ones, retired ones."""

from __future__ import annotations

from gfucb.serving.names import Name
from gfucb.serving.roster import REOPEN, RETIRE, TASKS
from gfucb.serving.runtime import Runtime


class NamedTasks:
    """The members of an `Agent` that concern its tasks."""

    _runtime: Runtime

    @property
    def tasks(self) -> tuple[Name, ...]:
        """The names of all active tasks, in the order in which they were added."""
        with self._runtime.reading():
            return self._runtime.roster.tasks()

    @property
    def retired_tasks(self) -> tuple[Name, ...]:
        """The names of all retired tasks."""
        with self._runtime.reading():
            return self._runtime.roster.tasks(retired=True)

    def add_task(self, name: Name) -> None:
        """Add a task. It starts from the prior over heads that all tasks have learned."""
        with self._runtime.call() as roster:
            self._add_tasks([roster.require_new_task(name)])

    def retire_task(self, name: Name) -> None:
        """Decide no more for a task. Its data still informs all others; late rewards count."""
        self._change_task(RETIRE, name, retired=False)

    def reopen_task(self, name: Name) -> None:
        """Decide again for a retired task, with all that it has learned."""
        self._change_task(REOPEN, name, retired=True)

    def _change_task(self, kind: str, name: Name, *, retired: bool) -> None:
        with self._runtime.call() as roster:
            text = roster.require_task(name, retired=retired)
            with self._runtime.changing() as change:
                change.add(kind, {"name": text})

    def _add_tasks(self, new: list[str]) -> None:
        if new:
            with self._runtime.changing() as change:
                change.add(TASKS, {"names": new})
