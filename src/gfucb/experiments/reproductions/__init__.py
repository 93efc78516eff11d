"""Published or claimed results, made anew by one command each: `gfucb reproduce NAME`."""

from gfucb.experiments.reproductions.driver import (
    Options,
    Piece,
    Reproduction,
    Verdict,
    reproduce,
)
from gfucb.experiments.reproductions.page import page_of
from gfucb.experiments.reproductions.table import PAPER, REPRODUCTIONS

__all__ = [
    "PAPER",
    "REPRODUCTIONS",
    "Options",
    "Piece",
    "Reproduction",
    "Verdict",
    "page_of",
    "reproduce",
]
