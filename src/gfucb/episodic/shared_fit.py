"""One representation for all stages."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from gfucb.episodic.buffer import StageBuffer, dataset_of
from gfucb.episodic.planner import Planner
from gfucb.episodic.stage_fit import StageFit
from gfucb.episodic.stage_plan import StagePlan
from gfucb.models import MultitaskDataset


def fit_together(
    planner: Planner,
    fits: Sequence[StageFit],
    buffers: Sequence[StageBuffer],
    plans: Sequence[StagePlan],
    example: Tensor,
) -> None:
    """Give all stages one phi, refitted to the targets of the previous `plans` if that is due.

    `example` [1, *input] gives the shape of inputs. The first stage counts the fits.
    """
    first = fits[0]
    num_samples = sum(len(buffer) for buffer in buffers)
    representation = first.current(example).representation
    if num_samples and first.is_refit_due(num_samples):
        seen = [stage for stage, buffer in enumerate(buffers) if len(buffer)]
        auxiliary = first.settings.auxiliary_targets([buffers[stage] for stage in seen])
        parts = []
        for stage in seen:
            next_plan = plans[stage + 1] if stage + 1 < len(plans) else None
            targets = planner.data(stage, buffers[stage], next_plan, example).targets
            parts.append(fits[stage].data(buffers[stage], targets, auxiliary))
        representation = first.fit(pooled(parts), example)
        first.count_fit(num_samples)
    for fit in fits:
        fit.adopt(representation, example)


def pooled(parts: Sequence[MultitaskDataset]) -> MultitaskDataset:
    """One data set of several; the tasks of each part get numbers of their own."""
    starts = np.cumsum([0, *(part.num_tasks for part in parts)])
    data = dataset_of(
        int(starts[-1]),
        torch.cat([p.tasks + int(s) for p, s in zip(parts, starts, strict=False)]),
        torch.cat([part.inputs for part in parts]),
        torch.cat([part.targets for part in parts]),
    )
    auxiliary = [part.auxiliary_targets for part in parts if part.auxiliary_targets is not None]
    return data.with_auxiliary_targets(torch.cat(auxiliary)) if auxiliary else data
