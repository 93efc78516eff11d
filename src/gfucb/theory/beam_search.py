"""Beam search for long independent sequences in classes too large for an exact search."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from gfucb.theory.finite_classes import Floats
from gfucb.theory.subset_search import Chain


@dataclass(frozen=True)
class BeamSearch:
    """Extends several chains at once and continues with those that leave most choices.

    The score of a chain is the number of inputs independent of it, plus the share of pairs whose
    sum is below the cut. A little noise breaks ties, so that restarts differ.
    """

    squares: Floats  # [pair, input]
    width: int
    generator: torch.Generator

    def chain(self, cut: float) -> Chain:
        """The longest chain found at `cut`; O(width inputs^2 pairs)."""
        separates = (self.squares >= cut).astype(np.float32)
        chains: list[tuple[int, ...]] = [()]
        choices = (self.squares >= cut).max(axis=0, keepdims=True)
        while choices.any():
            extended = self.distinct_extensions(chains, choices)
            members = np.zeros((len(extended), self.squares.shape[1]))
            for row, chain in enumerate(extended):
                members[row, list(chain)] = 1
            alive = members @ self.squares.T < cut
            # A pair that separates a member of the chain has a sum of at least the cut.
            separated = alive.astype(np.float32) @ separates > 0
            score = separated.sum(axis=1) + alive.mean(axis=1) + self.noise(len(extended))
            best = np.argsort(-score)[: self.width]
            chains, choices = [extended[row] for row in best], separated[best]
        return Chain(chains[0], cut)

    def distinct_extensions(
        self, chains: list[tuple[int, ...]], choices: np.typing.NDArray[np.bool_]
    ) -> list[tuple[int, ...]]:
        """All chains with one more input, one for each set of inputs."""
        rows, inputs = np.nonzero(choices)
        extended = [
            (*chains[row], x) for row, x in zip(rows.tolist(), inputs.tolist(), strict=True)
        ]
        return list({frozenset(chain): chain for chain in extended}.values())

    def noise(self, count: int) -> Floats:
        """Random numbers in [0, 1/2)."""
        return torch.rand(count, generator=self.generator, dtype=torch.float64).numpy() / 2
