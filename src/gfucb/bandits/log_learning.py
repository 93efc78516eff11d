"""Logs are learned as if their samples had come one after another, in random order."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from gfucb.bandits.learner import Learner
from gfucb.core.logs import log
from gfucb.core.random import random_stream
from gfucb.core.shards import OneShard

if TYPE_CHECKING:
    from gfucb.bandits.default_learner import DefaultLearner

# A log: so many new samples for each of its tasks, and as many as all samples before.
LOG_SAMPLES = 10
# Samples of the first part.
FIRST_PART = 20
LOGGER = logging.getLogger(__name__)


def learn_log(
    learner: Learner | DefaultLearner, tasks: Tensor, inputs: Tensor, rewards: Tensor
) -> None:
    """Add samples [n], [n, *input], [n] that come in one call.

    One fit of a network has the steps that suffice after a small growth of the data, so one call
    with a long log would end with a worse fit than the same samples in many calls. Such a log is
    learned in parts of growing size, each with a fit of its own. Models in closed form need one
    fit. Shards learn in one part. If a part is refused, the learner does not change.
    """
    order = torch.arange(len(tasks))
    sizes = [len(tasks)]
    network = learner if isinstance(learner, Learner) else learner.for_inputs(inputs)
    is_alone = isinstance(network.shards, OneShard) if isinstance(network, Learner) else True
    if isinstance(network, Learner) and is_alone and _is_log(network, tasks):
        sizes = list(_part_sizes(network.num_samples, len(tasks), network.refit_growth))
        if len(sizes) > 1 and not network.keeping.forgets:  # otherwise the order matters
            generator = random_stream(network.seed, "log", network.num_samples)
            order = torch.randperm(len(tasks), generator=generator)
    before, num_done = learner.state() if len(sizes) > 1 else {}, 0
    try:
        for part in order.to(tasks.device).split(sizes):
            learner.learn(tasks[part], inputs[part], rewards[part])
            num_done += len(part)
            if len(sizes) > 1:
                text = "learned %(num_learned)d of %(num_samples)d samples"
                log(LOGGER, logging.INFO, text, num_learned=num_done, num_samples=len(tasks))
    except BaseException:
        if num_done:
            learner.load_state(before)
        raise


def _is_log(network: Learner, tasks: Tensor) -> bool:
    is_long = len(tasks) >= LOG_SAMPLES * len(tasks.unique()) and len(tasks) > FIRST_PART
    return is_long and len(tasks) >= network.num_samples


def _part_sizes(num_before: int, num_new: int, growth: float) -> Iterator[int]:
    """Sizes of parts after each of which a fit is due: the data grows by the factor `growth`."""
    total, size = num_before + num_new, num_before
    if not 1 < growth < total:
        yield num_new  # a fit after every call, or none
        return
    while size < total:
        later = min(total, max(FIRST_PART, int(size * growth) + 1))
        yield later - size
        size = later
