"""How bonuses of rarely tried actions grow with the number of rounds."""

from __future__ import annotations

from torch import Tensor


def exploration_rates(variances: Tensor, counts: Tensor) -> Tensor:
    """Multipliers of the squared bonus, for unit variances [row, action], and counts [row].

    They are max(1, log((1 + t) v)), t samples of the task and v in units of the noise. An arm that
    was tried N times has v of about 1 / N, so this is log(t / N), the exploration of KL-UCB+
    (Garivier and Cappe 2011): only its bonus makes a task try an arm without context again.
    """
    return ((1 + counts)[:, None] * variances.clamp_min(0)).log().clamp_min(1)
