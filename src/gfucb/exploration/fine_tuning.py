"""The paper's optimism for networks (section 6.2): fine-tune the fit until it optimistic_values.

The paper minimises  -sum_i f_i(A_i) + lambda max(0, |f - fit|^2_data - B_t)  by SGD. Read
literally that leaves the set (the penalty's curvature grows with the data, the learning rate
does not) or never meets it (with the mean in place of the sum); `docs/algorithm.md` has the
measurement. `FineTuning.stable()` is the smallest repair that does what was meant.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor

from gfucb.core.errors import InvalidInputError
from gfucb.core.records import ActionSets, Selection
from gfucb.models import (
    ConfidenceSet,
    MultiheadFunction,
    NeuralRepresentation,
)
from gfucb.models.heads import shorten
from gfucb.models.nn.cuda_graphs import CudaGraphed

Weights = list[Tensor]  # the module's parameters, then the heads
BISECTIONS = 20


@dataclass(frozen=True)
class FineTuning:
    """Gradient steps from the center on  -sum_e max_a f(x_ea) + penalty * violation(f).

    The best action is taken anew at every step: for a fixed f the argmax over tuples separates
    over entries, so K^M problems become one.

    Args:
        excess: how the violation is measured, D being the squared distance to the center and B
            the squared radius: `sum` max(0, D - B), `mean` max(0, D/n - B), `relative`
            gain * max(0, D/B - 1), where gain is the optimistic_value won so far. On the border of an
            ellipsoid the multiplier of D/B - 1 is half the gain, so there any penalty above 1/2
            holds, whatever the scale of rewards and data.
        feasible_only: return the best iterate inside the set, pulled back along the line to the
            center if it was outside; otherwise the last iterate, wherever it is.
        decays: the learning rate falls linearly to zero, so that the search settles on the
            border instead of bouncing off it.
    """

    learning_rate: float
    penalty: float
    excess: Literal["sum", "mean", "relative"]
    feasible_only: bool
    optimiser: Literal["sgd", "adam"] = "sgd"
    decays: bool = False
    iterations: int = 200

    @classmethod
    def literal_sum(cls, iterations: int = 200) -> FineTuning:
        """As printed, the norm being a sum over the data as it is defined."""
        return cls(5e-4, 30.0, "sum", feasible_only=False, iterations=iterations)

    @classmethod
    def literal_mean(cls, iterations: int = 200) -> FineTuning:
        """As printed, with the mean over the data instead of the sum."""
        return cls(5e-4, 30.0, "mean", feasible_only=False, iterations=iterations)

    @classmethod
    def stable(cls, iterations: int = 200) -> FineTuning:
        """A penalty without a scale, steps without a scale, and only feasible answers."""
        # Paper: SGD with lr 5e-4 and penalty 30 on the sum leaves the set at t = 200. Measuring
        # the constraint in units of its radius and of the optimistic_value won, and dividing the gradient by
        # its size (Adam), makes the search independent of how much data there is.
        return cls(
            learning_rate=1e-2,
            penalty=2.0,
            excess="relative",
            feasible_only=True,
            optimiser="adam",
            decays=True,
            iterations=iterations,
        )

    def __call__(self, confidence_set: ConfidenceSet, action_sets: ActionSets) -> Selection:
        """Fine-tune a copy of the center and return it with the actions it likes best."""
        center = confidence_set.center
        if not isinstance(center.representation, NeuralRepresentation):
            raise InvalidInputError(
                "fine-tuning needs a NeuralRepresentation, "
                f"got {type(center.representation).__name__}; use LastLayer or ExactFinite"
            )
        tuned = self._tune(confidence_set, action_sets)
        values = action_sets.values_of(tuned)
        actions = action_sets.best_actions(values)
        return Selection(
            function=tuned,
            actions=actions,
            values=values[torch.arange(len(actions)), actions],
            squared_distance=confidence_set.squared_distance(tuned),
            squared_radius=confidence_set.squared_radius,
        )

    def _tune(self, confidence_set: ConfidenceSet, action_sets: ActionSets) -> MultiheadFunction:
        radius = confidence_set.squared_radius
        if radius == 0:
            return confidence_set.center
        if self.excess != "relative":
            confidence_set = replace(confidence_set, ridge=0.0)  # the set as it is printed
        iterate = _Iterate(confidence_set, action_sets)
        with torch.no_grad():
            hope_at_center, _ = iterate.value_and_distance()
        inside, outside = _Best(iterate), _Best(iterate)
        previous, is_alive = iterate.snapshot(), torch.ones_like(hope_at_center, dtype=torch.bool)
        rate = torch.tensor(self.learning_rate, device=hope_at_center.device)
        optimiser = self._optimiser([w for w in iterate.weights if w.requires_grad], rate)

        def look() -> tuple[Tensor, Tensor]:
            """Hope and distance, and who has the largest optimistic_value so far."""
            optimistic_value, distance = iterate.value_and_distance()
            # The literal presets can run away; the last numbers there are get returned, and
            # the violation they report tells the rest.
            is_alive.logical_and_(torch.isfinite(optimistic_value + distance))
            inside.offer(iterate, optimistic_value, is_alive & (distance <= radius))
            outside.offer(iterate, optimistic_value, is_alive & (distance > radius))
            return optimistic_value, distance

        def step() -> None:
            """Look, then move; nothing here waits for the device."""
            optimistic_value, distance = look()
            violation = self._violation(
                distance, confidence_set, optimistic_value.detach() - hope_at_center
            )
            optimiser.zero_grad()
            (self.penalty * violation - optimistic_value).backward()
            _replace_where(is_alive, previous, iterate.weights)
            optimiser.step()
            if confidence_set.head_norm_bound is not None:
                shorten(iterate.heads, confidence_set.head_norm_bound)

        # With a norm bound heads are found by search, which does look at the device.
        is_bounded = confidence_set.head_norm_bound is not None
        repeated = step if is_bounded else CudaGraphed(step, rate.device)
        for done in range(self.iterations):
            if self.decays:
                rate.fill_(self.learning_rate * (1 - done / self.iterations))
            repeated()
        with torch.no_grad():
            look()
        _replace_where(~is_alive, iterate.weights, previous)
        if self.feasible_only:
            # Paper: which iterate is used is not said; the last one need not be in the set.
            _pull_back(iterate, outside.weights, inside, radius)
            iterate.restore(inside.weights)
        return iterate.function()

    def _optimiser(self, weights: Weights, rate: Tensor) -> torch.optim.Optimizer:
        if self.optimiser == "sgd":
            return torch.optim.SGD(weights, lr=self.learning_rate, fused=True)
        return torch.optim.Adam(weights, lr=rate, fused=True, capturable=rate.is_cuda)

    def _violation(self, distance: Tensor, confidence_set: ConfidenceSet, gain: Tensor) -> Tensor:
        radius = confidence_set.squared_radius
        if self.excess == "relative":
            return gain.abs() * (distance / radius - 1).clamp_min(0)
        if self.excess == "mean":
            return (distance / max(1, len(confidence_set.data)) - radius).clamp_min(0)
        return (distance - radius).clamp_min(0)


class _Iterate:
    """The function being tuned: a copy of the center whose weights may move."""

    def __init__(self, confidence_set: ConfidenceSet, action_sets: ActionSets) -> None:
        center = confidence_set.center
        assert isinstance(center.representation, NeuralRepresentation)
        self.confidence_set, self.action_sets = confidence_set, action_sets
        self.representation = center.representation.copy()
        self.representation.module.eval()
        self.heads = center.heads.clone().requires_grad_()
        self.weights: Weights = [*self.representation.module.parameters(), self.heads]

    def value_and_distance(self) -> tuple[Tensor, Tensor]:
        """sum_e max_a f(x_ea), and the squared distance to the center; both differentiable."""
        action_sets, data, offset = (
            self.action_sets,
            self.confidence_set.data,
            self.confidence_set.center.offset,
        )
        # In one pass: for small networks the number of passes is what takes time.
        inputs = torch.cat([action_sets.items, data.inputs])
        asked, seen = (
            self.representation(inputs).to(torch.float64).tensor_split([len(action_sets.items)])
        )
        features = action_sets.by_candidate(asked)
        values = offset + (features * self.heads[action_sets.tasks][:, None]).sum(-1)
        # Paper: one problem for each of K^M tuples. For a fixed f the best tuple is the best
        # action of each entry, so maximising over f the sum of maxima solves them all at once.
        optimistic_value = values.masked_fill(~action_sets.available, -torch.inf).amax(1).sum()
        return optimistic_value, self.confidence_set.squared_distance_of(seen, self.heads)

    def snapshot(self) -> Weights:
        return [w.detach().clone() for w in self.weights]

    def restore(self, weights: Weights) -> None:
        with torch.no_grad():
            for mine, saved in zip(self.weights, weights, strict=True):
                mine.copy_(saved)

    def function(self) -> MultiheadFunction:
        center = self.confidence_set.center
        return replace(center, representation=self.representation, heads=self.heads.detach())


class _Best:
    """The weights with the largest optimistic_value among those offered; those it begins with otherwise."""

    def __init__(self, iterate: _Iterate) -> None:
        self.weights = iterate.snapshot()
        self.optimistic_value = torch.full_like(iterate.heads[0, 0].detach(), -torch.inf)

    def offer(self, iterate: _Iterate, optimistic_value: Tensor, is_allowed: Tensor) -> None:
        is_better = is_allowed & (optimistic_value.detach() > self.optimistic_value)
        _replace_where(is_better, [self.optimistic_value], [optimistic_value])
        _replace_where(is_better, self.weights, iterate.weights)


def _replace_where(is_so: Tensor, mine: Weights, others: Weights) -> None:
    """Take over the others' values if a condition on the device holds, without asking it."""
    with torch.no_grad():
        for one, other in zip(mine, others, strict=True):
            one.copy_(torch.where(is_so, other, one))


def _pull_back(iterate: _Iterate, outside: Weights, inside: _Best, radius: float) -> None:
    """Bisect from the center towards `outside` for the border; offer what is found to `inside`."""
    center, low, high = iterate.confidence_set.center, 0.0, 1.0
    assert isinstance(center.representation, NeuralRepresentation)
    begin = [*center.representation.module.parameters(), center.heads]
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        iterate.restore([b + middle * (o - b) for b, o in zip(begin, outside, strict=True)])
        with torch.no_grad():
            optimistic_value, distance = iterate.value_and_distance()
        inside.offer(iterate, optimistic_value, distance <= radius)
        low, high = (middle, high) if distance <= radius else (low, middle)
