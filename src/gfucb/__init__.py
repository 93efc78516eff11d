"""Many related decision problems, each learning from all.

agent = gfucb.GFUCB(num_tasks=30, seed=0)
decision = agent.decide(candidates)
agent.observe(decision, rewards)
"""

from gfucb.agents import (
    GFUCB,
    LSVIUCB,
    UCBVI,
    EpisodicCopies,
    EpisodicEpsilonGreedy,
    EpisodicGFUCB,
    EpsilonGreedy,
    Grouped,
    Uniform,
    fitted_q,
    linucb,
    lsvi_ucb,
    multitask_greedy,
    randomised_lsvi,
    restore,
    save,
)
from gfucb.agents.backups import Pointwise, Randomised
from gfucb.agents.joint_backup import Joint
from gfucb.contracts import Decision, Menu, OptimisticChoice
from gfucb.estimation import (
    AdamFit,
    Alternating,
    ConstantRadius,
    Exhaustive,
    LogRadius,
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
from gfucb.optimism import Enumerated, ExactFinite, FineTuning, Greedy, LastLayer
from gfucb.theory.radii import CorrectedRadius, PrintedRadius

__version__ = "0.1.0"

__all__ = [
    "GFUCB",
    "LSVIUCB",
    "UCBVI",
    "AdamFit",
    "Alternating",
    "ConfidenceSet",
    "ConstantRadius",
    "CorrectedRadius",
    "Decision",
    "Enumerated",
    "EpisodicCopies",
    "EpisodicEpsilonGreedy",
    "EpisodicGFUCB",
    "EpsilonGreedy",
    "ExactFinite",
    "Exhaustive",
    "FineTuning",
    "FiniteClass",
    "Greedy",
    "Grouped",
    "IdentityRepresentation",
    "Joint",
    "LastLayer",
    "LinearClass",
    "LinearRepresentation",
    "LogRadius",
    "Menu",
    "MultiheadFunction",
    "MultitaskDataset",
    "NeuralClass",
    "NeuralRepresentation",
    "OptimisticChoice",
    "Pointwise",
    "PrintedRadius",
    "Randomised",
    "ScaledRadius",
    "Uniform",
    "VariableProjection",
    "fitted_q",
    "linucb",
    "lsvi_ucb",
    "multitask_greedy",
    "randomised_lsvi",
    "restore",
    "save",
]
