"""All reproductions, by name."""

from __future__ import annotations

from collections.abc import Mapping

from gfucb.paper.common import Reproduction
from gfucb.paper.fig1 import FIG1
from gfucb.paper.fig2a import FIG2A
from gfucb.paper.fig2b import FIG2B
from gfucb.paper.fig3 import FIG3
from gfucb.paper.linear_mdp import LINEAR_MDP
from gfucb.paper.lock import LOCK
from gfucb.paper.probe import PROBE

REPRODUCTIONS: Mapping[str, Reproduction] = {
    "fig1": FIG1,
    "fig2a": FIG2A,
    "fig2b": FIG2B,
    "fig3": FIG3,
    "probe": PROBE,
    "lock": LOCK,
    "linear-mdp": LINEAR_MDP,
}
# `gfucb reproduce all` computes the paper's own figures.
PAPER = ("fig1", "fig2a", "fig2b", "fig3", "probe")
