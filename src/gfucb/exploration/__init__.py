"""Hope: from a confidence set to its most optimistic member and the actions it likes best."""

from gfucb.exploration.certified import Certified
from gfucb.exploration.diagonal import DiagonalSampling, DiagonalUCB
from gfucb.exploration.enumeration import Enumerated
from gfucb.exploration.exact import ExactFinite
from gfucb.exploration.fine_tuning import FineTuning
from gfucb.exploration.greedy import Greedy
from gfucb.exploration.last_layer import LastLayer
from gfucb.exploration.linearised import Gradient, Linearised
from gfucb.exploration.sampling import HeadSampling, InverseGap, Perturbed

__all__ = [
    "Certified",
    "DiagonalSampling",
    "DiagonalUCB",
    "Enumerated",
    "ExactFinite",
    "FineTuning",
    "Gradient",
    "Greedy",
    "HeadSampling",
    "InverseGap",
    "LastLayer",
    "Linearised",
    "Perturbed",
]
