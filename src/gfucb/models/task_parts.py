"""Very many tasks in parts: small tensors instead of large ones."""

from __future__ import annotations

from collections.abc import Iterator

from torch import Tensor

# Tasks are solved together up to this many numbers, which fit into the cache of one core. Shards of
# one machine share its memory, and wait for it with larger parts.
LARGEST_PART = 2**18


def parts_of_similar_size(sizes: Tensor, width: int, ends: int | None = None) -> Iterator[Tensor]:
    """Indices of tasks with these numbers of samples [task], in parts: little is padded.

    A part has about `LARGEST_PART` numbers if samples have `width`. Tasks with more than `ends`
    samples are in parts of their own.
    """
    order, width = sizes.argsort(stable=True), max(1, width)
    ordered = sizes[order]
    num_few = len(order) if ends is None else int((ordered <= ends).sum())
    first = 0
    while first < len(order):
        end = num_few if first < num_few else len(order)
        # The largest number of samples of a part is that of its last task: two tries suffice.
        count = max(1, LARGEST_PART // (width * max(1, int(ordered[first]))))
        last = min(end, first + count) - 1
        count = max(1, LARGEST_PART // (width * max(1, int(ordered[last]))))
        yield order[first : min(end, first + count)]
        first = min(end, first + count)
