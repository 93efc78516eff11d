"""Published or claimed results, made anew by one command each: `gfucb reproduce NAME`."""

from gfucb.paper.driver import (
    Job,
    Options,
    Reproduction,
    Verdict,
    reproduce,
)
from gfucb.paper.page import page_of
from gfucb.paper.table import PAPER, REPRODUCTIONS

__all__ = [
    "PAPER",
    "REPRODUCTIONS",
    "Job",
    "Options",
    "Reproduction",
    "Verdict",
    "page_of",
    "reproduce",
]
