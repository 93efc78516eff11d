"""Checks and self-supervised steps before a fit, for one network and for a stack of networks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from torch import Tensor

from gfucb.bandits.candidate_learning import CandidateLearning
from gfucb.core.protocols import Representation
from gfucb.core.shards import in_any
from gfucb.estimation.reward_check import CHECK_STEPS
from gfucb.estimation.self_supervised_steps import train_network, train_stack
from gfucb.models import MultiheadFunction, MultitaskDataset
from gfucb.models.nn.stacked import NetworkStack
from gfucb.models.representations import NeuralRepresentation, as_network

# Names of random streams.
STEPS_STREAM, CHECK_STREAM = "self-supervision", "reward check"


def trained_before_fit(
    learning: CandidateLearning,
    representation: Representation,
    data: MultitaskDataset,
    initial: Callable[[], Representation],
    *,
    offset: float,
    ridge: float,
    fit_index: int,
) -> tuple[CandidateLearning, Representation]:
    """Make a check if one is due, then the steps before a fit to `data`.

    `initial` returns the network before any data. If the check ends the use of self-supervision,
    the fit starts from that network: the one so far has learned the wrong invariances, and fits
    to rewards do not undo them soon. The representation is the same object if nothing changes it.
    """
    pool, shards = learning.pool.inputs, data.shards
    if not in_any(shards, pool is not None):
        return learning, representation
    if pool is None:  # of a shard that was offered nothing yet
        pool = data.inputs[:0]
    if learning.checks(data):
        untrained = as_network(initial())
        generator = learning.generator(CHECK_STREAM, data.total)
        method = learning.method
        size = method.batch_size_for(0)
        trained = train_network(
            method, untrained, pool, generator, CHECK_STEPS, batch_size=size, shards=shards
        )
        check = learning.check.after(untrained, trained, data, offset=offset, ridge=ridge)
        if check.ends_use(learning.check):
            representation = untrained
        learning = replace(learning, check=check)
    phi = train_network(
        learning.method,
        as_network(representation),
        pool,
        learning.generator(STEPS_STREAM, fit_index),
        learning.steps_for(data),
        shards=shards,
    )
    return learning, phi


def center_before_fit(
    learning: CandidateLearning | None,
    center: MultiheadFunction,
    data: MultitaskDataset,
    initial: Callable[[], Representation],
    **options: Any,
) -> tuple[CandidateLearning | None, MultiheadFunction]:
    """The same for the representation of a function, if there is something to learn from."""
    if learning is None:
        return None, center
    learning, phi = trained_before_fit(learning, center.representation, data, initial, **options)
    return learning, replace(center, representation=phi)


def train_stack_before_fit(
    learnings: Sequence[CandidateLearning],
    stack: NetworkStack,
    data: Sequence[MultitaskDataset],
    initial: Callable[[int], NeuralRepresentation],
    *,
    offsets: Sequence[float],
    ridge: float,
    fit_indices: Sequence[int],
) -> list[CandidateLearning]:
    """The same for each network of a stack, which is trained in place, with one of each argument.

    `initial` takes the position in the stack.
    """
    learnings = list(learnings)
    due = [i for i, own in enumerate(learnings) if own.checks(data[i])]
    if due:
        untrained = [initial(i) for i in due]
        checked = NetworkStack(untrained)
        generators = [learnings[i].generator(CHECK_STREAM, len(data[i])) for i in due]
        pools = _pools([learnings[i] for i in due])
        method = learnings[0].method
        smallest = method.batch_size_for(0)
        train_stack(method, checked, pools, generators, CHECK_STEPS, batch_size=smallest)
        for i, before, after in zip(due, untrained, checked.unstacked(), strict=True):
            check = learnings[i].check.after(before, after, data[i], offset=offsets[i], ridge=ridge)
            if check.ends_use(learnings[i].check):
                stack.put([i], NetworkStack([before]))
            learnings[i] = replace(learnings[i], check=check)
    # The data sets of a batch have the same size, so all replicas that train make as many steps.
    used = [i for i, own in enumerate(learnings) if len(own.pool) and own.steps_for(data[i])]
    if used:
        trained = stack.taken(used)
        own = [learnings[i] for i in used]
        generators = [learnings[i].generator(STEPS_STREAM, fit_indices[i]) for i in used]
        num_steps = own[0].steps_for(data[used[0]])
        train_stack(own[0].method, trained, _pools(own), generators, num_steps)
        stack.put(used, trained)
    return learnings


def _pools(learnings: Sequence[CandidateLearning]) -> list[Tensor]:
    pools = [own.pool.inputs for own in learnings]
    return [pool for pool in pools if pool is not None]
