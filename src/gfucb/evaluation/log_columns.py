"""Which columns of a table are which part of a log: settings of `gfucb evaluate`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gfucb.tables.frames import RawTable


@dataclass(frozen=True)
class LogColumns:
    """Which columns of a table hold what. All others are the context."""

    action: str = "action"
    """Column with the name of the chosen action."""
    probability: str = "probability"
    """Column with the probability with which the action was drawn."""
    reward: str = "reward"
    """Column of rewards."""
    task: str | None = None
    """Column with the name of the task: the store, the market, the user."""
    available: str | None = None
    """Column with the names of the actions that could be chosen, separated by |."""
    prefix: str | None = None
    """The columns PREFIX + name of an action hold its probability in every row. With them, dr has
    an interval that is valid at all times."""
    ignore: tuple[str, ...] = ()
    """Columns to leave out of the context, such as dates and ids."""

    def roles(self, table: RawTable) -> set[str]:
        """All columns that are not part of the context."""
        named = {self.action, self.probability, self.reward, self.task, self.available}
        own = {name for name in named if name is not None} | set(self.ignore)
        if self.prefix is not None:
            own |= {name for name in table.names if name.startswith(self.prefix)}
        return own
