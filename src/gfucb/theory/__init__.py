"""Computable theory: eluder dimensions, covering numbers, radii, regret bounds, Bellman errors.

Reports, tests and documents use this package; agents and environments do not.
"""

from typing import TYPE_CHECKING

from gfucb.core.first_use import imported_at_first_use

if TYPE_CHECKING:
    from gfucb.theory.bellman import bellman_error_lower_bound, inherent_bellman_error
    from gfucb.theory.bounds import (
        BanditSize,
        LinearRates,
        MDPSize,
        finite_generalised_dimension,
        known_representation_theorem_1,
        linear_generalised_dimension,
        linear_rates,
        printed_theorem_1,
        printed_theorem_2,
        repaired_theorem_1,
        repaired_theorem_2,
        sharing_gain,
        sum_class_theorem_1,
    )
    from gfucb.theory.bounds_table import Bound, evaluate_bounds
    from gfucb.theory.covering import (
        covering_bounds,
        greedy_net,
        greedy_packing,
        linear_log_covering,
        lipschitz_log_covering,
    )
    from gfucb.theory.eluder import (
        EluderDimension,
        eluder_dimension,
        eluder_lower_bound,
        is_independent,
        lemma_2_example,
        sum_class,
    )
    from gfucb.theory.eluder_bounds import (
        finite_inputs_bound,
        generalised_linear_eluder_bound,
        is_independent_linear,
        linear_eluder_bound,
        quadratic_eluder_bound,
    )
    from gfucb.theory.lemma_radii import (
        CorrectedRadius,
        CorrectedStageRadius,
        PrintedRadius,
        PrintedStageRadius,
    )
    from gfucb.theory.linear_values import LinearValueClass
    from gfucb.theory.multitask_bellman import (
        multitask_bellman_error,
        multitask_bellman_error_lower_bound,
    )
    from gfucb.theory.small_mdp import MDPStage, linear_mdp_stage, stage_tables
    from gfucb.theory.theory_problem import TheoryProblem
    from gfucb.theory.uncertainty import (
        d2_uncertainties,
        effective_dimension,
        generalised_eluder_estimate,
        gradient_features,
        log_det_dimension,
    )

__all__ = [
    "BanditSize",
    "Bound",
    "CorrectedRadius",
    "CorrectedStageRadius",
    "EluderDimension",
    "LinearRates",
    "LinearValueClass",
    "MDPSize",
    "MDPStage",
    "PrintedRadius",
    "PrintedStageRadius",
    "TheoryProblem",
    "bellman_error_lower_bound",
    "covering_bounds",
    "d2_uncertainties",
    "effective_dimension",
    "eluder_dimension",
    "eluder_lower_bound",
    "evaluate_bounds",
    "finite_generalised_dimension",
    "finite_inputs_bound",
    "generalised_eluder_estimate",
    "generalised_linear_eluder_bound",
    "gradient_features",
    "greedy_net",
    "greedy_packing",
    "inherent_bellman_error",
    "is_independent",
    "is_independent_linear",
    "known_representation_theorem_1",
    "lemma_2_example",
    "linear_eluder_bound",
    "linear_generalised_dimension",
    "linear_log_covering",
    "linear_mdp_stage",
    "linear_rates",
    "lipschitz_log_covering",
    "log_det_dimension",
    "multitask_bellman_error",
    "multitask_bellman_error_lower_bound",
    "printed_theorem_1",
    "printed_theorem_2",
    "quadratic_eluder_bound",
    "repaired_theorem_1",
    "repaired_theorem_2",
    "sharing_gain",
    "stage_tables",
    "sum_class",
    "sum_class_theorem_1",
]

# Help of the command line needs the settings of this package, and none of its computations.
__getattr__ = imported_at_first_use(
    __name__,
    {
        "bellman": ("bellman_error_lower_bound", "inherent_bellman_error"),
        "bounds": (
            "BanditSize",
            "LinearRates",
            "MDPSize",
            "finite_generalised_dimension",
            "known_representation_theorem_1",
            "linear_generalised_dimension",
            "linear_rates",
            "printed_theorem_1",
            "printed_theorem_2",
            "repaired_theorem_1",
            "repaired_theorem_2",
            "sharing_gain",
            "sum_class_theorem_1",
        ),
        "bounds_table": ("Bound", "evaluate_bounds"),
        "covering": (
            "covering_bounds",
            "greedy_net",
            "greedy_packing",
            "linear_log_covering",
            "lipschitz_log_covering",
        ),
        "eluder": (
            "EluderDimension",
            "eluder_dimension",
            "eluder_lower_bound",
            "is_independent",
            "lemma_2_example",
            "sum_class",
        ),
        "eluder_bounds": (
            "finite_inputs_bound",
            "generalised_linear_eluder_bound",
            "is_independent_linear",
            "linear_eluder_bound",
            "quadratic_eluder_bound",
        ),
        "lemma_radii": (
            "CorrectedRadius",
            "CorrectedStageRadius",
            "PrintedRadius",
            "PrintedStageRadius",
        ),
        "linear_values": ("LinearValueClass",),
        "multitask_bellman": ("multitask_bellman_error", "multitask_bellman_error_lower_bound"),
        "small_mdp": ("MDPStage", "linear_mdp_stage", "stage_tables"),
        "theory_problem": ("TheoryProblem",),
        "uncertainty": (
            "d2_uncertainties",
            "effective_dimension",
            "generalised_eluder_estimate",
            "gradient_features",
            "log_det_dimension",
        ),
    },
)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
