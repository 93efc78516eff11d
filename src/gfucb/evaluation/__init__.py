"""Off-policy evaluation: the value of a policy, estimated from the log of another one."""

from gfucb.evaluation.confidence_sequences import Betting, ConfidenceSequence, EmpiricalBernstein
from gfucb.evaluation.decision_logs import log_of_decisions
from gfucb.evaluation.evaluation_results import Estimate, Evaluation, Interval
from gfucb.evaluation.logged_decisions import LoggedDecisions
from gfucb.evaluation.off_policy import ESTIMATORS, evaluate
from gfucb.evaluation.policies import (
    AgentPolicy,
    FixedActionPolicy,
    FunctionPolicy,
    LoggedPolicy,
    Policy,
    PolicyOnLog,
    UniformPolicy,
)
from gfucb.evaluation.reward_models import GFUCBRewards, RewardModel
from gfucb.evaluation.table_logs import LogColumns, NamedLog, log_of_table

__all__ = [
    "ESTIMATORS",
    "AgentPolicy",
    "Betting",
    "ConfidenceSequence",
    "EmpiricalBernstein",
    "Estimate",
    "Evaluation",
    "FixedActionPolicy",
    "FunctionPolicy",
    "GFUCBRewards",
    "Interval",
    "LogColumns",
    "LoggedDecisions",
    "LoggedPolicy",
    "NamedLog",
    "Policy",
    "PolicyOnLog",
    "RewardModel",
    "UniformPolicy",
    "evaluate",
    "log_of_decisions",
    "log_of_table",
]
