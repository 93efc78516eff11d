"""Random draws that are a hash of a seed and an index (splitmix64, Steele et al. 2014).

They are the same on a CPU and on a GPU, and need no generator on the device.
"""

from __future__ import annotations

import torch
from torch import Tensor

# The constants of splitmix64 as int64; products wrap around, as the method requires.
GOLDEN = -7046029254386353131
_MIX_1, _MIX_2 = -4658895280553007687, -7723592293110705685


def mixed(words: Tensor) -> Tensor:
    """The words [...] of int64, each replaced by its hash."""
    # In place after the first line, which takes two thirds of the time of new tensors.
    words = words ^ (words >> 30).bitwise_and_(2**34 - 1)
    words *= _MIX_1
    words ^= (words >> 27).bitwise_and_(2**37 - 1)
    words *= _MIX_2
    words ^= (words >> 31).bitwise_and_(2**33 - 1)
    return words


def hashed_words(seeds: Tensor, count: int) -> Tensor:
    """Random 64-bit words of each seed: [...] -> [..., count]."""
    return mixed(torch.arange(count, device=seeds.device).mul_(GOLDEN) + seeds.unsqueeze(-1))


def uniform_draws(words: Tensor, dtype: torch.dtype) -> Tensor:
    """Uniform draws in [-1, 1) from words [...] of int64: [...]."""
    return (words >> 40).bitwise_and_(2**24 - 1).to(dtype).div_(2**23).sub_(1)
