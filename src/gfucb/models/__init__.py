"""The function space: representations, heads, data, and the confidence set."""

from gfucb.core.features import features_of
from gfucb.core.protocols import Representation, RepresentationClass
from gfucb.models.classes import FiniteClass, LinearClass, as_representation_class
from gfucb.models.confidence_set import ConfidenceSet
from gfucb.models.dataset import MultitaskDataset
from gfucb.models.head_ellipsoid import HeadEllipsoid
from gfucb.models.heads import HeadPenalty, HeadStatistics
from gfucb.models.multihead import MultiheadFunction, prior_function
from gfucb.models.network_classes import DefaultNetworkClass, NeuralClass
from gfucb.models.nn.networks import FourierFeatures
from gfucb.models.representations import (
    IdentityRepresentation,
    LinearRepresentation,
    NeuralRepresentation,
)

__all__ = [
    "ConfidenceSet",
    "DefaultNetworkClass",
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
    "as_representation_class",
    "features_of",
    "prior_function",
]
