"""One representation for all stages."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from gfucb.agents.memory import Floats, StageMemory, dataset_of
from gfucb.agents.stage_fit import StageFit
from gfucb.functions import MultitaskDataset


def fit_together(
    fits: Sequence[StageFit],
    memories: Sequence[StageMemory],
    targets_of: Callable[[int], Floats],
    example: Tensor,
) -> None:
    """Have all stages adopt one phi, fitted anew to `targets_of`(stage) [sample] if that is due.

    `example` [1, *input] gives the shape of inputs. The first stage counts the fits.
    """
    first = fits[0]
    num_samples = sum(len(memory) for memory in memories)
    representation = first.start(example).representation
    if num_samples and first.is_due(num_samples):
        data = _data_of_all(fits, memories, targets_of)
        representation = first.fitted(data, example)
        first.samples_at_fit, first.num_fits = num_samples, first.num_fits + 1
    for fit in fits:
        fit.adopt(representation, example)


def _data_of_all(
    fits: Sequence[StageFit],
    memories: Sequence[StageMemory],
    targets_of: Callable[[int], Floats],
) -> MultitaskDataset:
    """The data of all stages, with heads of its own for each stage and task."""
    seen = [stage for stage, memory in enumerate(memories) if len(memory)]
    further = fits[0].settings.further_targets([memories[stage] for stage in seen])
    return pooled([fits[stage].data(memories[stage], targets_of(stage), further) for stage in seen])


def pooled(parts: Sequence[MultitaskDataset]) -> MultitaskDataset:
    """Data sets side by side: the tasks of each part are tasks of their own."""
    starts = np.cumsum([0, *(part.num_tasks for part in parts)])
    data = dataset_of(
        int(starts[-1]),
        torch.cat([p.tasks + int(s) for p, s in zip(parts, starts, strict=False)]),
        torch.cat([part.inputs for part in parts]),
        torch.cat([part.targets for part in parts]),
    )
    further = [part.further for part in parts if part.further is not None]
    return data.also_told(torch.cat(further)) if further else data
