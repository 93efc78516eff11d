"""The default action selector of a representation class, by the structure the class states."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from gfucb.core.errors import InvalidInputError
from gfucb.core.protocols import ActionSelector, RepresentationClass
from gfucb.exploration.exact import ExactFinite
from gfucb.exploration.last_layer import LastLayer

# Paper: f ranges over the whole set, representation included. For networks that is the
# fine-tuning of section 6.2, hundreds of passes over the data for every decision.
DEFAULT_ACTION_SELECTORS: Mapping[str, Callable[[], ActionSelector]] = {
    "finite": ExactFinite,
    "linear": LastLayer,
    "neural": LastLayer,
}
# Paper: one radius for all tasks. The posterior of a table states the uncertainty of each task,
# so each row uses the whole radius, the noise variance.
TABLE_SELECTOR = LastLayer(joint=False)


def default_action_selector(representation_class: RepresentationClass) -> ActionSelector:
    """The action selector of an agent that was given none."""
    structure = representation_class.structure
    if structure not in DEFAULT_ACTION_SELECTORS:
        raise InvalidInputError(
            f"there is no default action selector for a class of structure {structure!r}; pass "
            "action_selector, or give the class one of these structures: "
            f"{', '.join(DEFAULT_ACTION_SELECTORS)}"
        )
    return DEFAULT_ACTION_SELECTORS[structure]()
