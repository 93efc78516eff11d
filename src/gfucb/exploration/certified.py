"""Optimism with a certificate: a direction from the linearised set, a step length from the set."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from gfucb.core.action_sets import ActionSets
from gfucb.core.protocols import ActionSelector
from gfucb.core.records import Selection
from gfucb.exploration.last_layer import LastLayer
from gfucb.exploration.tangent import Tangent, validate_sketch_settings
from gfucb.models import ConfidenceSet, MultiheadFunction
from gfucb.models.gradients import network_of
from gfucb.models.tangents import WeightSketch

# Doublings and bisections of the step length.
BISECTIONS = 20
DOUBLINGS = 20


@dataclass(frozen=True)
class Certified(ActionSelector):
    """A member of the confidence set, found along the optimistic direction of `Linearised`.

    The steps of weights and heads of `Linearised` define a line through the fit. Doubling and
    bisection find the largest step whose function has a distance within the squared radius,
    measured on the network itself. The most optimistic heads on the representation of the fit
    (`LastLayer`) are a member too, and the better of the two is returned. The result is never
    less optimistic than `LastLayer` and never outside the set. Cost: `Linearised` plus about 30
    passes of the network over the data.

    Args:
        sketch: the random projection of gradients in the weights.
        weight_ridge: ridge on the weights, see `Arrowhead`.
    """

    sketch: WeightSketch = field(default_factory=WeightSketch)
    weight_ridge: float = 10.0

    def __post_init__(self) -> None:
        validate_sketch_settings(self.sketch, self.weight_ridge)

    @property
    def weight_statistics(self) -> WeightSketch:
        """The agent maintains the Gram matrix of sketched gradients."""
        return self.sketch

    def __call__(self, confidence_set: ConfidenceSet, action_sets: ActionSets) -> Selection:
        """Return a member of the set and actions, at least as optimistic as `LastLayer`."""
        by_heads = LastLayer()(confidence_set, action_sets)
        radius = confidence_set.squared_radius
        if radius == 0 or len(confidence_set.data) == 0:
            return by_heads
        tangent = Tangent.at(confidence_set, action_sets, self.sketch, self.weight_ridge)
        actions, _ = tangent.best_tuple(radius)
        member = self._farthest(confidence_set, *tangent.step(actions, radius))
        values = action_sets.values_of(member)
        actions = action_sets.best_actions(values)
        optimistic = values.gather(1, actions[:, None]).squeeze(1)
        if float(optimistic.sum()) <= float(by_heads.values.sum()):
            return by_heads
        widths = tangent.selection(actions, torch.zeros_like(optimistic), radius)
        return replace(
            widths,
            function=member,
            values=optimistic,
            squared_distance=confidence_set.squared_distance(member),
        )

    def _farthest(
        self, confidence_set: ConfidenceSet, head_steps: Tensor, weight_steps: Tensor
    ) -> MultiheadFunction:
        """The member with the largest step along a direction."""
        center = confidence_set.center
        phi = network_of(center)
        lifted = self.sketch.lifted(phi, weight_steps)

        def at(length: float) -> MultiheadFunction:
            moved = phi.copy()
            with torch.no_grad():
                for weight, step in zip(moved.module.parameters(), lifted, strict=True):
                    weight.add_(step, alpha=length)
            heads = center.heads + length * head_steps
            return replace(center, representation=moved, heads=heads)

        return at(_largest_inside(lambda length: _is_inside(confidence_set, at(length))))


def _is_inside(confidence_set: ConfidenceSet, function: MultiheadFunction) -> bool:
    """Membership without the tolerance for rounding of `ConfidenceSet.contains`."""
    bound = confidence_set.head_norm_bound
    if bound is not None and float(function.heads.norm(dim=-1).max()) > bound:
        return False
    return confidence_set.squared_distance(function) <= confidence_set.squared_radius


def _largest_inside(is_inside: Callable[[float], bool]) -> float:
    """The largest length found inside, by doubling from 1 and bisection; 0 if none is."""
    low, high = 0.0, 1.0
    for _ in range(DOUBLINGS):
        if not is_inside(high):
            break
        low, high = high, 2 * high
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if is_inside(middle) else (low, middle)
    return low
