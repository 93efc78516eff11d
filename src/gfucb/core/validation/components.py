"""Validation of the components of an agent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gfucb.core.errors import InvalidInputError
from gfucb.core.validation.settings import validate_component

if TYPE_CHECKING:
    from gfucb.core.protocols import ActionSelector, SelfSupervision

SELECTOR_PROPERTIES = (
    "joint",
    "weight_statistics",
    "reward_perturbation",
    "returns_member",
    "is_optimistic",
)
SUPERVISION_MEMBERS = (
    "pool_size",
    "learning_rate",
    "weight_decay",
    "adaptive",
    "steps_for",
    "batch_size_for",
    "views_for",
    "loss",
)


def validate_action_selector(selector: Any, name: str = "action_selector") -> ActionSelector:
    """Return the argument `name` if it has the members of `ActionSelector`, or refuse it."""
    expected = "an ActionSelector, such as LastLayer()"
    validate_component(selector, name, expected)
    missing = [own for own in SELECTOR_PROPERTIES if not hasattr(selector, own)]
    if missing:
        raise InvalidInputError(
            f"the action selector {type(selector).__name__} has no {', '.join(missing)}; subclass "
            "gfucb.core.protocols.ActionSelector, which has defaults for them"
        )
    return selector


def validate_self_supervision(method: Any) -> SelfSupervision:
    """Return the argument `self_supervision` if it has the members of the protocol."""
    is_instance = not isinstance(method, type)
    if not is_instance or any(not hasattr(method, name) for name in SUPERVISION_MEMBERS):
        shown = repr(method) if is_instance else f"the class {method.__name__}; pass an instance"
        raise InvalidInputError(
            "self_supervision must be a SelfSupervision such as gfucb.estimation.Contrastive(), "
            f'"auto" or None, got {shown}'
        )
    return method
