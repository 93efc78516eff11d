"""Estimation: least-squares fits, the centers of confidence sets, and their squared radii."""

from gfucb.estimation.adam import AdamFit
from gfucb.estimation.alternating import Alternating
from gfucb.estimation.augmentation import RandomShifts
from gfucb.estimation.calibration import CalibratedRadius
from gfucb.estimation.exhaustive import Exhaustive
from gfucb.estimation.profile import best_on, penalised_error, squared_error
from gfucb.estimation.radii import ConstantRadius, LogRadius, ScaledRadius
from gfucb.estimation.self_supervision import Contrastive, VICReg
from gfucb.estimation.stopping import HeldOutStopping
from gfucb.estimation.variable_projection import VariableProjection
from gfucb.estimation.views import ImageViews, SeededViews, TableViews

__all__ = [
    "AdamFit",
    "Alternating",
    "CalibratedRadius",
    "ConstantRadius",
    "Contrastive",
    "Exhaustive",
    "HeldOutStopping",
    "ImageViews",
    "LogRadius",
    "RandomShifts",
    "ScaledRadius",
    "SeededViews",
    "TableViews",
    "VICReg",
    "VariableProjection",
    "best_on",
    "penalised_error",
    "squared_error",
]
