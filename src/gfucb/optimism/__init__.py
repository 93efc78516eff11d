"""Hope: from a confidence set to its most optimistic member and the actions it likes best."""

from gfucb.optimism.certified import Certified
from gfucb.optimism.ellipsoid import LastLayer
from gfucb.optimism.enumeration import Enumerated
from gfucb.optimism.exact import ExactFinite
from gfucb.optimism.fine_tuning import FineTuning
from gfucb.optimism.greedy import Greedy
from gfucb.optimism.linearised import Gradient, Linearised

__all__ = [
    "Certified",
    "Enumerated",
    "ExactFinite",
    "FineTuning",
    "Gradient",
    "Greedy",
    "LastLayer",
    "Linearised",
]
