"""Models of the expected rewards of all actions, fitted to rows of a log."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from gfucb.bandits import GFUCB
from gfucb.core.action_sets import ActionSets
from gfucb.core.errors import InvalidInputError
from gfucb.core.random import random_stream
from gfucb.core.validation.arrays import to_tensor
from gfucb.core.validation.settings import validate_seed
from gfucb.estimation.reward_scaling import ValueRange
from gfucb.evaluation.logged_decisions import LoggedDecisions

# Rows before the first fit of progressive predictions; later fits follow after each doubling.
FIRST_FIT = 32


class RewardModel(Protocol):
    """Fits a model to some rows of a log and predicts the rewards in others."""

    def __call__(self, train: LoggedDecisions, test: LoggedDecisions) -> Tensor:
        """Return the expected rewards of all actions in the rows of `test`: [row, action]."""


@dataclass(frozen=True)
class GFUCBRewards:
    """The fit of `GFUCB` with its default model for the inputs: tables, ids or images.

    Tasks share what the model learns. Logs without candidates have one weight for each action and
    task.

    Args:
        seed: of the agent that is fitted.
        value_range: the range of expected rewards; "auto" estimates it.
    """

    seed: int = 0
    value_range: ValueRange = "auto"

    def __post_init__(self) -> None:
        validate_seed(self.seed)

    def __call__(self, train: LoggedDecisions, test: LoggedDecisions) -> Tensor:
        """See `RewardModel`."""
        agent = GFUCB(train.num_tasks, seed=self.seed, value_range=self.value_range)
        agent.learn(train.tasks, train.chosen_inputs, train.rewards)
        action_sets = ActionSets(test.candidates, test.tasks, test.available)
        center = agent.confidence_set(action_sets.items).center
        return center.clip(action_sets.values_of(center).detach())


def cross_fitted_values(
    log: LoggedDecisions, model: RewardModel, *, folds: int, seed: int
) -> Tensor:
    """Expected rewards [row, action], each row by a fit to the rows of the other folds.

    Folds are drawn at random. Predictions are independent of the reward of their own row if rows
    are independent of each other.
    """
    if len(log) < 2:
        raise InvalidInputError(
            "the direct method and the doubly robust estimate need at least 2 rows, one to fit a "
            "model and one to predict; choose the estimators ips or snips"
        )
    order = torch.randperm(len(log), generator=random_stream(seed, "folds"))
    values = torch.empty(len(log), log.num_actions, dtype=torch.float64)
    for own in order.tensor_split(min(folds, len(log))):
        is_other = torch.ones(len(log), dtype=torch.bool)
        is_other[own] = False
        values[own] = _predictions(model, log[is_other], log[own])
    return values


def progressive_values(log: LoggedDecisions, model: RewardModel, *, initial: float) -> Tensor:
    """Expected rewards [row, action], each row by a fit to earlier rows only.

    Fits follow after 32, 64, 128 .. rows; the first 32 rows have the value `initial`. A prediction
    depends on the past only, as confidence sequences require, also in logs of agents that learn.
    """
    values = torch.full((len(log), log.num_actions), float(initial), dtype=torch.float64)
    for start, stop in _doublings(len(log)):
        values[start:stop] = _predictions(model, log[:start], log[start:stop])
    return values


def _doublings(rows: int) -> Iterator[tuple[int, int]]:
    start = FIRST_FIT
    while start < rows:
        yield start, min(2 * start, rows)
        start *= 2


def _predictions(model: RewardModel, train: LoggedDecisions, test: LoggedDecisions) -> Tensor:
    """Predictions of a model, checked and finite; unavailable actions have the value 0."""
    values = to_tensor(model(train, test), "the values of the reward model").double().cpu()
    if tuple(values.shape) != (len(test), test.num_actions):
        raise InvalidInputError(
            "a reward model must return values of shape [row, action] = "
            f"{[len(test), test.num_actions]}, got {list(values.shape)}"
        )
    values = values.masked_fill(~test.available, 0.0)
    if not bool(values.isfinite().all()):
        raise InvalidInputError(
            "the reward model predicts values that are not finite; rescale inputs or rewards, or "
            "choose the estimators ips or snips"
        )
    return values
