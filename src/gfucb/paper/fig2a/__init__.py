"""Figure 2(a): exploration bonus against error of the fit, at held-out images after 200 rounds.

The paper plots one point per test image and reports that almost all points lie above y = x, so
that the optimistic value exceeds the true mean, and that bonus and error are correlated. We
draw the same plot for the paper's fine-tuning and for our selectors, with the printed radius and
with a calibrated one.
"""

from gfucb.estimation import LogRadius
from gfucb.paper.common import Reproduction
from gfucb.paper.fig2a.analysis import table, verdicts
from gfucb.paper.fig2a.plots import caption, figure
from gfucb.paper.fig2a.sweep import TASK, config, jobs
from gfucb.paper.figure_registry import register_reproduction

__all__ = ["FIG2A"]

CHOICES = f"""\
- All methods use one log: the default agent runs on M = 10 tasks for 200 rounds and collects 2000
  samples with its own policy. Our selectors use the fit of a default agent that learns this log
  round by round; its self-supervision has the chosen images only, since a log has no others. The
  paper's procedure fits its own network to the same samples with Adam, for 200 epochs or until the
  error is twice the noise; the log is learned in parts that double.
- The paper does not say which head is evaluated. Points are those of task {TASK}. The last two
  columns of the table average over all ten tasks, with intervals over seeds, for selectors that
  evaluate all images in one batch.
- B is B_200 = 0.4 log(0.5 * 200 + 2) = {LogRadius()(200):.2f}. *Calibrated*: the log is replayed
  round by round, and each reward is compared with the interval predicted before it was observed.
  The scale is the smallest one with which 80% (95%) of the recent rewards, noise included, fall
  inside the interval. The certified selector uses the scale of the tangent along which it moves.
  Fine-tuning predicts no variance, so it uses the scale of its last layer, refitted whenever the
  log has doubled. The calibrated interval is mean ± scale sqrt(1 + variance) at chosen images. The
  bonus is scale sqrt(variance), and test images are not chosen by the agent.
- The intervals of shares (Clopper and Pearson) and of correlations are over the test images of one
  seed. The claim of the paper, "almost all", is tested as more than 95%.
- Bonuses are not clipped. Fine-tuning needs hundreds of passes over the data per image, so its
  calibrated and literal variants are evaluated on fewer images. *Outside the set*: the squared
  distance of the optimistic function exceeds B. No environment shows the test images.
"""

FIG2A = Reproduction(
    title="Figure 2(a): bonus against error",
    claim="Figure 2(a): at t = 200 the bonus exceeds the error of the fit at almost every test "
    "image, and bonus and error are correlated.",
    jobs=jobs,
    figure=figure,
    caption=caption,
    verdicts=verdicts,
    config=config,
    choices=CHOICES,
    table=table,
    order=2,
    in_paper=True,
)
register_reproduction("fig2a", FIG2A)
