"""Many related decision problems, each learning from all.

agent = gfucb.GFUCB(num_tasks=30, seed=0)
decision = agent.decide(candidates)
agent.observe(decision, rewards)
"""

from gfucb.agents import (
    GFUCB,
    EpsilonGreedy,
    Fleet,
    Grouped,
    Uniform,
    linucb,
    multitask_greedy,
    restore,
    save,
)
from gfucb.contracts import Decision, Menu, OptimisticChoice
from gfucb.estimation import (
    AdamFit,
    Alternating,
    CalibratedRadius,
    ConstantRadius,
    Exhaustive,
    LogRadius,
    RandomShifts,
    ScaledRadius,
    VariableProjection,
)
from gfucb.functions import (
    ConfidenceSet,
    FiniteClass,
    IdentityRepresentation,
    LinearClass,
    LinearRepresentation,
    MultiheadFunction,
    MultitaskDataset,
    NeuralClass,
    NeuralRepresentation,
)
from gfucb.optimism import (
    Certified,
    Enumerated,
    ExactFinite,
    FineTuning,
    Gradient,
    Greedy,
    LastLayer,
    Linearised,
)
from gfucb.theory.radii import CorrectedRadius, PrintedRadius

__version__ = "0.1.0"

__all__ = [
    "GFUCB",
    "AdamFit",
    "Alternating",
    "CalibratedRadius",
    "Certified",
    "ConfidenceSet",
    "ConstantRadius",
    "CorrectedRadius",
    "Decision",
    "Enumerated",
    "EpsilonGreedy",
    "ExactFinite",
    "Exhaustive",
    "FineTuning",
    "FiniteClass",
    "Fleet",
    "Gradient",
    "Greedy",
    "Grouped",
    "IdentityRepresentation",
    "LastLayer",
    "LinearClass",
    "LinearRepresentation",
    "Linearised",
    "LogRadius",
    "Menu",
    "MultiheadFunction",
    "MultitaskDataset",
    "NeuralClass",
    "NeuralRepresentation",
    "OptimisticChoice",
    "PrintedRadius",
    "RandomShifts",
    "ScaledRadius",
    "Uniform",
    "VariableProjection",
    "linucb",
    "multitask_greedy",
    "restore",
    "save",
]
