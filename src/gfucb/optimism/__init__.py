"""Hope: from a confidence set to its most optimistic member and the actions it likes best."""

from gfucb.optimism.certified import Certified
from gfucb.optimism.diagonal import DiagonalSampling, DiagonalUCB
from gfucb.optimism.ellipsoid import LastLayer
from gfucb.optimism.enumeration import Enumerated
from gfucb.optimism.exact import ExactFinite
from gfucb.optimism.fine_tuning import FineTuning
from gfucb.optimism.greedy import Greedy
from gfucb.optimism.linearised import Gradient, Linearised
from gfucb.optimism.lots import HeadSampling, InverseGap, Perturbed

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
