"""Which rows of a log rewards refer to, and which of the rewards are new."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from gfucb.core.errors import InvalidInputError
from gfucb.core.log_protocol import DecisionStore
from gfucb.core.log_records import LoggedDecision, RowChange, RowStatus
from gfucb.core.records import Decision
from gfucb.serving.named_decision import NamedDecision
from gfucb.serving.roster import Roster
from gfucb.serving.row_ids import RowId

LogRow = tuple[int, int]
"""The number of a decision in the log, and of a row of it."""
RowState = tuple[RowStatus, float | None]
"""What is known of the reward of a row."""


def rows_of(what: Any, log: DecisionStore, roster: Roster) -> list[LogRow]:
    """The rows of a decision, of the id of a decision or a row, or of a list of ids."""
    if isinstance(what, NamedDecision):
        ids: list[Any] = list(what.ids)
    elif isinstance(what, str):
        ids = [what]
    elif isinstance(what, Decision | bytes):
        raise InvalidInputError(
            "pass a decision of this agent, with ids, an id as text or a list of ids, got "
            f"{what!r:.60}"
        )
    elif isinstance(what, set | frozenset | Mapping):
        raise InvalidInputError(
            f"pass a list of ids: the order of a {type(what).__name__} is not that of other values"
        )
    else:
        try:
            ids = list(what)
        except TypeError:
            raise InvalidInputError(
                f"pass a decision of this agent, an id or a list of ids, got {type(what).__name__}"
            ) from None
    decision_of = cache(log.decision)
    return [row for text in ids for row in _rows_of_id(RowId.of(text), decision_of, roster)]


def _rows_of_id(
    row_id: RowId, decision_of: Callable[[int], LoggedDecision | None], roster: Roster
) -> list[LogRow]:
    session = roster.session_of(row_id.token)
    if session is None:
        raise InvalidInputError(
            f"the id {row_id} is that of a decision of another agent, or of another log"
        )
    decision = decision_of(row_id.decision)
    is_known = decision is not None and decision.session == session
    if decision is None or not is_known or (row_id.row or 0) >= len(decision.rows):
        raise InvalidInputError(f"the id {row_id} is unknown: this agent has made no such decision")
    if row_id.row is not None:
        return [(row_id.decision, row_id.row)]
    return [(row_id.decision, row.row) for row in decision.rows]


def states_of(rows: Sequence[LogRow], log: DecisionStore) -> dict[int, list[RowState]]:
    """What is known of all rows of the decisions that have some of these rows, by decision."""
    return {number: log.row_states(number) for number in dict.fromkeys(n for n, _ in rows)}


def new_rewards(
    rows: Sequence[LogRow], rewards: Sequence[float], log: DecisionStore
) -> list[RowChange]:
    """The rewards that are not known yet. One that contradicts what is known is refused."""
    states = states_of(rows, log)
    found: dict[LogRow, RowChange] = {}
    for (number, row), reward in zip(rows, rewards, strict=True):
        status, known = states[number][row]
        if (number, row) in found:
            status, known = RowStatus.REWARDED, found[number, row].reward
        if status == RowStatus.OPEN:
            found[number, row] = RowChange(number, row, RowStatus.REWARDED, reward)
        elif status != RowStatus.REWARDED:
            raise InvalidInputError(f"row {row} of decision {number} {_WHY_CLOSED[status]}")
        elif known != reward:
            raise InvalidInputError(
                f"row {row} of decision {number} has the reward {known!r} already, got {reward!r}; "
                "a reward is counted once and cannot be changed"
            )
    return list(found.values())


def new_states(rows: Sequence[LogRow], status: RowStatus, log: DecisionStore) -> list[RowChange]:
    """Changes of rows without a reward to another status; others are refused."""
    states = states_of(rows, log)
    found = []
    for number, row in dict.fromkeys(rows):
        before = states[number][row][0]
        if before == status:
            continue
        if before != RowStatus.OPEN:
            raise InvalidInputError(f"row {row} of decision {number} {_WHY_CLOSED[before]}")
        found.append(RowChange(number, row, status))
    return found


_WHY_CLOSED = {
    RowStatus.REWARDED: "has a reward already",
    RowStatus.DEFAULT: "is past its time limit: the default reward was learned",
    RowStatus.EXPIRED: "is past its time limit: nothing can be learned from it any more",
    RowStatus.INACTIVE: "was deactivated",
}
