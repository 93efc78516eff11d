"""Random draws of selectors that explore at random."""

from __future__ import annotations

import torch

from gfucb.core.action_sets import ActionSets
from gfucb.core.random import random_stream
from gfucb.models import ConfidenceSet


def generator_for(
    seed: int, name: str, confidence_set: ConfidenceSet, action_sets: ActionSets
) -> torch.Generator:
    """The generator of one decision.

    It is a function of the seed, the number of samples and the tasks of the rows. A repeated
    call before the next reward therefore makes the same draws.
    """
    return random_stream(seed, name, len(confidence_set.data), *action_sets.tasks.tolist())
