"""Optimism over heads and weights together, linearised at the fit: closed forms.

To first order around the fit the confidence set is an ellipsoid whose Gram matrix G is an
arrowhead (`Arrowhead`). A tuple of actions has the gradient g = sum of the gradients of its rows.

    `Linearised`      sum of means + sqrt(squared_radius * g^T G^-1 g)          the maximum
    `GradientBonus`   sum of means + sqrt(squared_radius) |g|^2 / sqrt(g^T G g)   along g

The first is the largest value in the linearised set. The second is the value after a step along
the gradient itself that uses the whole radius: it needs no solve and never exceeds the first.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from gfucb.core.action_sets import ActionSets
from gfucb.core.protocols import ActionSelector
from gfucb.core.records import Selection
from gfucb.core.validation.settings import validate_flag
from gfucb.exploration.tangent import Tangent, validate_sketch_settings
from gfucb.models import ConfidenceSet
from gfucb.models.tangents import WeightSketch


@dataclass(frozen=True)
class Linearised(ActionSelector):
    """The most optimistic heads and weights, to first order around the fit.

    The squared width of an input is the sum of the uncertainty of its head and of the
    representation; both are reported. The joint choice maximises a linear function plus the
    square root of a quadratic one. All tuples are listed if there are few. Otherwise coordinate
    ascent starts from the best action of each row alone and stops where no change of one action
    helps. Cost: K M gradients of the network and
    O(M (k^3 + s^2 k) + s^3 + sweeps M K (s + k)) arithmetic for sketches of length s,
    independent of the number of samples. The values belong to no single network, and there is
    no guarantee beyond first order: see `Certified`.

    Args:
        sketch: the random projection of gradients in the weights.
        weight_ridge: ridge on the weights, see `Arrowhead`. With a smaller ridge the weights may
            move farther. If it is too small, all inputs have the same saturated bonus.
        joint: one radius for all rows together, as in Algorithm 1. False gives each row the
            whole radius.
    """

    sketch: WeightSketch = field(default_factory=WeightSketch)
    weight_ridge: float = 10.0
    joint: bool = True
    returns_member: ClassVar[bool] = False

    def __post_init__(self) -> None:
        validate_sketch_settings(self.sketch, self.weight_ridge)
        validate_flag(self.joint, "joint")

    @property
    def weight_statistics(self) -> WeightSketch:
        """The agent maintains the Gram matrix of sketched gradients."""
        return self.sketch

    def __call__(self, confidence_set: ConfidenceSet, action_sets: ActionSets) -> Selection:
        """Return actions and their largest values in the linearised set."""
        tangent = Tangent.at(confidence_set, action_sets, self.sketch, self.weight_ridge)
        radius = confidence_set.squared_radius
        if self.joint:
            actions, is_exact = tangent.best_tuple(radius)
            bonuses = tangent.bonuses(actions, radius)
            return tangent.selection(actions, bonuses, radius, is_exact=is_exact)
        actions = action_sets.best_actions(tangent.row_values(radius))
        return tangent.selection(actions, tangent.row_bonuses(actions, radius), radius)


@dataclass(frozen=True)
class GradientBonus(ActionSelector):
    """A bonus along the gradient of each input: the cheapest that includes the weights.

    sqrt(squared_radius) |g|^2 / sqrt(g^T G g) in each row. With squared radii of the scale
    printed in section 6.2 it is close to what fine-tuning by plain SGD reaches. Cost: K M
    gradients of the network and products with G, no solve.

    Args:
        sketch: the random projection of gradients in the weights.
        weight_ridge: ridge on the weights, see `Arrowhead`.
    """

    sketch: WeightSketch = field(default_factory=WeightSketch)
    weight_ridge: float = 10.0
    joint: ClassVar[bool] = False
    returns_member: ClassVar[bool] = False

    def __post_init__(self) -> None:
        validate_sketch_settings(self.sketch, self.weight_ridge)

    @property
    def weight_statistics(self) -> WeightSketch:
        """The agent maintains the Gram matrix of sketched gradients."""
        return self.sketch

    def __call__(self, confidence_set: ConfidenceSet, action_sets: ActionSets) -> Selection:
        """Return the action with the largest mean plus bonus in each row."""
        tangent = Tangent.at(confidence_set, action_sets, self.sketch, self.weight_ridge)
        radius = confidence_set.squared_radius
        widths = tangent.gradient_widths()
        actions = action_sets.best_actions(tangent.means + (radius * widths).sqrt())
        chosen = widths.gather(1, actions[:, None]).squeeze(1)
        return tangent.selection(actions, (radius * chosen).sqrt(), radius, squared_widths=chosen)
