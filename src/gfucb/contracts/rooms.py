"""The rooms an agent is built of: fit, confidence set, optimism."""

from __future__ import annotations

from typing import Protocol

import torch

from gfucb.contracts.records import Menu, OptimisticChoice
from gfucb.functions import ConfidenceSet, HeadPenalty, MultiheadFunction, MultitaskDataset


class LeastSquares(Protocol):
    """Fits the representation and the heads to all tasks' data."""

    def __call__(
        self,
        data: MultitaskDataset,
        start: MultiheadFunction,
        penalty: HeadPenalty,
        generator: torch.Generator,
    ) -> MultiheadFunction:
        """Return a member of the class with a small penalised squared error on `data`.

        Its heads are the minimisers for its representation, see `HeadStatistics.heads`.
        `start` is the previous fit: it sets offset and value range, and iterative methods
        begin there. `generator` is the only source of randomness.
        """


class SquaredRadius(Protocol):
    """beta_t, as a function of the round."""

    def __call__(self, round_index: int, /) -> float:
        """Return the squared radius for round t = `round_index`, counted from 1.

        The data of round t are the rewards of rounds 1 .. t - 1.
        """


class OptimismSolver(Protocol):
    """Finds the most hopeful member of a confidence set, jointly over all entries.

    A solver may say by attributes what it wants of the agent: `joint = False` a radius for each
    entry alone, `sketch` statistics of the weights, `perturbation` a fit to perturbed rewards.
    """

    def __call__(self, confidence_set: ConfidenceSet, menu: Menu, /) -> OptimisticChoice:
        """Return f in the set and actions that make sum_entry f_task(x_action) large."""
