"""A fit."""

from dataclasses import dataclass

from gfucb.estimation import best_on
from gfucb.runs import register_fit


@dataclass(frozen=True)
class KeepRepresentation:
    def __call__(self, data, start, penalty, generator):
        return best_on(start.representation, data, start, penalty)


@register_fit("heads-only", description="Fits the heads and leaves the network as it is.")
def heads_only(config):
    return KeepRepresentation()
