"""The function space: what can be believed about the tasks."""

from gfucb.functions.confidence_set import ConfidenceSet
from gfucb.functions.dataset import MultitaskDataset
from gfucb.functions.heads import HeadEllipsoid, HeadPenalty, HeadStatistics
from gfucb.functions.multihead import MultiheadFunction, features_of
from gfucb.functions.networks import FourierFeatures
from gfucb.functions.representations import (
    FiniteClass,
    IdentityRepresentation,
    LinearClass,
    LinearRepresentation,
    NeuralClass,
    NeuralRepresentation,
    Representation,
    RepresentationClass,
)

__all__ = [
    "ConfidenceSet",
    "FiniteClass",
    "FourierFeatures",
    "HeadEllipsoid",
    "HeadPenalty",
    "HeadStatistics",
    "IdentityRepresentation",
    "LinearClass",
    "LinearRepresentation",
    "MultiheadFunction",
    "MultitaskDataset",
    "NeuralClass",
    "NeuralRepresentation",
    "Representation",
    "RepresentationClass",
    "features_of",
]
