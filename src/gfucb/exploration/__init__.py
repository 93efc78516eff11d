"""Action selectors: from a confidence set and action sets to one action for each row."""

from gfucb.exploration.certified import Certified
from gfucb.exploration.diagonal import DiagonalSampling, DiagonalUCB
from gfucb.exploration.enumeration import Enumerated
from gfucb.exploration.exact import ExactFinite
from gfucb.exploration.fine_tuning import FineTuning
from gfucb.exploration.greedy import Greedy
from gfucb.exploration.inverse_gap import InverseGap
from gfucb.exploration.last_layer import LastLayer
from gfucb.exploration.linearised import GradientBonus, Linearised
from gfucb.exploration.perturbed import PerturbedRewards
from gfucb.exploration.sampling import HeadSampling
from gfucb.exploration.thompson import ThompsonSampling

__all__ = [
    "Certified",
    "DiagonalSampling",
    "DiagonalUCB",
    "Enumerated",
    "ExactFinite",
    "FineTuning",
    "GradientBonus",
    "Greedy",
    "HeadSampling",
    "InverseGap",
    "LastLayer",
    "Linearised",
    "PerturbedRewards",
    "ThompsonSampling",
]
