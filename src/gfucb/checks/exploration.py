"""The check of action selectors."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import torch
from torch import Tensor, nn

from gfucb.checks.assertions import (
    is_equal,
    require,
    tensors_of_data,
    tensors_of_function,
    uniform,
)
from gfucb.core.action_sets import ActionSets
from gfucb.core.protocols import ActionSelector
from gfucb.core.records import Selection
from gfucb.core.validation.components import validate_action_selector
from gfucb.models import (
    ConfidenceSet,
    HeadPenalty,
    HeadStatistics,
    MultiheadFunction,
    MultitaskDataset,
    NeuralRepresentation,
    features_of,
)

Case = tuple[ConfidenceSet, ActionSets]
INPUT_DIM, FEATURE_DIM, NUM_TASKS, NUM_ACTIONS = 3, 2, 3, 4


def check_action_selector(
    selector: ActionSelector, cases: Iterable[Case] | None = None, *, tolerance: float = 1e-6
) -> None:
    """Check an action selector on confidence sets and action sets.

    All selectors: available actions only, one for each row; the same selection for the same
    arguments, which are not changed; finite values; a function, where there is one, that has the
    reported values. With `returns_member`: the function is a member of the confidence set. With
    `is_optimistic`: the values sum to at least the best sum of the center's values.

    Args:
        selector: the implementation.
        cases: by default `selection_cases()`, on small networks.
        tolerance: relative, for values and membership.
    """
    validate_action_selector(selector)
    perturbation = selector.reward_perturbation
    is_deviation = math.isfinite(perturbation) and perturbation >= 0
    require(is_deviation, f"reward_perturbation must be at least 0, got {perturbation}")
    for confidence_set, action_sets in selection_cases() if cases is None else cases:
        before = _arguments(confidence_set, action_sets)
        selection = selector(confidence_set, action_sets)
        again = selector(confidence_set, action_sets)
        require(
            is_equal(before, _arguments(confidence_set, action_sets)),
            "the selector changed the confidence set or the action sets",
        )
        require(
            torch.equal(selection.actions, again.actions)
            and torch.equal(selection.values, again.values),
            "the same arguments gave two different selections",
        )
        _check_actions(selection, confidence_set, action_sets)
        _check_values(selection, action_sets, tolerance)
        if selector.returns_member:
            _check_member(selection, confidence_set, tolerance)
        if selector.is_optimistic:
            _check_optimism(selection, confidence_set, action_sets, tolerance)


def selection_cases() -> Iterator[Case]:
    """Confidence sets around fits of small networks, with action sets, for all selectors.

    They include radius zero, no data, actions that are not available, rows of some tasks only
    and several rows of one task.
    """
    all_tasks, some_tasks = torch.arange(NUM_TASKS), torch.tensor([2, 0])
    repeated = torch.tensor([1, 0, 1])
    for index, (num_samples, squared_radius, tasks) in enumerate(
        [
            (12, 0.0, all_tasks),
            (12, 0.3, all_tasks),
            (12, 4.0, some_tasks),
            (12, 0.3, repeated),
            (3, 1.0, all_tasks),
            (0, 1.0, all_tasks),
        ]
    ):
        available = uniform("available", index, len(tasks), NUM_ACTIONS) < 0.7
        available[:, index % NUM_ACTIONS] = True
        candidates = uniform("candidates", index, len(tasks), NUM_ACTIONS, INPUT_DIM)
        yield _confidence_set(num_samples, squared_radius), ActionSets(candidates, tasks, available)


def _confidence_set(num_samples: int, squared_radius: float) -> ConfidenceSet:
    data = MultitaskDataset(NUM_TASKS, torch.Size([INPUT_DIM]), torch.float64)
    tasks = torch.arange(num_samples) % NUM_TASKS
    inputs, rewards = uniform("inputs", 0, num_samples, INPUT_DIM), uniform("y", 0, num_samples)
    data.append(tasks, inputs, rewards)
    network = _network()
    features = features_of(network, inputs) if num_samples else inputs[:, :FEATURE_DIM]
    statistics = HeadStatistics.of(features, data.tasks, data.targets, NUM_TASKS)
    center = MultiheadFunction(network, statistics.heads(HeadPenalty()))
    return ConfidenceSet(center, data, squared_radius, ridge=1.0, members=[network])


def _network() -> NeuralRepresentation:
    module = nn.Sequential(nn.Linear(INPUT_DIM, 4), nn.Tanh(), nn.Linear(4, FEATURE_DIM)).double()
    with torch.no_grad():
        for index, parameter in enumerate(module.parameters()):
            parameter.copy_(2 * uniform("weights", index, *parameter.shape) - 1)
    return NeuralRepresentation(module)


def _arguments(confidence_set: ConfidenceSet, action_sets: ActionSets) -> dict[str, Tensor]:
    rows = {
        name: value.clone()
        for name, value in vars(action_sets).items()
        if isinstance(value, Tensor)
    }
    return tensors_of_function(confidence_set.center) | tensors_of_data(confidence_set.data) | rows


def _check_actions(
    selection: Selection, confidence_set: ConfidenceSet, action_sets: ActionSets
) -> None:
    rows, num_actions = action_sets.available.shape
    actions = selection.actions
    is_integer = not (actions.is_floating_point() or actions.dtype == torch.bool)
    require(
        is_integer and tuple(actions.shape) == (rows,),
        f"actions must be {rows} integers, got {actions.dtype} of shape {list(actions.shape)}",
    )
    require(
        bool(((actions >= 0) & (actions < num_actions)).all()), "an action is not in its action set"
    )
    is_available = action_sets.available.gather(1, actions[:, None])
    require(bool(is_available.all()), "an action that is not available was chosen")
    require(
        selection.squared_radius == confidence_set.squared_radius,
        "squared_radius of the selection is not that of the confidence set",
    )


def _check_values(selection: Selection, action_sets: ActionSets, tolerance: float) -> None:
    shape = tuple(selection.actions.shape)
    require(tuple(selection.values.shape) == shape, "values must have the shape of the actions")
    require(bool(selection.values.isfinite().all()), "values must be finite")
    if selection.function is not None:
        inputs = action_sets.inputs_of(selection.actions)
        values = selection.function.values(inputs, action_sets.tasks)
        require(
            torch.allclose(selection.values, values, rtol=tolerance, atol=tolerance),
            "the reported values are not those of the function; where no single function has "
            "them, the function must be None",
        )
    prediction = selection.prediction
    if prediction is not None:
        shapes = {tuple(prediction.mean.shape), tuple(prediction.variance.shape)}
        require(shapes == {shape}, "mean and variance of a prediction must have a value a row")
        require(bool((prediction.variance >= 0).all()), "a predicted variance is negative or NaN")


def _check_member(selection: Selection, confidence_set: ConfidenceSet, tolerance: float) -> None:
    require(
        selection.function is not None,
        "a selector with returns_member must return a function; if it does not always, set "
        "returns_member to False",
    )
    assert selection.function is not None
    require(
        confidence_set.contains(selection.function, tolerance=tolerance),
        f"the function is outside the confidence set: violation {selection.violation:.3g}; if that "
        "is intended, set returns_member to False",
    )


def _check_optimism(
    selection: Selection, confidence_set: ConfidenceSet, action_sets: ActionSets, tolerance: float
) -> None:
    values = action_sets.values_of(confidence_set.center)
    best = float(values.masked_fill(~action_sets.available, -torch.inf).amax(1).sum())
    total = float(selection.values.sum())
    require(
        total >= best - tolerance * (1 + abs(best)),
        f"the values sum to {total:.6g}, less than the {best:.6g} of the center; if that is "
        "intended, set is_optimistic to False",
    )
