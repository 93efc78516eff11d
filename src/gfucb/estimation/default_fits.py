"""The default fit of a representation class, by the structure the class states."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from gfucb.core.errors import InvalidInputError
from gfucb.core.protocols import LeastSquares, RepresentationClass
from gfucb.estimation.alternating import Alternating
from gfucb.estimation.exhaustive import Exhaustive
from gfucb.estimation.variable_projection import VariableProjection

# Exact where the class allows it, variable projection for networks.
DEFAULT_FITS: Mapping[str, Callable[[RepresentationClass], LeastSquares]] = {
    "finite": Exhaustive,
    "linear": lambda _: Alternating(),
    "neural": lambda _: VariableProjection(),
}


def default_fit(representation_class: RepresentationClass) -> LeastSquares:
    """The fit of an agent that was given none."""
    structure = representation_class.structure
    if structure not in DEFAULT_FITS:
        raise InvalidInputError(
            f"there is no default fit for a class of structure {structure!r}; pass fit, or give "
            f"the class one of these structures: {', '.join(DEFAULT_FITS)}"
        )
    return DEFAULT_FITS[structure](representation_class)
