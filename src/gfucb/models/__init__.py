"""The function space: what can be believed about the tasks."""

from gfucb.models.confidence_set import ConfidenceSet
from gfucb.models.dataset import MultitaskDataset
from gfucb.models.heads import HeadEllipsoid, HeadPenalty, HeadStatistics
from gfucb.models.multihead import MultiheadFunction, features_of
from gfucb.models.nn.networks import FourierFeatures
from gfucb.models.representations import (
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
