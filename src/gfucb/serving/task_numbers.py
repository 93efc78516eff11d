"""Which number each named task has in the model: tasks without data have none and cost nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


class TaskNumbers:
    """Numbers of tasks in the model, by their number among all names.

    A task gets a number with its first reward. All tasks without data are alike, so a decision for
    some of them uses the numbers after those in use, and the model has few tasks more than there
    are tasks with data.
    """

    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._numbers)

    def add(self, tasks: Iterable[int]) -> None:
        """Give the next numbers to tasks that have none."""
        for task in tasks:
            self._numbers.setdefault(task, len(self._numbers))

    def missing(self, tasks: Iterable[int]) -> list[int]:
        """Those of the tasks that have no number, each once, in order."""
        return [task for task in dict.fromkeys(tasks) if task not in self._numbers]

    def of(self, tasks: Sequence[int]) -> list[int]:
        """The numbers of tasks; those without one get the next ones, for this call.

        These are the numbers that `add` would give to the `missing` ones.
        """
        new = {task: len(self) + index for index, task in enumerate(self.missing(tasks))}
        return [new[task] if task in new else self._numbers[task] for task in tasks]

    def tasks(self) -> list[int]:
        """The tasks with numbers, by number."""
        return list(self._numbers)
