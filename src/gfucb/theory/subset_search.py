"""Longest independent sequences in a finite class: the exact search over subsets of inputs.

The class enters only through its squared differences a[p, x] = (f(x) - g(x))^2, one row a pair
p = (f, g). A sequence x_1, ..., x_n is independent at a *cut* c = (eps')^2 when for every i some
pair has

    sum_{j < i} a[p, x_j]  <  c  <=  a[p, x_i].

Which inputs came before matters, their order does not, and no input comes twice: sequences are
chains of subsets, and subsets are bit masks.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gfucb.theory.finite_classes import Floats

Masks = npt.NDArray[np.int64]

# Numbers closer than this, relatively, count as equal: the reach of rounding.
TIE = 1e-9
# Subsets whose sums over all pairs are held at once: bounds the memory.
CHUNK = 1024
# Subsets a layer may have before the widest interval of cuts is halved; doubles with each halving.
FIRST_LAYER_CAP = 100
# Pairs tried as substitutes for all others before an interval is searched.
NUM_SUBSTITUTES = 16


@dataclass(frozen=True)
class Chain:
    """Inputs in order, independent at `cut`."""

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
    """The cuts worth trying, rising: just below each squared difference above `scale`.

    Once the pairs of a chain are chosen, its cut may lie anywhere between the largest sum and
    the smallest squared difference, so it may as well lie just below the latter.
    """
    levels = np.unique(squares[squares > scale**2 * (1 + TIE)])
    apart = np.ones(len(levels), dtype=bool)
    apart[1:] = levels[1:] > levels[:-1] * (1 + TIE)
    return levels[apart] * (1 - TIE)


def subsets_of_size(num_inputs: int, size: int) -> Masks:
    """All masks of `size` among `num_inputs` inputs, rising."""
    masks = np.arange(1 << num_inputs, dtype=np.int64)
    counts = np.zeros(len(masks), dtype=np.int64)
    for index in range(num_inputs):
        counts += masks >> index & 1
    return masks[counts == size]


class CutInterval:
    """The class seen through all cuts in [low, high] at once; exact when low = high.

    A pair serves an input where a >= low, as long as its sum is < high. That is a relaxation:
    a chain that is independent at one cut of the interval is one here too.
    """

    def __init__(self, squares: Floats, low: float, high: float) -> None:
        # Inputs that nobody serves are in no chain: masks count the others only.
        self.inputs = np.flatnonzero(squares.max(axis=0) >= low)
        squares = squares[squares.max(axis=1) >= low][:, self.inputs]
        self.squares = squares[not_substitutable(squares, squares >= low)]
        self.serves = self.squares >= low
        self.high = high
        self.bits: Masks = 1 << np.arange(len(self.inputs), dtype=np.int64)
        # Column k: no k inputs have a smaller sum for that pair.
        sums = np.cumsum(np.sort(self.squares, axis=1), axis=1)
        self.smallest_sums = np.pad(sums, ((0, 0), (1, 0)))

    def next_inputs(self, subsets: Masks, size: int) -> Masks:
        """For each subset of `size` inputs, the mask of inputs independent of it: [subset]."""
        fits = self.smallest_sums[:, size] < self.high
        squares, serves = self.squares[fits], self.serves[fits].astype(np.float32)
        result = np.zeros(len(subsets), dtype=np.int64)
        for start in range(0, len(subsets) if len(squares) else 0, CHUNK):
            chunk = subsets[start : start + CHUNK]
            members = (chunk[:, None] & self.bits) != 0
            alive = members.astype(np.float64) @ squares.T < self.high
            served = alive.astype(np.float32) @ serves > 0
            result[start : start + CHUNK] = (served & ~members) @ self.bits
        return result

    def chain(self, length: int, cap: int) -> tuple[int, ...] | None:
        """A chain of `length` inputs, or None; raises `LayerTooLargeError` beyond `cap` subsets.

        Goes backwards from the subsets of length - 1 inputs that can be extended once: where the
        length is out of reach there are few of them, and fewer still can be reached.
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
        """The subsets that lack one member of one of `subsets`."""
        inside = (subsets[:, None] & self.bits) != 0
        return np.unique((subsets[:, None] & ~self.bits)[inside])


class LayerTooLargeError(Exception):
    """The interval is too wide to be searched; halve it."""


def not_substitutable(squares: Floats, serves: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Which pairs [pair] remain: a pair that serves more for smaller sums replaces another.

    The cheapest pair of each pattern of service is tried as a substitute, not every pair.
    """
    order = np.argsort(squares.sum(axis=1), kind="stable")
    _, first = np.unique(serves[order], axis=0, return_index=True)
    remain = np.ones(len(squares), dtype=bool)
    for substitute in order[np.sort(first)[:NUM_SUBSTITUTES]]:
        if remain[substitute]:
            covered = (serves <= serves[substitute]).all(axis=1)
            covered[covered] = (squares[covered] >= squares[substitute]).all(axis=1)
            covered[substitute] = False
            remain &= ~covered
    return remain


def walk(following: dict[int, int], length: int) -> list[int]:
    """Follow the chosen inputs from the empty subset."""
    subset, inputs = 0, []
    for _ in range(length):
        inputs.append(following[subset])
        subset |= 1 << inputs[-1]
    return inputs


def longest_chain(squares: Floats, cuts: Floats, known: Chain) -> Chain:
    """The longest chain over all cuts, by best-first search over intervals; `known` if as long.

    Every interval carries a bound on its chains, at first the number of inputs. The interval
    with the largest bound is searched for a chain of that length: none lowers its bound by one,
    a single cut that has one is the answer, and otherwise the interval is halved. At most
    O(cuts 2^inputs inputs pairs), in practice some dozens of intervals and few subsets each.
    A good chain known beforehand spares the proof that there is one.
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
