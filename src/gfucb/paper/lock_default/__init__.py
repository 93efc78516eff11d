"""Combination locks with the default agent, to replace `gfucb.paper.lock` when it has been run.

The paper has no experiment with Algorithm 2. As printed, the algorithm backs up the fitted values,
so uncertainty at later stages is not propagated backwards, and it does not reach the goal of a
long lock. With optimistic values backed up it does. The default agent learns abstract states,
also from observations with fresh noise, and needs fewer episodes with more tasks.
"""

from gfucb.paper.common import Reproduction
from gfucb.paper.lock_default.analysis import verdicts
from gfucb.paper.lock_default.plots import caption, figure
from gfucb.paper.lock_default.sweep import config, jobs

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
