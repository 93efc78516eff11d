"""The registry of reproductions: those of this package, and those that plugins add."""

from __future__ import annotations

from collections.abc import Iterator

from gfucb.paper.common import Reproduction
from gfucb.runs.registry import Registry


class Reproductions(Registry[Reproduction]):
    """Reproductions by name, sorted by their `order`; equal ones in the order of registration."""

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(super().__iter__(), key=lambda name: self[name].order))


REPRODUCTIONS = Reproductions("reproduction")


def register_reproduction(name: str, reproduction: Reproduction) -> Reproduction:
    """Register a figure or claim that `gfucb reproduce NAME` computes; return it."""
    REPRODUCTIONS.register(name, reproduction, origin=reproduction.figure)
    return reproduction
