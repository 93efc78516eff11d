"""Named random streams: every draw comes from a generator derived from (seed, stream name).

Streams are independent of each other and of the order in which they are opened. A new stream
therefore never changes the draws of another one, and a run resumes without a saved generator.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import torch
from torch import Tensor


class _Seeding:
    """Holds the lock under which torch's global generators are seeded or set back.

    A fork has a new one: the thread that held it is not in the fork and would never release it.
    """

    def __init__(self) -> None:
        self.renew()
        if hasattr(os, "register_at_fork"):  # not on Windows
            os.register_at_fork(after_in_child=self.renew)

    def renew(self) -> None:
        self.lock = threading.RLock()


_SEEDING = _Seeding()


def random_stream(seed: int, *names: str | int) -> torch.Generator:
    """Return the generator of the stream `names` under `seed`, always in the same state.

    >>> a, b = random_stream(0, "noise", 3), random_stream(0, "noise", 3)
    >>> bool(torch.equal(torch.rand(2, generator=a), torch.rand(2, generator=b)))
    True
    """
    digest = hashlib.blake2b(repr((int(seed), *names)).encode(), digest_size=8).digest()
    generator = torch.Generator()
    generator.manual_seed(int.from_bytes(digest, "big") >> 1)
    return generator


@contextmanager
def global_randomness_from(generator: torch.Generator) -> Iterator[None]:
    """Seed torch's global generators from `generator` within a block.

    Layer initialisation and dropout take no generator. The global generators have their former
    state when the block ends, and their draws in it are independent of those of `generator`.
    """
    seed = int(torch.randint(2**62, (), generator=generator))
    with ExitStack() as former_state:
        with _SEEDING.lock:
            former_state.enter_context(torch.random.fork_rng())
            torch.default_generator.manual_seed(seed)
            if torch.cuda.is_available():
                torch.cuda.manual_seed_all(seed)
        try:
            yield
        finally:
            with _SEEDING.lock:
                former_state.close()


@contextmanager
def exclusive_randomness_from(generator: torch.Generator) -> Iterator[None]:
    """`global_randomness_from` for a block in which no other thread seeds the generators.

    Fits in the background and shards in threads make networks at the same time, and the weights
    must not depend on that.
    """
    with _SEEDING.lock, global_randomness_from(generator):
        yield


def random_actions(available: Tensor, generator: torch.Generator) -> Tensor:
    """One available action for each row, uniformly at random: [row, action] -> [row]."""
    draws = torch.rand(available.shape, generator=generator, dtype=torch.float64)
    return draws.to(available.device).masked_fill(~available, -torch.inf).argmax(1)


def draw_actions(probabilities: Tensor, generator: torch.Generator) -> Tensor:
    """One action for each row, drawn with these probabilities: [row, action] -> [row].

    Row n uses the n-th draw of the generator, whatever the number of actions.
    """
    draws = torch.rand(len(probabilities), generator=generator, dtype=torch.float64)
    sums = probabilities.cumsum(1)
    actions = (draws.to(sums.device)[:, None] >= sums).sum(1)
    # Rounding can leave the last sum below 1.
    last = probabilities.shape[1] - 1 - (probabilities > 0).flip(1).to(torch.int8).argmax(1)
    return torch.minimum(actions, last)
