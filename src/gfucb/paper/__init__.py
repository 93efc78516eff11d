"""The claims of the paper, each reproduced by one command: `gfucb reproduce NAME`."""

from gfucb.paper.common import Job, Options, Reproduction, Verdict
from gfucb.paper.driver import reproduce
from gfucb.paper.page import page_of
from gfucb.paper.reproductions import PAPER, REPRODUCTIONS, register_reproduction

__all__ = [
    "PAPER",
    "REPRODUCTIONS",
    "Job",
    "Options",
    "Reproduction",
    "Verdict",
    "page_of",
    "register_reproduction",
    "reproduce",
]
