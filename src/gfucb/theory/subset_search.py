"""Longest independent sequences in a finite class: exact search over subsets of inputs.

The search uses only the squared differences a[p, x] = (f(x) - g(x))^2, one row for each pair
p = (f, g). A pair *separates* the inputs where its squared difference is at least the cut. A
sequence x_1, ..., x_n is independent at a *cut* c = (eps')^2 when for every i some pair has

    sum_{j < i} a[p, x_j]  <  c  <=  a[p, x_i].

Only the set of earlier inputs matters, not their order, and no input occurs twice. Sequences are
therefore chains of subsets, and subsets are bit masks.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gfucb.theory.finite_classes import Floats

Masks = npt.NDArray[np.int64]

# Numbers with a smaller relative difference count as equal, because of rounding.
TIE = 1e-9
# Number of subsets whose sums over all pairs are computed at once: bounds the memory.
CHUNK = 1024
# Largest number of subsets of a layer in the widest interval of cuts; doubles with each halving.
FIRST_LAYER_CAP = 100
# Number of pairs tried as substitutes for all others before an interval is searched.
NUM_SUBSTITUTES = 16


@dataclass(frozen=True)
class Chain:
    """A sequence of inputs that is independent at `cut`."""

    inputs: tuple[int, ...]
    cut: float


def useful_squares(squares: Floats, scale: float) -> Floats:
    """The distinct rows of squared differences [pair, input] that exceed `scale` somewhere."""
    squares = squares[squares.max(axis=1) > scale**2 * (1 + TIE)]
    return np.unique(squares, axis=0) if len(squares) else squares


def squared_differences(values: Floats, scale: float) -> Floats:
    """Squared differences [pair, input] of the pairs that differ by more than `scale` somewhere."""
    first, second = np.triu_indices(len(values), k=1)
    if not len(first):
        return np.zeros((0, values.shape[1]))
    return useful_squares(np.square(values[first] - values[second]), scale)


def candidate_cuts(squares: Floats, scale: float) -> Floats:
    """The cuts that suffice, in increasing order: just below each squared difference above `scale`.

    For given pairs the cut of a chain can be any number between the largest sum and the smallest
    squared difference. A cut just below the latter therefore loses nothing.
    """
    levels = np.unique(squares[squares > scale**2 * (1 + TIE)])
    apart = np.ones(len(levels), dtype=bool)
    apart[1:] = levels[1:] > levels[:-1] * (1 + TIE)
    return levels[apart] * (1 - TIE)


def subsets_of_size(num_inputs: int, size: int) -> Masks:
    """All masks with `size` of `num_inputs` inputs, in increasing order."""
    masks = np.arange(1 << num_inputs, dtype=np.int64)
    counts = np.zeros(len(masks), dtype=np.int64)
    for index in range(num_inputs):
        counts += masks >> index & 1
    return masks[counts == size]


class CutInterval:
    """A relaxation for all cuts in [low, high] at once; exact when low = high.

    A pair separates an input where a >= low, as long as its sum is < high. Every chain that is
    independent at one cut of the interval is a chain of the relaxation.
    """

    def __init__(self, squares: Floats, low: float, high: float) -> None:
        # Inputs that no pair separates are in no chain; the masks cover the others only.
        self.inputs = np.flatnonzero(squares.max(axis=0) >= low)
        squares = squares[squares.max(axis=1) >= low][:, self.inputs]
        self.squares = squares[not_substitutable(squares, squares >= low)]
        self.separates = self.squares >= low
        self.high = high
        self.bits: Masks = 1 << np.arange(len(self.inputs), dtype=np.int64)
        # Column k: the smallest sum of k inputs for each pair.
        sums = np.cumsum(np.sort(self.squares, axis=1), axis=1)
        self.smallest_sums = np.pad(sums, ((0, 0), (1, 0)))

    def next_inputs(self, subsets: Masks, size: int) -> Masks:
        """For each subset of `size` inputs, the mask of inputs independent of it: [subset]."""
        fits = self.smallest_sums[:, size] < self.high
        squares, separates = self.squares[fits], self.separates[fits].astype(np.float32)
        result = np.zeros(len(subsets), dtype=np.int64)
        for start in range(0, len(subsets) if len(squares) else 0, CHUNK):
            chunk = subsets[start : start + CHUNK]
            members = (chunk[:, None] & self.bits) != 0
            alive = members.astype(np.float64) @ squares.T < self.high
            separated = alive.astype(np.float32) @ separates > 0
            result[start : start + CHUNK] = (separated & ~members) @ self.bits
        return result

    def chain(self, length: int, cap: int) -> tuple[int, ...] | None:
        """A chain of `length` inputs, or None; raises `LayerTooLargeError` beyond `cap` subsets.

        Works backwards from the subsets of length - 1 inputs that can be extended once. If the
        length is impossible, there are few of them, and fewer in each further layer.
        """
        if length > len(self.bits):
            return None
        promising = np.zeros(1 << len(self.bits), dtype=bool)
        promising[subsets_of_size(len(self.bits), length)] = True
        subsets = subsets_of_size(len(self.bits), length - 1)
        following: dict[int, int] = {}
        for size in range(length - 1, -1, -1):
            choices = self.next_inputs(subsets, size)
            chosen = np.full(len(subsets), -1)
            for index, bit in enumerate(self.bits):
                chosen[(choices & bit != 0) & promising[subsets | bit]] = index
            subsets, chosen = subsets[chosen >= 0], chosen[chosen >= 0]
            if len(subsets) > cap:
                raise LayerTooLargeError
            if not len(subsets):
                return None
            promising[subsets] = True
            following |= zip(subsets.tolist(), chosen.tolist(), strict=True)
            subsets = self.one_smaller(subsets)
        return tuple(int(self.inputs[index]) for index in walk(following, length))

    def one_smaller(self, subsets: Masks) -> Masks:
        """All subsets obtained by removing one input from one of `subsets`."""
        inside = (subsets[:, None] & self.bits) != 0
        return np.unique((subsets[:, None] & ~self.bits)[inside])


class LayerTooLargeError(Exception):
    """The interval is too wide to search and must be halved."""


def not_substitutable(squares: Floats, separates: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Which pairs [pair] remain: a pair is dropped if another separates more with smaller sums.

    Only the pair with the smallest total of each pattern of separated inputs is tried as a
    substitute.
    """
    order = np.argsort(squares.sum(axis=1), kind="stable")
    _, first = np.unique(separates[order], axis=0, return_index=True)
    remain = np.ones(len(squares), dtype=bool)
    for substitute in order[np.sort(first)[:NUM_SUBSTITUTES]]:
        if remain[substitute]:
            covered = (separates <= separates[substitute]).all(axis=1)
            covered[covered] = (squares[covered] >= squares[substitute]).all(axis=1)
            covered[substitute] = False
            remain &= ~covered
    return remain


def walk(following: dict[int, int], length: int) -> list[int]:
    """The chosen inputs, starting from the empty subset."""
    subset, inputs = 0, []
    for _ in range(length):
        inputs.append(following[subset])
        subset |= 1 << inputs[-1]
    return inputs


def longest_chain(squares: Floats, cuts: Floats, known: Chain) -> Chain:
    """The longest chain over all cuts, by best-first search over intervals; `known` if as long.

    Every interval has a bound on the length of its chains, at first the number of inputs. The
    interval with the largest bound is searched for a chain of that length. If there is none, its
    bound decreases by one. If there is one and the interval is a single cut, it is the answer.
    Otherwise the interval is halved. The cost is at most O(cuts 2^inputs inputs pairs), in practice
    some dozens of intervals with few subsets each. A long known chain shortens the search.
    """
    queue = [(-squares.shape[1], 0, 0, len(cuts) - 1)]
    while -queue[0][0] > len(known.inputs):
        bound, depth, first, last = heapq.heappop(queue)
        cap = 1 << squares.shape[1] if first == last else FIRST_LAYER_CAP << -depth
        interval = CutInterval(squares, cuts[first], cuts[last])
        try:
            inputs = interval.chain(-bound, cap)
        except LayerTooLargeError:
            inputs = ()
        if inputs is None:
            heapq.heappush(queue, (bound + 1, depth, first, last))
        elif first == last:
            return Chain(inputs, float(cuts[first]))
        else:
            middle = (first + last) // 2
            heapq.heappush(queue, (bound, depth - 1, first, middle))
            heapq.heappush(queue, (bound, depth - 1, middle + 1, last))
    return known
