"""Whether latent classes or cells describe the pairs of an environment better."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gfucb.episodic.class_data import ClassData, sums_by
from gfucb.episodic.class_model import CONCENTRATION, ClassModel, regress
from gfucb.episodic.distinct_rows import Floats, Integers
from gfucb.episodic.latent_classes import LatentClasses, design_of, log_softmax
from gfucb.episodic.observation_table import ObservationTable

# Pairs are divided into so many parts to see whether inputs predict the classes of new pairs.
FOLDS = 5
# Gains count if they exceed so many standard errors.
STANDARD_ERRORS = 2.5


def explains_new_pairs(model: ClassModel) -> bool:
    """Whether inputs predict the classes of pairs that the regression was not fitted to.

    Inputs that only name a pair, such as one-hot vectors, do not. The classes are those that
    follow from next states and rewards alone.
    """
    shares, design = model.shares_without_inputs(), model.design
    shares = model.data.by_pair(model.data.counts[:, None] * shares)
    folds = np.arange(len(shares)) % FOLDS
    gains = np.zeros(len(shares))
    for fold in range(FOLDS):
        is_new = folds == fold
        rest = shares * ~is_new[:, None]
        weights = regress(design, rest, np.zeros_like(model.weights), 8)
        base = log_softmax(np.log(rest.sum(axis=0) + 1.0))
        new = log_softmax(design[is_new] @ weights) - base
        gains[is_new] = (shares[is_new] * new).sum(axis=1)
    return bool(gains.sum() > STANDARD_ERRORS * np.sqrt((gains**2).sum()))


def one_step_ahead(
    classes: LatentClasses,
    tables: Sequence[ObservationTable],
    num_tasks: int,
    sizes: Sequence[int],
) -> float:
    """How much better classes predicted the next states after the first `sizes` transitions.

    The difference of log likelihoods from the prediction of cells: the frequencies of the pair,
    shrunk towards those of its task and stage.
    """
    old = ClassData.of(tables, num_tasks, ends=sizes)
    new = ClassData.of(tables, num_tasks, starts=sizes)
    design = design_of(old.inputs, classes.center, classes.transform)
    model = ClassModel.from_weights(old, design, classes.weights, classes.noise).iterate(3)
    goes_on = new.goes_on[:, 0] > 0
    groups, weights = new.groups[goes_on], old.counts[:, None] * old.goes_on
    limit = int(max(old.next_states.max(initial=0), new.next_states.max(initial=0))) + 2
    both = (
        old.groups * limit + old.next_states,
        new.groups[goes_on] * limit + new.next_states[goes_on],
    )
    prior = CONCENTRATION * np.maximum(old.num_next, new.num_next)[groups]

    of_class = _matching(*both, weights * model.shares)
    totals = old.by_group(weights * model.shares)[groups]
    phi = classes.features(new.inputs)[new.pairs[goes_on]]
    by_class = (phi * (of_class + CONCENTRATION) / (totals + prior[:, None])).sum(axis=1)

    marginal = _matching(*both, weights)[:, 0] + CONCENTRATION
    marginal /= old.by_group(weights)[groups, 0] + prior
    keys = int(max(old.keys.max(initial=0), new.keys.max(initial=0))) + 1
    pairs = (old.groups * keys + old.keys, new.groups[goes_on] * keys + new.keys[goes_on])
    triples = (pairs[0] * limit + old.next_states, pairs[1] * limit + new.next_states[goes_on])
    by_cell = _matching(*triples, weights)[:, 0] + prior * marginal
    by_cell /= _matching(*pairs, weights)[:, 0] + prior
    return float(new.counts[goes_on] @ np.log(by_class / by_cell))


def _matching(known: Integers, wanted: Integers, values: Floats) -> Floats:
    """Sums of the values [row, column] whose code is `known` [row], for `wanted` codes [n]."""
    codes, inverse = np.unique(known, return_inverse=True)
    sums = sums_by(inverse.reshape(-1), values, len(codes))
    positions = np.minimum(np.searchsorted(codes, wanted), len(codes) - 1)
    return np.where((codes[positions] == wanted)[:, None], sums[positions], 0.0)
