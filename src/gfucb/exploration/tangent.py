"""The confidence set linearised at the fit, for the candidates of one decision."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gfucb.core.action_sets import ActionSets
from gfucb.core.records import Prediction, Selection
from gfucb.core.validation.settings import validate_instance, validate_number
from gfucb.exploration.tangent_choice import TangentChoice
from gfucb.models import ConfidenceSet
from gfucb.models.tangents import Arrowhead, WeightSketch


@dataclass(frozen=True, eq=False)
class Tangent:
    """The linearised problem of one decision.

    Attributes:
        arrowhead: the factored Gram matrix of heads and weights.
        features: phi of the candidates, [row, action, feature].
        sketches: sketched gradients in the weights, [row, action, sketch].
        means: values of the fit, [row, action]; minus infinity for unavailable actions.
        own, shared: whitened gradients of heads and weights, see `Arrowhead.whiten`.
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
        """Linearise at the center of the set."""
        center = confidence_set.center
        arrowhead = confidence_set.arrowhead(sketch, weight_ridge)
        features = action_sets.features(center.representation)
        tasks = action_sets.tasks.repeat_interleave(features.shape[1])
        sketches = sketch.of(center, action_sets.candidates.flatten(0, 1), tasks)
        sketches = sketches.unflatten(0, features.shape[:2])
        if not arrowhead.has_weight_information:
            sketches = torch.zeros_like(sketches)
        own, shared = arrowhead.whiten(sketches, features, action_sets.tasks)
        means = center.values_of_features(features, action_sets.tasks[:, None])
        means = means.masked_fill(~action_sets.available, -torch.inf)
        return cls(confidence_set, action_sets, arrowhead, features, sketches, means, own, shared)

    def row_values(self, squared_radius: float) -> Tensor:
        """Mean plus bonus of each candidate with the whole radius: [row, action]."""
        return self.means + (squared_radius * self._squared_widths()).sqrt()

    def row_bonuses(self, actions: Tensor, squared_radius: float) -> Tensor:
        """Bonus of each chosen candidate with the whole radius: [row]."""
        return (squared_radius * self._chosen(self._squared_widths(), actions)).sqrt()

    def gradient_widths(self) -> Tensor:
        """Squared width along the gradient itself, |g|^4 / g^T G g: [row, action]."""
        sizes = self.features.square().sum(-1) + self.sketches.square().sum(-1)
        lengths = self.arrowhead.squared_lengths(
            self.features, self.sketches, self.action_sets.tasks
        )
        return sizes.square() / lengths.clamp_min(torch.finfo(lengths.dtype).tiny)

    def bonuses(self, actions: Tensor, squared_radius: float) -> Tensor:
        """The difference between the best member for a tuple and the fit, in each row: [row].

        With g the gradient of the tuple, the member changes row e by g_e^T G^-1 g, scaled to the
        squared radius.
        """
        own, shared = self._whitened(actions)
        own_sum, shared_sum = self._sums(own, shared)
        moves = (own * own_sum[self.action_sets.tasks]).sum(-1) + shared @ shared_sum
        total = moves.sum()
        return moves * (squared_radius / total).sqrt() if total > 0 else torch.zeros_like(moves)

    def step(self, actions: Tensor, squared_radius: float) -> tuple[Tensor, Tensor]:
        """The most optimistic step for a tuple: of heads [task, feature], of weights [sketch]."""
        own, shared = self._sums(*self._whitened(actions))
        squared_length = own.square().sum() + shared.square().sum()
        scale = (squared_radius / squared_length).sqrt() if squared_length > 0 else 0.0
        return self.arrowhead.steps(own * scale, shared * scale)

    def best_tuple(self, squared_radius: float) -> tuple[Tensor, bool]:
        """Actions [row] with the largest joint value, and whether that is proven."""
        problem = TangentChoice(
            self.means.cpu().numpy(),
            self.own.cpu().numpy(),
            self.shared.cpu().numpy(),
            self.action_sets.tasks.cpu().numpy(),
            squared_radius,
        )
        start = self.action_sets.best_actions(self.row_values(squared_radius)).cpu().numpy()
        actions, is_exact = problem.solve(start)
        return torch.as_tensor(actions, device=self.means.device), is_exact

    def selection(
        self,
        actions: Tensor,
        bonuses: Tensor,
        squared_radius: float,
        *,
        squared_widths: Tensor | None = None,
        is_exact: bool = False,
    ) -> Selection:
        """The selection of these actions, with the widths of the linearised set.

        Its values are those of the linearised set, which belong to no single network.
        """
        own, shared = self._whitened(actions)
        of_representation = shared.square().sum(-1)
        if squared_widths is None:
            squared_widths = own.square().sum(-1) + of_representation
        means = self._chosen(self.means, actions)
        return Selection(
            function=None,
            actions=actions,
            values=means + bonuses,
            squared_distance=squared_radius,
            squared_radius=squared_radius,
            prediction=Prediction(means, squared_widths),
            is_exact=is_exact,
            representation_widths=of_representation,
        )

    def _squared_widths(self) -> Tensor:
        return self.own.square().sum(-1) + self.shared.square().sum(-1)

    def _chosen(self, values: Tensor, actions: Tensor) -> Tensor:
        return values.gather(1, actions[:, None]).squeeze(1)

    def _whitened(self, actions: Tensor) -> tuple[Tensor, Tensor]:
        """Whitened gradients of the chosen actions."""
        rows = torch.arange(len(actions))
        return self.own[rows, actions], self.shared[rows, actions]

    def _sums(self, own: Tensor, shared: Tensor) -> tuple[Tensor, Tensor]:
        """Sums over the rows, those of heads by task."""
        num_tasks = self.confidence_set.center.num_tasks
        by_task = own.new_zeros(num_tasks, own.shape[1]).index_add(0, self.action_sets.tasks, own)
        return by_task, shared.sum(0)


def validate_sketch_settings(sketch: WeightSketch, weight_ridge: float) -> None:
    """Check the settings that selectors on sketched gradients share."""
    validate_instance(sketch, "sketch", WeightSketch, "a WeightSketch, such as WeightSketch(64)")
    validate_number(weight_ridge, "weight_ridge", above=0.0)
