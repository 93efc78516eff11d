"""One representation for all stages."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from gfucb.episodic.buffer import Floats, StageBuffer, dataset_of
from gfucb.episodic.stage_fit import StageFit
from gfucb.models import MultitaskDataset


def fit_together(
    fits: Sequence[StageFit],
    buffers: Sequence[StageBuffer],
    targets_of: Callable[[int], Floats],
    example: Tensor,
) -> None:
    """Have all stages adopt one phi, fitted anew to `targets_of`(stage) [sample] if that is due.

    `example` [1, *input] gives the shape of inputs. The first stage counts the fits.
    """
    first = fits[0]
    num_samples = sum(len(memory) for memory in buffers)
    representation = first.start(example).representation
    if num_samples and first.is_due(num_samples):
        data = _data_of_all(fits, buffers, targets_of)
        representation = first.fitted(data, example)
        first.samples_at_fit, first.num_fits = num_samples, first.num_fits + 1
    for fit in fits:
        fit.adopt(representation, example)


def _data_of_all(
    fits: Sequence[StageFit],
    buffers: Sequence[StageBuffer],
    targets_of: Callable[[int], Floats],
) -> MultitaskDataset:
    """The data of all stages, with heads of its own for each stage and task."""
    seen = [stage for stage, memory in enumerate(buffers) if len(memory)]
    further = fits[0].settings.auxiliary_targets([buffers[stage] for stage in seen])
    return pooled([fits[stage].data(buffers[stage], targets_of(stage), further) for stage in seen])


def pooled(parts: Sequence[MultitaskDataset]) -> MultitaskDataset:
    """Data sets side by side: the tasks of each part are tasks of their own."""
    starts = np.cumsum([0, *(part.num_tasks for part in parts)])
    data = dataset_of(
        int(starts[-1]),
        torch.cat([p.tasks + int(s) for p, s in zip(parts, starts, strict=False)]),
        torch.cat([part.inputs for part in parts]),
        torch.cat([part.targets for part in parts]),
    )
    further = [part.auxiliary_targets for part in parts if part.auxiliary_targets is not None]
    return data.with_auxiliary_targets(torch.cat(further)) if further else data
