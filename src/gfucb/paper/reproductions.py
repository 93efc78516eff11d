"""The reproductions of this package: each of its packages registers one when it is imported."""

from __future__ import annotations

from pathlib import Path

from gfucb.paper.figure_registry import REPRODUCTIONS, register_reproduction
from gfucb.runs.plugins import import_submodules

__all__ = ["PAPER", "REPRODUCTIONS", "register_reproduction"]

import_submodules("gfucb.paper", [str(Path(__file__).parent)], only_packages=True)

# `gfucb reproduce all` computes the paper's own figures.
PAPER = tuple(name for name, own in REPRODUCTIONS.items() if own.in_paper)
