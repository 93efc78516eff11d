"""From a decision of the model to what the log stores, and to what the caller gets."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from gfucb.bandits import GFUCB
from gfucb.core.log_protocol import DecisionStore
from gfucb.core.log_records import LoggedDecision, LoggedRow
from gfucb.core.records import Decision
from gfucb.core.validation.arrays import to_tensor
from gfucb.serving.named_decision import NamedDecision
from gfucb.serving.names import decode_name
from gfucb.serving.opening import Session
from gfucb.serving.row_ids import RowId


def logged_decision(
    log: DecisionStore,
    session: Session,
    agent: GFUCB,
    decision: Decision,
    tasks: Sequence[int],
    action_names: tuple[str, ...] | None,
    inputs: Tensor,
    is_shared: bool,
    available: Any,
) -> LoggedDecision:
    """The record of a decision that the agent has just made, with the next number.

    `tasks` are those of the rows by the position of their names; the model has other numbers.
    """
    drawn = decision.action_probabilities
    return LoggedDecision(
        log.last_decision() + 1,
        session.event,
        log.last_event()[0],
        log.clock(),
        inputs,
        is_shared,
        None if available is None else to_tensor(available, "available").cpu(),
        action_names,
        _rows(agent, decision, tasks),
        None if drawn is None else drawn.cpu(),
        decision.monte_carlo_samples,
    )


def _rows(agent: GFUCB, decision: Decision, tasks: Sequence[int]) -> tuple[LoggedRow, ...]:
    actions = decision.actions.tolist()
    # SQLite stores -0.0 as 0.0.
    values = (decision.optimistic_values + 0.0).tolist()
    predictions: list[tuple[float, ...] | tuple[None, ...]] = [(None,) * 4] * len(tasks)
    selection = agent.last_selection
    if decision.prediction is not None and selection is not None:
        means = (decision.prediction.mean + 0.0).tolist()
        variances = (decision.prediction.variance + 0.0).tolist()
        predictions = []
        for mean, variance in zip(means, variances, strict=True):
            half = math.sqrt(selection.squared_radius * variance)
            predictions.append((mean, variance, mean - half, mean + half))
    drawn = decision.probabilities
    probabilities = [1.0] * len(tasks) if drawn is None else drawn.tolist()
    chosen = zip(tasks, actions, probabilities, values, predictions, strict=True)
    return tuple(
        LoggedRow(row, task, action, probability, value, *prediction)
        for row, (task, action, probability, value, prediction) in enumerate(chosen)
    )


def named_decision(
    token: str, logged: LoggedDecision, decision: Decision, tasks: list[str]
) -> NamedDecision:
    """The decision with names and ids; `tasks` are the encoded names of its tasks."""
    names = logged.action_names
    actions = [row.action for row in logged.rows]
    return NamedDecision(
        tuple(str(RowId(token, logged.number, row.row)) for row in logged.rows),
        tuple(decode_name(text) for text in tasks),
        decision.actions,
        None if names is None else tuple(decode_name(names[action]) for action in actions),
        decision.inputs,
        decision.optimistic_values,
        torch.tensor([row.probability for row in logged.rows], dtype=torch.float64),
        decision.prediction,
        decision.action_probabilities,
    )
