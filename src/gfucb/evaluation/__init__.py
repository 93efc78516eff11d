"""Off-policy evaluation: the value of a policy, estimated from the log of another one."""

from typing import TYPE_CHECKING

from gfucb.core.first_use import imported_at_first_use

if TYPE_CHECKING:
    from gfucb.evaluation.confidence_sequences import (
        Betting,
        ConfidenceSequence,
        EmpiricalBernstein,
    )
    from gfucb.evaluation.decision_logs import log_of_decisions
    from gfucb.evaluation.evaluation_results import ESTIMATORS, Estimate, Evaluation, Interval
    from gfucb.evaluation.log_columns import LogColumns
    from gfucb.evaluation.logged_decisions import LoggedDecisions
    from gfucb.evaluation.off_policy import evaluate
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
    from gfucb.evaluation.table_logs import NamedLog, log_of_table

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

# Help of the command line needs the settings of this package, and none of its computations.
__getattr__ = imported_at_first_use(
    __name__,
    {
        "confidence_sequences": ("Betting", "ConfidenceSequence", "EmpiricalBernstein"),
        "decision_logs": ("log_of_decisions",),
        "evaluation_results": ("ESTIMATORS", "Estimate", "Evaluation", "Interval"),
        "log_columns": ("LogColumns",),
        "logged_decisions": ("LoggedDecisions",),
        "off_policy": ("evaluate",),
        "policies": (
            "AgentPolicy",
            "FixedActionPolicy",
            "FunctionPolicy",
            "LoggedPolicy",
            "Policy",
            "PolicyOnLog",
            "UniformPolicy",
        ),
        "reward_models": ("GFUCBRewards", "RewardModel"),
        "table_logs": ("NamedLog", "log_of_table"),
    },
)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
