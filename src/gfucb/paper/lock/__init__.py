"""Combination locks: exploration by Algorithm 2, as printed and repaired, and by the default.

The paper has no experiment with Algorithm 2. As printed, the algorithm backs up the fitted values,
so uncertainty at later stages is not propagated backwards, and it does not reach the goal of a
long lock. With optimistic values backed up it does. The default agent learns abstract states,
also from observations with fresh noise, and needs fewer episodes with more tasks.
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
    "values backed up it does. The default agent does so with observations of fresh noise, and "
    "needs fewer episodes with more tasks.",
    jobs=jobs,
    figure=figure,
    caption=caption,
    verdicts=verdicts,
    config=config,
    order=6,
)
register_reproduction("lock", LOCK)
