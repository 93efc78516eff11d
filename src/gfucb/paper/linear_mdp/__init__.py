"""Linear MDPs: regret of Algorithm 2 with a shared, unknown representation.

The paper has no experiment with Algorithm 2. We compare it, on ten linear MDPs that share features,
with LSVI-UCB on the true representation and with one agent per task, once with a finite class that
contains the true representation and once with the default, which learns a representation.
"""

from gfucb.paper.common import Reproduction
from gfucb.paper.figure_registry import register_reproduction
from gfucb.paper.linear_mdp.analysis import verdicts
from gfucb.paper.linear_mdp.plots import caption, figure
from gfucb.paper.linear_mdp.sweep import config, jobs

__all__ = ["LINEAR_MDP"]

LINEAR_MDP = Reproduction(
    title="Linear MDPs",
    claim="On ten linear MDPs with a shared, unknown representation, regret is at most 1.5 times "
    "the regret with a known representation, and lower than with independent agents.",
    jobs=jobs,
    figure=figure,
    caption=caption,
    verdicts=verdicts,
    config=config,
    order=7,
)
register_reproduction("linear-mdp", LINEAR_MDP)
