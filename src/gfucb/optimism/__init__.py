"""Hope: from a confidence set to its most optimistic member and the actions it likes best."""

from gfucb.optimism.ellipsoid import LastLayer
from gfucb.optimism.enumeration import Enumerated
from gfucb.optimism.exact import ExactFinite
from gfucb.optimism.fine_tuning import FineTuning
from gfucb.optimism.greedy import Greedy

__all__ = ["Enumerated", "ExactFinite", "FineTuning", "Greedy", "LastLayer"]
