"""What a learner does with all candidates that were offered, chosen or not."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor

from gfucb.core.errors import InvalidInputError
from gfucb.core.protocols import Representation, RepresentationClass, SelfSupervision
from gfucb.core.random import random_stream
from gfucb.core.setting_descriptions import describe_setting
from gfucb.core.validation.arrays import LARGEST_INPUT
from gfucb.core.validation.components import validate_self_supervision
from gfucb.core.validation.settings import validate_choice
from gfucb.core.validation.states import validate_state_names, validate_state_tensor
from gfucb.estimation.self_supervised_steps import train_network, train_stack
from gfucb.estimation.self_supervision import Contrastive
from gfucb.models.candidate_pool import CandidatePool
from gfucb.models.network_classes import DefaultNetworkClass
from gfucb.models.nn.networks import is_image_shape
from gfucb.models.nn.stacked import NetworkStack
from gfucb.models.representations import as_network

CANDIDATES_PREFIX = "candidates."
INPUTS = f"{CANDIDATES_PREFIX}inputs"
# What "auto" stands for.
DEFAULT_METHOD = Contrastive()


@dataclass(frozen=True, eq=False)
class CandidateLearning:
    """A pool of candidates and a self-supervised method that trains networks on it, as a value.

    Attributes:
        method: the self-supervision.
        pool: of the candidates whose decisions were observed.
        seed: of the agent.
        images_only: whether inputs of other shapes are not used.
    """

    method: SelfSupervision
    pool: CandidatePool
    seed: int
    images_only: bool = False

    @classmethod
    def of(
        cls, method: SelfSupervision, seed: int, *, images_only: bool = False
    ) -> CandidateLearning:
        """Before any candidate."""
        key = int(torch.randint(2**62, (), generator=random_stream(seed, "candidate pool")))
        return cls(method, CandidatePool(method.pool_size, key), seed, images_only)

    def uses(self, inputs: Tensor) -> bool:
        """Whether the method has views of inputs like these [n, *input]."""
        if self.images_only and not is_image_shape(inputs.shape[1:]):
            return False
        return self.method.views_for(inputs) is not None

    def emptied(self) -> CandidateLearning:
        """Without the candidates."""
        return replace(self, pool=replace(self.pool, inputs=None, priorities=None))

    def with_candidates(self, inputs: Tensor) -> CandidateLearning:
        """After candidates [n, *input] in the form in which the learner stores inputs."""
        return replace(self, pool=self.pool.with_inputs(inputs)) if self.uses(inputs) else self

    def trained(self, representation: Representation, fit_index: int) -> Representation:
        """The network after the steps before a fit; the same object if there are none."""
        if self.pool.inputs is None:
            return representation
        network = as_network(representation)
        return train_network(self.method, network, self.pool.inputs, self.generator(fit_index))

    def generator(self, fit_index: int) -> torch.Generator:
        """The source of randomness of the steps before a fit."""
        return random_stream(self.seed, "self-supervision", fit_index)

    def tensors(self) -> dict[str, Tensor]:
        """The pool, for saving."""
        return {} if self.pool.inputs is None else {INPUTS: self.pool.inputs}

    def restored(self, state: Mapping[str, Tensor], inputs: Tensor) -> CandidateLearning:
        """With the pool of a saved state whose samples have these inputs [n, *input]."""
        empty = self.emptied()
        own = {name: tensor for name, tensor in state.items() if name.startswith(CANDIDATES_PREFIX)}
        validate_state_names(own, [INPUTS] if self.uses(inputs) else [])
        if not own:
            return empty
        is_float = inputs.is_floating_point()
        largest = LARGEST_INPUT if is_float else math.inf
        shape = (None, *inputs.shape[1:])
        saved = validate_state_tensor(
            own, INPUTS, shape, dtype=inputs.dtype, low=-largest, high=largest
        )
        return replace(empty, pool=empty.pool.restored(saved))


def train_stack_on_candidates(
    learnings: Sequence[CandidateLearning], stack: NetworkStack, fit_indices: Sequence[int]
) -> None:
    """Train the networks of a stack in place, each as its own `CandidateLearning.trained` does."""
    pools = [own.pool.inputs for own in learnings]
    train_stack(
        learnings[0].method,
        stack,
        [pool for pool in pools if pool is not None],
        [own.generator(index) for own, index in zip(learnings, fit_indices, strict=True)],
    )


def candidate_learning(
    method: SelfSupervision | Literal["auto"] | None,
    representation_class: RepresentationClass,
    seed: int,
) -> CandidateLearning | None:
    """The learning from candidates that the argument `self_supervision` of an agent stands for."""
    if method is None:
        return None
    is_network = representation_class.structure == "neural"
    if isinstance(method, str):
        validate_choice(method, "self_supervision", ("auto",))
        if not isinstance(representation_class, DefaultNetworkClass):
            return None
        return CandidateLearning.of(DEFAULT_METHOD, seed, images_only=True)
    if not is_network:
        raise InvalidInputError(
            "self_supervision trains networks; for a representation class of structure "
            f"{representation_class.structure!r} it must be None"
        )
    return CandidateLearning.of(validate_self_supervision(method), seed)


def describe_candidate_learning(learning: CandidateLearning | None) -> str:
    """The settings, for saved agents."""
    if learning is None:
        return "None"
    method = describe_setting(learning.method)
    return f"{method} for images" if learning.images_only else method
