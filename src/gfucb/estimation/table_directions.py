"""The choice of how much directions count in which the columns of a table vary together."""

from __future__ import annotations

from dataclasses import replace

import torch

from gfucb.core.shards import of_each
from gfucb.estimation.table_samples import TableSamples
from gfucb.estimation.table_search import FEWEST_SEARCH_SAMPLES
from gfucb.models.table_features import TableScales

# Powers of the correlations of columns. Another one than the usual one is chosen if it raises the
# log evidence by the smallest gain.
POWERS, USUAL_POWER, SMALLEST_GAIN = (0.0, 0.5, 1.0), 0.5, 1.0


def choose_directions(
    samples: TableSamples, scales: TableScales, generator: torch.Generator
) -> TableSamples:
    """The samples with columns that have the power of correlations that rewards speak for.

    Correlations need no rewards. If rewards depend on what columns have in common, directions in
    which they vary together deserve large effects; if not, power zero has the larger evidence.
    """
    columns = replace(samples.columns, has_pooled=False)
    directions = columns.directions(samples.inputs, samples.shards)
    if directions is None:
        return samples
    if samples.total < FEWEST_SEARCH_SAMPLES:
        return replace(samples, columns=columns.along(directions.projection(USUAL_POWER)))
    few = samples.subset(generator)

    def score(power: float) -> float:
        own = replace(few, columns=columns.along(directions.projection(power)))
        return own.evidence()(scales) + (SMALLEST_GAIN if power == USUAL_POWER else 0.0)

    power = max(POWERS, key=score)
    if samples.shards.count > 1:
        # All compute the same; of machines that round differently the first one counts.
        power = float(of_each(samples.shards, power)[0, 0])
    return replace(samples, columns=columns.along(directions.projection(power)))
