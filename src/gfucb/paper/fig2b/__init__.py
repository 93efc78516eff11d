"""Figure 2(b): exploration bonus of fixed test images against the number of training samples.

The paper reports that the average bonus drops as the training set grows from 10 to 20000 samples.
We measure it for the paper's fine-tuning and for two of our selectors, with the paper's radius,
which grows with t, and with a fixed radius, which isolates the effect of the data.
"""

from gfucb.paper.common import Reproduction
from gfucb.paper.fig2b.analysis import table, verdicts
from gfucb.paper.fig2b.plots import caption, figure
from gfucb.paper.fig2b.sweep import SEEDS, TASK, Sizes, config, jobs
from gfucb.paper.figure_registry import register_reproduction

__all__ = ["FIG2B"]

CHOICES = f"""\
- 20000 samples are more than a run collects (T * M), so the samples are drawn offline: uniformly,
  for ten tasks in turn. Then t in B_t is n / 10. The fixed radius, B_200, isolates the effect of
  the data.
- The paper's network is fitted from scratch at every size, for {Sizes().epochs} epochs or
  {Sizes().gradient_steps} gradient steps, whichever ends first. Our agent learns the same log as it
  grows and refits after every 30% of growth, as it does in a run.
- Bonuses are those of task {TASK} at {Sizes().images} fixed test images, one image per action set.
  Fine-tuning is slow, so it has one seed where our selectors have {len(SEEDS)}, and the fixed
  radius uses a fifth of the images. Its intervals are over images, those of our selectors over
  seeds.
- Bonuses are not clipped, although rewards lie in [0, 1]: a bonus above 1 carries no information.
"""

FIG2B = Reproduction(
    title="Figure 2(b): bonus against samples",
    claim="Figure 2(b): the average bonus of fixed test images drops as the training set grows "
    "from 10 to 20000 samples.",
    jobs=jobs,
    figure=figure,
    caption=caption,
    verdicts=verdicts,
    config=config,
    choices=CHOICES,
    table=table,
    order=3,
    in_paper=True,
)
register_reproduction("fig2b", FIG2B)
