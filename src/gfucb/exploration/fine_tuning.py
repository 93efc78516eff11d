"""The paper's optimism for networks (section 6.2): fine-tune the fit to larger values.

The paper minimises  -sum_i f_i(A_i) + lambda max(0, |f - fit|^2_data - B_t)  by SGD. As printed,
SGD leaves the set, because the curvature of the penalty grows with the data and the learning rate
does not. With the mean instead of the sum the constraint never binds. The measurements are in
`docs/explanation/algorithm.md`. `FineTuning.stable()` is the smallest change that stays in the set.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, get_args

import torch
from torch import Tensor

from gfucb.core.action_sets import ActionSets
from gfucb.core.protocols import ActionSelector
from gfucb.core.records import Selection
from gfucb.core.validation.settings import (
    validate_choice,
    validate_count,
    validate_flag,
    validate_not_negative,
)
from gfucb.models import ConfidenceSet, MultiheadFunction
from gfucb.models.gradients import network_of
from gfucb.models.heads import shorten
from gfucb.models.nn.cuda_graphs import CudaGraphed

Weights = list[Tensor]  # the module's parameters, then the heads
Excess = Literal["sum", "mean", "relative"]
Optimiser = Literal["sgd", "adam"]
BISECTIONS = 20


@dataclass(frozen=True)
class FineTuning(ActionSelector):
    """Gradient steps from the center on  -sum_row max_a f(x_row,a) + penalty * violation(f).

    Every step uses the best actions of the current f. For a fixed f the argmax over tuples
    separates over rows, so one problem replaces the K^M problems of the paper. Cost: `iterations`
    passes of the network over the data and the candidates, forward and backward.

    Args:
        learning_rate: of the optimiser.
        penalty: lambda.
        excess: how the violation is measured, D being the squared distance to the center and B
            the squared radius: `sum` max(0, D - B), `mean` max(0, D/n - B), `relative`
            gain * max(0, D/B - 1), where gain is the increase of the sum of values so far. On
            the boundary of an ellipsoid the multiplier of D/B - 1 is half the gain, so any
            penalty above 1/2 holds there, at every scale of rewards and data.
        feasible_only: return the best iterate inside the set. Iterates outside are moved along
            the line to the center until they are inside. If False, the last iterate is returned.
        optimiser: plain SGD, or Adam.
        decays: the learning rate decreases linearly to zero, so that the search converges to the
            boundary.
        iterations: number of gradient steps.
    """

    learning_rate: float
    penalty: float
    excess: Excess
    feasible_only: bool
    optimiser: Optimiser = "sgd"
    decays: bool = False
    iterations: int = 200

    def __post_init__(self) -> None:
        validate_not_negative(self.learning_rate, "learning_rate")
        validate_not_negative(self.penalty, "penalty")
        validate_choice(self.excess, "excess", get_args(Excess))
        validate_flag(self.feasible_only, "feasible_only")
        validate_choice(self.optimiser, "optimiser", get_args(Optimiser))
        validate_flag(self.decays, "decays")
        validate_count(self.iterations, "iterations", at_least=0)

    @property
    def returns_member(self) -> bool:
        """The last iterate need not be in the set."""
        return self.feasible_only

    @property
    def is_optimistic(self) -> bool:
        """The best feasible iterate has at least the values of the center, the first iterate."""
        return self.feasible_only

    @classmethod
    def literal_sum(cls, iterations: int = 200) -> FineTuning:
        """As printed; the norm is a sum over the data, as the paper defines it."""
        return cls(5e-4, 30.0, "sum", feasible_only=False, iterations=iterations)

    @classmethod
    def literal_mean(cls, iterations: int = 200) -> FineTuning:
        """As printed, with the mean over the data instead of the sum."""
        return cls(5e-4, 30.0, "mean", feasible_only=False, iterations=iterations)

    @classmethod
    def stable(cls, iterations: int = 200) -> FineTuning:
        """A scale-free penalty, scale-free steps, and only feasible results."""
        # Paper: SGD with lr 5e-4 and penalty 30 on the sum leaves the set at t = 200. Measuring
        # the constraint in units of its radius and of the gain in value, and dividing the
        # gradient by its size (Adam), makes the search independent of the amount of data.
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
        """Fine-tune a copy of the center and return it with its best actions."""
        network_of(confidence_set.center)  # refuses other representations
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
        if confidence_set.squared_radius == 0:
            return confidence_set.center
        if self.excess != "relative":
            confidence_set = replace(confidence_set, ridge=0.0)  # the set as it is printed
        search = _Search(self, confidence_set, action_sets)
        search.run()
        if self.feasible_only:
            # Paper: it does not say which iterate is used; the last one need not be in the set.
            search.move_into_set()
            search.iterate.restore(search.inside.weights)
        return search.iterate.function()

    def make_optimiser(self, weights: Weights, rate: Tensor) -> torch.optim.Optimizer:
        """The optimiser of `weights`; Adam reads its learning rate from the tensor `rate`."""
        if self.optimiser == "sgd":
            return torch.optim.SGD(weights, lr=self.learning_rate, fused=True)
        return torch.optim.Adam(weights, lr=rate, fused=True, capturable=rate.is_cuda)

    def violation(self, distance: Tensor, confidence_set: ConfidenceSet, gain: Tensor) -> Tensor:
        """The violation of the constraint, as `excess` measures it."""
        radius = confidence_set.squared_radius
        if self.excess == "relative":
            return gain.abs() * (distance / radius - 1).clamp_min(0)
        if self.excess == "mean":
            return (distance / max(1, len(confidence_set.data)) - radius).clamp_min(0)
        return (distance - radius).clamp_min(0)


class _Search:
    """The gradient search of one decision. All conditions stay on the device."""

    def __init__(
        self, method: FineTuning, confidence_set: ConfidenceSet, action_sets: ActionSets
    ) -> None:
        self.method, self.confidence_set = method, confidence_set
        self.iterate = _Iterate(confidence_set, action_sets)
        with torch.no_grad():
            self.value_of_center, _ = self.iterate.value_and_distance()
        self.inside, self.outside = _Best(self.iterate), _Best(self.iterate)
        self.last_finite = self.iterate.snapshot()
        self.is_finite = torch.ones_like(self.value_of_center, dtype=torch.bool)
        self.rate = torch.tensor(method.learning_rate, device=self.value_of_center.device)
        trainable = [weight for weight in self.iterate.weights if weight.requires_grad]
        self.optimiser = method.make_optimiser(trainable, self.rate)

    def run(self) -> None:
        """Make all steps. After numbers overflow, the last finite iterate remains."""
        # With a norm bound the heads are found by root search, which reads values on the CPU.
        is_bounded = self.confidence_set.head_norm_bound is not None
        step = self._step if is_bounded else CudaGraphed(self._step, self.rate.device)
        for done in range(self.method.iterations):
            if self.method.decays:
                self.rate.fill_(self.method.learning_rate * (1 - done / self.method.iterations))
            step()
        with torch.no_grad():
            self._evaluate()
        _replace_where(~self.is_finite, self.iterate.weights, self.last_finite)

    def _evaluate(self) -> tuple[Tensor, Tensor]:
        """Value and distance of the iterate, which is stored if it is the best so far."""
        value, distance = self.iterate.value_and_distance()
        radius = self.confidence_set.squared_radius
        # The literal presets can diverge. The violation of the last finite iterate reports it.
        self.is_finite.logical_and_(torch.isfinite(value + distance))
        self.inside.offer(self.iterate, value, self.is_finite & (distance <= radius))
        self.outside.offer(self.iterate, value, self.is_finite & (distance > radius))
        return value, distance

    def _step(self) -> None:
        value, distance = self._evaluate()
        gain = value.detach() - self.value_of_center
        violation = self.method.violation(distance, self.confidence_set, gain)
        self.optimiser.zero_grad()
        (self.method.penalty * violation - value).backward()
        _replace_where(self.is_finite, self.last_finite, self.iterate.weights)
        self.optimiser.step()
        if self.confidence_set.head_norm_bound is not None:
            shorten(self.iterate.heads, self.confidence_set.head_norm_bound)

    def move_into_set(self) -> None:
        """Bisect between the center and the best iterate outside; offer the results inside."""
        center, low, high = self.confidence_set.center, 0.0, 1.0
        start = [*network_of(center).module.parameters(), center.heads]
        for _ in range(BISECTIONS):
            middle = (low + high) / 2
            pairs = zip(start, self.outside.weights, strict=True)
            self.iterate.restore([s + middle * (o - s) for s, o in pairs])
            with torch.no_grad():
                value, distance = self.iterate.value_and_distance()
            is_inside = distance <= self.confidence_set.squared_radius
            self.inside.offer(self.iterate, value, is_inside)
            low, high = (middle, high) if is_inside else (low, middle)


class _Iterate:
    """The function being tuned: a copy of the center with trainable weights."""

    def __init__(self, confidence_set: ConfidenceSet, action_sets: ActionSets) -> None:
        center = confidence_set.center
        self.confidence_set, self.action_sets = confidence_set, action_sets
        self.representation = network_of(center).copy()
        self.representation.module.eval()
        self.heads = center.heads.clone().requires_grad_()
        self.weights: Weights = [*self.representation.module.parameters(), self.heads]

    def value_and_distance(self) -> tuple[Tensor, Tensor]:
        """sum_row max_a f(x_row,a), and the squared distance to the center; differentiable."""
        action_sets, data = self.action_sets, self.confidence_set.data
        offset = self.confidence_set.center.offset
        # One pass for both: for small networks the number of passes determines the time.
        inputs = torch.cat([action_sets.items, data.inputs])
        candidates, samples = (
            self.representation(inputs).to(torch.float64).tensor_split([len(action_sets.items)])
        )
        features = action_sets.by_candidate(candidates)
        values = offset + (features * self.heads[action_sets.tasks][:, None]).sum(-1)
        # Paper: one problem for each of K^M tuples. For a fixed f the best tuple is the best
        # action of each row, so maximising the sum of maxima over f solves all of them at once.
        value = values.masked_fill(~action_sets.available, -torch.inf).amax(1).sum()
        return value, self.confidence_set.squared_distance_of(samples, self.heads)

    def snapshot(self) -> Weights:
        return [w.detach().clone() for w in self.weights]

    def restore(self, weights: Weights) -> None:
        with torch.no_grad():
            for own, saved in zip(self.weights, weights, strict=True):
                own.copy_(saved)

    def function(self) -> MultiheadFunction:
        center = self.confidence_set.center
        return replace(center, representation=self.representation, heads=self.heads.detach())


class _Best:
    """The weights with the largest value among those offered; initially those of the center."""

    def __init__(self, iterate: _Iterate) -> None:
        self.weights = iterate.snapshot()
        self.value = torch.full_like(iterate.heads[0, 0].detach(), -torch.inf)

    def offer(self, iterate: _Iterate, value: Tensor, is_allowed: Tensor) -> None:
        is_better = is_allowed & (value.detach() > self.value)
        _replace_where(is_better, [self.value], [value])
        _replace_where(is_better, self.weights, iterate.weights)


def _replace_where(condition: Tensor, targets: Weights, sources: Weights) -> None:
    """Copy `sources` to `targets` if a condition on the device holds, without a transfer."""
    with torch.no_grad():
        for target, source in zip(targets, sources, strict=True):
            target.copy_(torch.where(condition, source, target))
