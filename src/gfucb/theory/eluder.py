"""Eluder dimension of finite classes (Russo and Van Roy 2013): exact value and lower bound.

An input x is eps-independent of its predecessors when two functions of the class agree on them
and differ at x:  sqrt(sum_{predecessors} (f - g)^2) <= eps  and  |f(x) - g(x)| > eps. The
dimension at scale eps is the length of the longest sequence in which, for one eps' >= eps, every
input is eps'-independent of those before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from scipy.spatial.distance import pdist

from gfucb.core.errors import InvalidInputError
from gfucb.core.random import random_stream
from gfucb.theory.beam_search import BeamSearch
from gfucb.theory.finite_classes import Floats, Table, finite_table, values_and_scale
from gfucb.theory.requirements import require_counts
from gfucb.theory.subset_search import (
    Chain,
    candidate_cuts,
    longest_chain,
    squared_differences,
    useful_squares,
)

# Largest sizes for the exact search: 2^16 subsets, about 8000 pairs.
MAX_INPUTS = 16
MAX_FUNCTIONS = 128
# Largest number of values that `sum_class` computes.
MAX_SUMS = 10_000_000


@dataclass(frozen=True)
class EluderDimension:
    """A dimension, or a lower bound on it, with the sequence that proves it.

    Attributes:
        dimension: length of the sequence.
        sequence: indices of inputs, each `scale`-independent of those before it.
        scale: the eps' of the definition, at least the requested scale.
        is_exact: True if no longer sequence exists at any eps' >= the requested scale.
    """

    dimension: int
    sequence: tuple[int, ...]
    scale: float
    is_exact: bool


def is_independent(values: Table, predecessors: Sequence[int], x: int, scale: float) -> bool:
    """Whether input `x` is `scale`-independent of `predecessors`, by the definition.

    True if some f, g have  sqrt(sum_{predecessors} (f - g)^2) <= scale < |f(x) - g(x)|
    (Russo and Van Roy 2013, definition 3). O(functions^2 predecessors).
    """
    table = values_and_scale(values, scale)
    require_inputs(table, [*predecessors, x])
    if len(table) == 1:
        return False
    differs = pdist(table[:, [x]]) > scale
    if len(predecessors):
        differs &= pdist(table[:, list(predecessors)]) <= scale
    return bool(differs.any())


def eluder_dimension(values: Table, scale: float) -> EluderDimension:
    """Exact eluder dimension at `scale` of a class given by its values [function, input].

    Longest sequence such that for one eps' >= scale every input is eps'-independent of its
    predecessors (Russo and Van Roy 2013, definition 4), found by best-first search over
    eps' and subsets of inputs, see `subset_search`. Numbers that agree to nine digits count as
    equal. Seconds for 16 inputs and 100 functions; the worst case is
    O(differences 2^inputs inputs functions^2).

    >>> eluder_dimension([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]], scale=0.5).dimension
    2
    """
    table = values_and_scale(values, scale)
    # Inputs that differ by a constant, and equal functions, cannot make a sequence longer.
    centered = np.unique(table - table[0], axis=0)
    distinct, first = np.unique(centered, axis=1, return_index=True)
    require_small(*distinct.shape)
    squares = squared_differences(distinct, scale)
    if not len(squares):
        return EluderDimension(0, (), scale, is_exact=True)
    cuts = candidate_cuts(squares, scale)
    known = best_of_beams(squares, cuts, random_stream(0, "eluder dimension"))
    chain = longest_chain(squares, cuts, known)
    sequence = tuple(int(first[x]) for x in chain.inputs)
    return EluderDimension(len(sequence), sequence, witness_scale(squares, chain, scale), True)


def eluder_lower_bound(
    values: Table,
    scale: float,
    generator: torch.Generator,
    *,
    num_restarts: int = 16,
    beam_width: int = 4,
    max_pairs: int = 5000,
) -> EluderDimension:
    """A certified lower bound on the eluder dimension at `scale`, for classes of any size.

    Randomised beam search for a long independent sequence: each restart fixes one eps' and
    extends `beam_width` sequences, preferring those that leave most inputs independent. The
    sequence found proves the bound. The gap to the dimension is unknown.
    O(restarts beam inputs^2 pairs), with at most `max_pairs` random pairs.

    Args:
        values: the class, [function, input].
        scale: the eps of the definition.
        generator: draws the eps', the pairs, and the order of ties.
        num_restarts: number of eps'.
        beam_width: number of sequences at each length; 1 is randomised greedy search.
        max_pairs: number of pairs of functions; all of them if there are fewer.
    """
    table = values_and_scale(values, scale)
    require_counts(num_restarts=num_restarts, beam_width=beam_width, max_pairs=max_pairs)
    squares = sampled_squares(table, scale, generator, max_pairs)
    if not len(squares):
        return EluderDimension(0, (), scale, is_exact=False)
    cuts = candidate_cuts(squares, scale)
    chain = best_of_beams(squares, cuts, generator, num_restarts, beam_width)
    found_scale = witness_scale(squares, chain, scale)
    return EluderDimension(len(chain.inputs), chain.inputs, found_scale, is_exact=False)


def best_of_beams(
    squares: Floats,
    cuts: Floats,
    generator: torch.Generator,
    num_restarts: int = 16,
    beam_width: int = 4,
) -> Chain:
    """The longest chain of one beam search at each of `num_restarts` cuts."""
    search = BeamSearch(squares, beam_width, generator)
    chains = [search.chain(cut) for cut in sampled_cuts(cuts, num_restarts, generator)]
    return max(chains, key=lambda chain: len(chain.inputs))


def witness_scale(squares: Floats, chain: Chain, scale: float) -> float:
    """An eps' at which `chain` is independent: the midpoint of the interval of such eps'.

    Each step uses the pair with the smallest sum. The eps' lie between the largest of these sums
    and the smallest difference at the next input.
    """
    largest_sum, smallest_square = scale**2, np.inf
    for position, x in enumerate(chain.inputs):
        separating = squares[squares[:, x] >= chain.cut]
        sums = separating[:, chain.inputs[:position]].sum(axis=1)
        largest_sum = max(largest_sum, sums.min())
        smallest_square = min(smallest_square, separating[sums.argmin(), x])
    return float((np.sqrt(largest_sum) + np.sqrt(smallest_square)) / 2)


def sampled_squares(
    table: Floats, scale: float, generator: torch.Generator, max_pairs: int
) -> Floats:
    """Squared differences [pair, input] of all pairs, or of `max_pairs` drawn ones."""
    num_functions = len(table)
    if num_functions * (num_functions - 1) // 2 <= max_pairs:
        return squared_differences(table, scale)
    first = torch.randint(num_functions, (max_pairs,), generator=generator)
    step = torch.randint(1, num_functions, (max_pairs,), generator=generator)
    second = (first + step) % num_functions
    return useful_squares(np.square(table[first.numpy()] - table[second.numpy()]), scale)


def sampled_cuts(cuts: Floats, num_restarts: int, generator: torch.Generator) -> list[float]:
    """One random cut from each of `num_restarts` equal parts of the candidates."""
    offsets = torch.rand(num_restarts, generator=generator, dtype=torch.float64)
    positions = (offsets + torch.arange(num_restarts)) / num_restarts * len(cuts)
    return [float(cuts[int(position)]) for position in positions]


def sum_class(values: Table, num_tasks: int) -> Floats:
    """Values of g(x_1, ..., x_M) = sum_i f_i(x_i) where the f_i share a representation.

    Lemma 2 of the paper bounds widths by the eluder dimension of this class. A member has one
    representation and one head per task. O((heads inputs)^M) numbers.

    Args:
        values: [representation, head, input], the values of every head on every representation.
        num_tasks: M.

    Returns:
        [member, tuple of inputs], tuples (x_1, ..., x_M) in lexicographic order.
    """
    require_counts(num_tasks=num_tasks)
    table = finite_table(values, "representation", "head", "input")
    size = len(table) * (table.shape[1] * table.shape[2]) ** num_tasks
    if size > MAX_SUMS:
        raise InvalidInputError(
            f"the sum class of {num_tasks} tasks has {size:.3g} values, more than the limit of "
            f"{MAX_SUMS}; use fewer heads, inputs or tasks"
        )
    sums = table
    for _ in range(num_tasks - 1):
        sums = sums[:, :, None, :, None] + table[:, None, :, None, :]
        sums = sums.reshape(len(table), sums.shape[1] * sums.shape[2], -1)
    return sums.reshape(-1, sums.shape[-1])


def lemma_2_example(num_tasks: int, *, equal_inputs: bool = False) -> Floats:
    """A sum class of linear functions whose eluder dimension contradicts Lemma 2 for M >= 2.

    Two input dimensions, one feature: phi(x) = <b, x> with b at 0, 45, 90 or 135 degrees, heads
    -1, 0 or 1, inputs e_1, e_2 or 0 for each task, not 0 for all. At small scales the dimension
    is 2 for one task, as for one linear function, but 8 = the number of inputs for two; with
    `equal_inputs` (x_1 = ... = x_M, where the identity in the proof holds) it is 2 again. The
    construction is ours. O(4 * 9^M) numbers.

    Returns:
        [member, tuple of inputs], see `sum_class`.
    """
    angles = np.arange(4) * np.pi / 4
    directions = np.stack([np.cos(angles), np.sin(angles)], axis=1)  # [representation, input dim]
    inputs = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    features = directions @ inputs.T  # [representation, input]
    heads = np.array([-1.0, 0.0, 1.0])
    sums = sum_class(heads[:, None] * features[:, None, :], num_tasks)
    if not equal_inputs:
        return sums[:, 1:]
    step = sum(len(inputs) ** task for task in range(num_tasks))
    return sums[:, [step, 2 * step]]


def require_inputs(table: Floats, indices: Sequence[int]) -> None:
    """Refuse indices that are not inputs of the table."""
    num_inputs = table.shape[1]
    for index in indices:
        if not (0 <= index < num_inputs and index == int(index)):
            raise InvalidInputError(
                f"inputs are numbered 0 to {num_inputs - 1}, got predecessor or x = {index}"
            )


def require_small(num_functions: int, num_inputs: int) -> None:
    """Refuse sizes that are too large for the exact search."""
    if num_inputs > MAX_INPUTS or num_functions > MAX_FUNCTIONS:
        raise InvalidInputError(
            f"the exact eluder dimension takes at most {MAX_INPUTS} distinct inputs and "
            f"{MAX_FUNCTIONS} distinct functions, got {num_inputs} and {num_functions}; "
            "eluder_lower_bound takes any size"
        )
