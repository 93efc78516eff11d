"""Published or claimed results, made anew by one command each: `gfucb reproduce NAME`."""

from gfucb.experiments.reproductions.driver import (
    Options,
    Piece,
    Reproduction,
    Verdict,
    reproduce,
)
from gfucb.experiments.reproductions.table import REPRODUCTIONS

__all__ = ["REPRODUCTIONS", "Options", "Piece", "Reproduction", "Verdict", "reproduce"]
