"""Upper bounds of values that are known to lie in a range."""

from __future__ import annotations

import torch
from torch import Tensor

# The probability that a normal number is at most one standard deviation above its mean.
LEVEL = 0.8413447460685429


def bounded_bonuses(
    values: Tensor, bonuses: Tensor, least: Tensor, limits: tuple[float, float]
) -> Tensor:
    """Bonuses of values that lie in a range, from those of values that may lie anywhere.

    A value is normal with its bonus as standard deviation, so mean plus bonus is its quantile of
    84%. Given that it lies in the range, that quantile is lower near the top, where exploring can
    gain little, and if the bonus is large in comparison with the range. The range limits what was
    only assumed to be possible, and not what rewards have shown: a bonus is never below `least`.
    Nor does the range raise it.

    Args:
        values: means of the candidates, minus infinity if not available, [row, action].
        bonuses: standard deviations, [row, action].
        least: the parts of them that are due to rewards, [row, action].
        limits: the range; a row whose means are outside has a range that contains them.
    """
    low, high = limits
    is_available = values.isfinite()
    highest = values.amax(1, keepdim=True).clamp_min(high)
    means = values.where(is_available, highest)
    lowest = means.amin(1, keepdim=True).clamp_max(low)
    spreads = bonuses.clamp_min(torch.finfo(bonuses.dtype).tiny)
    below = torch.special.ndtr((lowest - means) / spreads)
    above = torch.special.ndtr((highest - means) / spreads)
    found = spreads * torch.special.ndtri(below + LEVEL * (above - below))
    return torch.maximum(found, least).minimum(bonuses)
