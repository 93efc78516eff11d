"""Exact least squares over a finite class: try them all."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from gfucb.estimation.profile import best_on, penalised_error
from gfucb.models import FiniteClass, HeadPenalty, MultiheadFunction, MultitaskDataset


@dataclass(frozen=True)
class Exhaustive:
    """The member whose best heads leave the smallest error; the first of equals. Exact.

    Costs one pass over the data and M solves of size k for each member.
    """

    representation_class: FiniteClass

    def __call__(
        self,
        data: MultitaskDataset,
        start: MultiheadFunction,
        penalty: HeadPenalty,
        generator: torch.Generator,
    ) -> MultiheadFunction:
        """Fit every member and return the best function."""
        fits = [
            best_on(member, data, start, penalty) for member in self.representation_class.members
        ]
        return min(fits, key=lambda fit: penalised_error(fit, data, penalty))
