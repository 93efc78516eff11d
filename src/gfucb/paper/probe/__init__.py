"""Appendix C.1: accuracy of a linear layer on the frozen representation of a bandit agent.

The paper states, without a figure, that a linear layer on the representation learned by ten tasks
classifies MNIST with over 95% accuracy. We fit the layer to representations of ten tasks, of a
single task, to an untrained network and to raw pixels, with different numbers of labels.
"""

from gfucb.paper.common import Reproduction
from gfucb.paper.figure_registry import register_reproduction
from gfucb.paper.probe.analysis import table, verdicts
from gfucb.paper.probe.plots import caption, figure
from gfucb.paper.probe.sweep import config, jobs

__all__ = ["PROBE"]

CHOICES = """\
- "A simple linear layer" is multinomial logistic regression on standardised features with C = 1,
  fitted to all 60000 training labels (also to 1000 and 100). Accuracy is measured on the 10000 test
  images.
- The representation is frozen after 100, 200, 300 and 600 rounds, which is 1000 to 6000 samples of
  ten tasks with distinct best digits. The single task pays digit / 10 and has one sample per round.
  On some seeds it continues to 6000 rounds, for a comparison at equal samples. The
  network of our agent also learns from candidates that were not chosen (self-supervision).
- The paper's network is fitted, for at most 200 epochs, to the samples that our default agent
  collected, not to samples of its own: all that it knows comes from rewards.
- Raw pixels and the untrained network are references that use no bandit data.
"""

PROBE = Reproduction(
    title="A linear layer on the representation",
    claim="Appendix C.1: a linear layer on the representation learned by ten tasks classifies "
    "MNIST with over 95% accuracy.",
    jobs=jobs,
    figure=figure,
    caption=caption,
    verdicts=verdicts,
    config=config,
    choices=CHOICES,
    table=table,
    order=5,
    in_paper=True,
)
register_reproduction("probe", PROBE)
