"""Combination locks: exploration by Algorithm 2, as printed and with optimistic backups.

The paper has no experiment with Algorithm 2. As printed, the algorithm backs up the fitted values,
so uncertainty at later stages is not propagated backwards, and it does not reach the goal of a
long lock. Our default backs up the optimistic values. With rich observations, tasks that share a
representation need fewer episodes.
"""

from gfucb.paper.common import Reproduction
from gfucb.paper.figure_registry import register_reproduction
from gfucb.paper.lock.analysis import verdicts
from gfucb.paper.lock.plots import caption, figure
from gfucb.paper.lock.sweep import config, jobs

__all__ = ["LOCK"]

LOCK = Reproduction(
    title="Algorithm 2 on combination locks",
    claim="On a combination lock Algorithm 2 as printed does not reach the goal. With optimistic "
    "values backed up it does, and with rich observations tasks that share a representation need "
    "fewer episodes.",
    jobs=jobs,
    figure=figure,
    caption=caption,
    verdicts=verdicts,
    config=config,
    order=6,
)
register_reproduction("lock", LOCK)
