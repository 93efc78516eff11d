"""Figure 3: class kernels of the representations learned by ten tasks and by a single task.

The paper averages inner products of features over pairs of digits. The kernel of ten tasks has a
strong diagonal, and the kernel of a single task does not separate digits. We measure the
diagonal by its contrast and the separation by nearest-class-mean accuracy, for our default
network and for the paper's network.
"""

from gfucb.paper.common import Reproduction
from gfucb.paper.fig3.analysis import verdicts
from gfucb.paper.fig3.plots import caption, figure
from gfucb.paper.fig3.sweep import config, jobs
from gfucb.paper.figure_registry import register_reproduction

__all__ = ["FIG3"]

CHOICES = """\
- phi is the network without its heads after T = 600 rounds: 6000 samples for ten tasks, 600 for a
  single task. The single task pays digit / 10. The ten tasks pay permutations of it with distinct
  best digits. The network also learns from candidates that were not chosen (self-supervision).
- Features are scaled to length one, which the paper's network does itself and our default network
  does not. The map is C(i, j) of Appendix C.1 on all test images, for the first seed.
- *Contrast* is our measure of a strong diagonal: the mean of the diagonal minus the mean absolute
  value off the diagonal. It is 1 when the images of a digit have equal features and different
  digits have orthogonal features. It is 0 when all images have equal features. *Nearest class
  mean* uses class means of training images.
- The paper's network is fitted, for at most 200 epochs, to the samples that our default agent
  collected, not to samples of its own.
"""

FIG3 = Reproduction(
    title="Figure 3: digits in the learned representation",
    claim="Figure 3: the representation learned by ten tasks has a kernel with a strong diagonal; "
    "the representation learned by a single task does not separate digits.",
    jobs=jobs,
    figure=figure,
    caption=caption,
    verdicts=verdicts,
    config=config,
    choices=CHOICES,
    order=4,
    in_paper=True,
)
register_reproduction("fig3", FIG3)
