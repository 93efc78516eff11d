"""The reproductions there are, by name."""

from __future__ import annotations

from collections.abc import Mapping

from gfucb.experiments.reproductions.driver import Reproduction
from gfucb.experiments.reproductions.fig1 import FIG1
from gfucb.experiments.reproductions.linear_mdp import LINEAR_MDP
from gfucb.experiments.reproductions.lock import LOCK

REPRODUCTIONS: Mapping[str, Reproduction] = {
    "fig1": FIG1,
    "lock": LOCK,
    "linear-mdp": LINEAR_MDP,
}
