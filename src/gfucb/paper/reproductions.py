"""The registry of reproductions: those of this package, and those that plugins add."""

from __future__ import annotations

from gfucb.paper.common import Reproduction
from gfucb.paper.fig1 import FIG1
from gfucb.paper.fig2a import FIG2A
from gfucb.paper.fig2b import FIG2B
from gfucb.paper.fig3 import FIG3
from gfucb.paper.linear_mdp import LINEAR_MDP
from gfucb.paper.lock import LOCK
from gfucb.paper.probe import PROBE
from gfucb.runs.registry import Registry

REPRODUCTIONS: Registry[Reproduction] = Registry("reproduction")


def register_reproduction(name: str, reproduction: Reproduction) -> Reproduction:
    """Register a figure or claim that `gfucb reproduce NAME` computes; return it."""
    REPRODUCTIONS.register(name, reproduction, origin=reproduction.figure)
    return reproduction


register_reproduction("fig1", FIG1)
register_reproduction("fig2a", FIG2A)
register_reproduction("fig2b", FIG2B)
register_reproduction("fig3", FIG3)
register_reproduction("probe", PROBE)
register_reproduction("lock", LOCK)
register_reproduction("linear-mdp", LINEAR_MDP)

# `gfucb reproduce all` computes the paper's own figures.
PAPER = ("fig1", "fig2a", "fig2b", "fig3", "probe")
