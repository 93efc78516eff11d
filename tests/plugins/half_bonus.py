"""An action selector."""

from dataclasses import dataclass, replace

import gfucb
from gfucb.core.protocols import ActionSelector
from gfucb.runs import register_action_selector


@dataclass(frozen=True)
class HalfBonus(ActionSelector):
    def __call__(self, confidence_set, action_sets):
        smaller = replace(confidence_set, squared_radius=confidence_set.squared_radius / 4)
        selection = gfucb.LastLayer()(smaller, action_sets)
        return replace(selection, squared_radius=confidence_set.squared_radius)


@register_action_selector("half-bonus", description="Half the bonus of last-layer.")
def half_bonus(config):
    return HalfBonus()
