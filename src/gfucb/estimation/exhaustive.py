"""Exact least squares over a finite class."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from gfucb.core.errors import InvalidInputError
from gfucb.core.protocols import LeastSquares, RepresentationClass
from gfucb.estimation.profile import best_on, penalised_error
from gfucb.models import HeadPenalty, MultiheadFunction, MultitaskDataset


@dataclass(frozen=True)
class Exhaustive(LeastSquares):
    """The member whose best heads have the smallest penalised error; the first of equals. Exact.

    Cost: one pass over the data and M solves of size k for each member.
    """

    representation_class: RepresentationClass

    def __post_init__(self) -> None:
        if not getattr(self.representation_class, "members", None):
            raise InvalidInputError(
                "an exhaustive fit needs a class whose representations can be listed, "
                f"got {self.representation_class!r}"
            )

    def __call__(
        self,
        data: MultitaskDataset,
        start: MultiheadFunction,
        penalty: HeadPenalty,
        generator: torch.Generator,
    ) -> MultiheadFunction:
        """Fit every member and return the best function."""
        # A generator: each fit holds the features of all data, and only the best one stays.
        fits = (
            best_on(member, data, start, penalty)
            for member in self.representation_class.members or ()
        )
        return min(fits, key=lambda fit: penalised_error(fit, data, penalty))
