"""Optimism over heads and weights together, on the fit's tangent: closed forms.

Linearised at the fit, the confidence set is an ellipsoid whose Gram matrix G is an arrowhead
(`Arrowhead`). A tuple of actions has the gradient g = sum of its entries' gradients, and

    `Linearised`   sum of means + sqrt(squared_radius * g^T G^-1 g)      the supremum
    `Gradient`     sum of means + sqrt(squared_radius) |g|^2 / sqrt(g^T G g)   along g alone

The first is the best any member of the linearised set can prediction, the second what moving along
the raw gradient until the radius is spent gives: no solve, and never more than the first.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gfucb.core.records import ActionSets, Prediction, Selection
from gfucb.models import ConfidenceSet
from gfucb.models.gradients import WeightSketch
from gfucb.models.tangents import Arrowhead

# Tuples listed to make the joint choice exact; above, coordinate ascent.
LARGEST_LISTING = 4096
SWEEPS = 20


@dataclass(frozen=True)
class Linearised:
    """The most optimistic heads and weights, to first order around the fit.

    The squared width of an input splits into what its task does not know of its head and what
    nobody knows of the representation; both are reported. The joint choice is the maximisation
    of a linear function plus the square root of a quadratic: by listing where the tuples are
    few, otherwise by coordinate ascent from the best actions taken alone, which ends where no
    single change helps. Cost: K M gradients of the network, O(M (k^3 + s^2 k) + s^3 + sweeps M K
    (s + k)) arithmetic, whatever the number of samples. No guarantee away from the tangent: see
    `Certified`.

    Args:
        sketch: how gradients in the weights are shortened.
        weight_ridge: ridge on the weights, see `Arrowhead`; the smaller, the farther the weights may go.
            Too small and every input gets the same saturated bonus_scale.
        joint: one radius for all entries together, as in Algorithm 1; False gives each row the
            whole radius.
    """

    sketch: WeightSketch = field(default_factory=WeightSketch)
    weight_ridge: float = 10.0
    joint: bool = True

    def __call__(self, confidence_set: ConfidenceSet, action_sets: ActionSets) -> Selection:
        """Choose actions and what the linearised set bounds for them."""
        tangent = Tangent.at(confidence_set, action_sets, self.sketch, self.weight_ridge)
        radius = confidence_set.squared_radius
        if self.joint:
            actions, is_exact = tangent.best_tuple(radius)
            bonuses = tangent.bonuses(actions, radius)
            return tangent.choice(actions, bonuses, radius, is_exact=is_exact)
        actions = action_sets.best_actions(tangent.solo_values(radius))
        return tangent.choice(actions, tangent.solo_bonuses(actions, radius), radius)


@dataclass(frozen=True)
class Gradient:
    """Hope along the raw gradient of each input: the cheapest bonus that sees the weights.

    sqrt(squared_radius) |g|^2 / sqrt(g^T G g), each row alone. With squared radii of the
    scale printed in section 6.2 it is close to what fine-tuning by plain SGD reaches.

    Args:
        sketch: how gradients in the weights are shortened.
        weight_ridge: ridge on the weights, see `Arrowhead`.
    """

    sketch: WeightSketch = field(default_factory=WeightSketch)
    weight_ridge: float = 10.0
    joint: ClassVar[bool] = False

    def __call__(self, confidence_set: ConfidenceSet, action_sets: ActionSets) -> Selection:
        """Choose, in each row, the action whose own gradient bounds most."""
        tangent = Tangent.at(confidence_set, action_sets, self.sketch, self.weight_ridge)
        radius = confidence_set.squared_radius
        widths = tangent.gradient_widths()
        actions = action_sets.best_actions(tangent.means + (radius * widths).sqrt())
        chosen = widths.gather(1, actions[:, None]).squeeze(1)
        return tangent.choice(actions, (radius * chosen).sqrt(), radius, squared_widths=chosen)


@dataclass(frozen=True, eq=False)
class Tangent:
    """The linearised problem of one action_sets.

    Attributes:
        means: values of the fit, [row, action]; minus infinity where nothing is offered.
        own, shared: whitened gradients, see `Arrowhead.whiten`.
    """

    confidence_set: ConfidenceSet
    action_sets: ActionSets
    arrowhead: Arrowhead
    features: Tensor
    sketches: Tensor
    means: Tensor
    own: Tensor
    shared: Tensor

    @classmethod
    def at(
        cls,
        confidence_set: ConfidenceSet,
        action_sets: ActionSets,
        sketch: WeightSketch,
        weight_ridge: float,
    ) -> Tangent:
        """Linearise at the center of the set, for the candidates of a action_sets."""
        center = confidence_set.center
        arrowhead = confidence_set.arrowhead(sketch, weight_ridge)
        features = action_sets.features(center.representation)
        tasks = action_sets.tasks.repeat_interleave(features.shape[1])
        sketches = sketch.of(center, action_sets.candidates.flatten(0, 1), tasks)
        sketches = sketches.unflatten(0, features.shape[:2])
        if not arrowhead.sees_weights:
            sketches = torch.zeros_like(sketches)
        own, shared = arrowhead.whiten(sketches, features, action_sets.tasks)
        means = center.values_of_features(features, action_sets.tasks[:, None])
        means = means.masked_fill(~action_sets.available, -torch.inf)
        return cls(confidence_set, action_sets, arrowhead, features, sketches, means, own, shared)

    def solo_values(self, squared_radius: float) -> Tensor:
        """Mean plus bonus of each candidate alone: [row, action]."""
        return self.means + (squared_radius * self._squared_widths()).sqrt()

    def solo_bonuses(self, actions: Tensor, squared_radius: float) -> Tensor:
        """Bonus of each chosen candidate alone: [row]."""
        return (squared_radius * self._taken(self._squared_widths(), actions)).sqrt()

    def gradient_widths(self) -> Tensor:
        """Squared width along the gradient itself: [row, action]."""
        sizes = self.features.square().sum(-1) + self.sketches.square().sum(-1)
        lengths = self.arrowhead.squared_lengths(
            self.features, self.sketches, self.action_sets.tasks
        )
        return sizes.square() / lengths.clamp_min(torch.finfo(lengths.dtype).tiny)

    def bonuses(self, actions: Tensor, squared_radius: float) -> Tensor:
        """What the best member for a tuple adds to the fit in each row: [row].

        With g the gradient of the tuple the member moves row e by g_e^T G^-1 g, scaled so
        that the radius is spent.
        """
        own, shared = self._chosen(actions)
        own_sum, shared_sum = self._sums(own, shared)
        moves = (own * own_sum[self.action_sets.tasks]).sum(-1) + shared @ shared_sum
        total = moves.sum()
        return moves * (squared_radius / total).sqrt() if total > 0 else torch.zeros_like(moves)

    def step(self, actions: Tensor, squared_radius: float) -> tuple[Tensor, Tensor]:
        """The most optimistic step for a tuple: of heads [task, feature], of weights [sketch]."""
        own, shared = self._sums(*self._chosen(actions))
        squared_length = own.square().sum() + shared.square().sum()
        scale = (squared_radius / squared_length).sqrt() if squared_length > 0 else 0.0
        return self.arrowhead.steps(own * scale, shared * scale)

    def best_tuple(self, squared_radius: float) -> tuple[Tensor, bool]:
        """Actions [row] with the largest joint value, and whether that is certain."""
        problem = _JointProblem(
            self.means.cpu().numpy(),
            self.own.cpu().numpy(),
            self.shared.cpu().numpy(),
            self.action_sets.tasks.cpu().numpy(),
            squared_radius,
        )
        start = self.action_sets.best_actions(self.solo_values(squared_radius)).cpu().numpy()
        actions, is_exact = problem.solve(start)
        return torch.as_tensor(actions, device=self.means.device), is_exact

    def choice(
        self,
        actions: Tensor,
        bonuses: Tensor,
        squared_radius: float,
        *,
        squared_widths: Tensor | None = None,
        is_exact: bool = False,
    ) -> Selection:
        """The answer; its values are those of the tangent, not of any one network."""
        own, shared = self._chosen(actions)
        of_representation = shared.square().sum(-1)
        if squared_widths is None:
            squared_widths = own.square().sum(-1) + of_representation
        estimates = self._taken(self.means, actions)
        return Selection(
            function=self.confidence_set.center,
            actions=actions,
            values=estimates + bonuses,
            squared_distance=squared_radius,
            squared_radius=squared_radius,
            prediction=Prediction(estimates, squared_widths),
            is_exact=is_exact,
            representation_widths=of_representation,
        )

    def _squared_widths(self) -> Tensor:
        return self.own.square().sum(-1) + self.shared.square().sum(-1)

    def _taken(self, values: Tensor, actions: Tensor) -> Tensor:
        return values.gather(1, actions[:, None]).squeeze(1)

    def _chosen(self, actions: Tensor) -> tuple[Tensor, Tensor]:
        rows = torch.arange(len(actions))
        return self.own[rows, actions], self.shared[rows, actions]

    def _sums(self, own: Tensor, shared: Tensor) -> tuple[Tensor, Tensor]:
        num_tasks = self.confidence_set.center.num_tasks
        by_task = own.new_zeros(num_tasks, own.shape[1]).index_add(0, self.action_sets.tasks, own)
        return by_task, shared.sum(0)


Floats = NDArray[np.float64]
Indices = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class _JointProblem:
    """max over tuples of sum mean + sqrt(radius (sum_task |sum own|^2 + |sum shared|^2))."""

    means: Floats  # [row, action]
    own: Floats  # [row, action, feature]
    shared: Floats  # [row, action, sketch]
    tasks: Indices  # [row]
    squared_radius: float

    def solve(self, start: Indices) -> tuple[Indices, bool]:
        offered = [np.flatnonzero(np.isfinite(row)) for row in self.means]
        if np.prod([float(len(o)) for o in offered]) <= LARGEST_LISTING:
            tuples = [np.array(t, dtype=np.intp) for t in itertools.product(*offered)]
            return max(tuples, key=self.value), True
        return self._ascend(start), False

    def value(self, actions: Indices) -> float:
        """The joint value of a tuple [row]."""
        rows = np.arange(len(actions))
        own_sum = np.zeros((int(self.tasks.max()) + 1, self.own.shape[-1]))
        np.add.at(own_sum, self.tasks, self.own[rows, actions])
        shared_sum = self.shared[rows, actions].sum(0)
        squared = np.square(own_sum).sum() + np.square(shared_sum).sum()
        return float(self.means[rows, actions].sum() + np.sqrt(self.squared_radius * squared))

    def _ascend(self, start: Indices) -> Indices:
        actions, rows = start.copy(), np.arange(len(start))
        own_sum = np.zeros((int(self.tasks.max()) + 1, self.own.shape[-1]))
        np.add.at(own_sum, self.tasks, self.own[rows, actions])
        shared_sum = self.shared[rows, actions].sum(0)
        squared_own = float(np.square(own_sum).sum())
        for _ in range(SWEEPS):
            changed = False
            for row, task in enumerate(self.tasks):
                before = actions[row]
                own_rest = own_sum[task] - self.own[row, before]
                shared_rest = shared_sum - self.shared[row, before]
                others = squared_own - float(np.square(own_sum[task]).sum())
                squared = (
                    others
                    + np.square(own_rest + self.own[row]).sum(-1)
                    + np.square(shared_rest + self.shared[row]).sum(-1)
                )
                values = self.means[row] + np.sqrt(self.squared_radius * squared)
                best = int(values.argmax())
                if values[best] > values[before] + 1e-12 * (1 + abs(values[before])):
                    actions[row], changed = best, True
                    own_sum[task] = own_rest + self.own[row, best]
                    shared_sum = shared_rest + self.shared[row, best]
                    squared_own = others + float(np.square(own_sum[task]).sum())
            if not changed:
                break
        return actions
