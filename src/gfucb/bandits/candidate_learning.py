"""What a learner does with all candidates that were offered, chosen or not."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor

from gfucb.core.errors import InvalidInputError
from gfucb.core.protocols import RepresentationClass, SelfSupervision
from gfucb.core.random import random_stream
from gfucb.core.records import Row
from gfucb.core.setting_descriptions import SELF_SUPERVISION_AUTO, describe_setting
from gfucb.core.shards import in_any, totals
from gfucb.core.validation.arrays import LARGEST_INPUT
from gfucb.core.validation.components import validate_self_supervision
from gfucb.core.validation.states import validate_state_names, validate_state_tensor
from gfucb.estimation.reward_check import RewardCheck
from gfucb.estimation.self_supervision import Contrastive
from gfucb.models import MultitaskDataset
from gfucb.models.candidate_pool import CandidatePool
from gfucb.models.network_classes import DefaultNetworkClass
from gfucb.models.nn.networks import is_image_shape

CANDIDATES_PREFIX = "candidates."
INPUTS, CHECK = f"{CANDIDATES_PREFIX}inputs", f"{CANDIDATES_PREFIX}check"
BEFORE_CHECKS = RewardCheck()
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
        check: whether the rewards show that the method helps.
    """

    method: SelfSupervision
    pool: CandidatePool
    seed: int
    images_only: bool = False
    check: RewardCheck = BEFORE_CHECKS

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
        """Without the candidates, before any check."""
        return replace(self, pool=self.pool.emptied(), check=BEFORE_CHECKS)

    def with_candidates(self, inputs: Tensor) -> CandidateLearning:
        """After candidates [n, *input] in the form in which the learner stores inputs."""
        if len(inputs) == 0 or not self.uses(inputs):
            return self
        return replace(self, pool=self.pool.with_inputs(inputs))

    def checks(self, data: MultitaskDataset) -> bool:
        """Whether a check with these data is due."""
        if not self.method.adaptive or not self.check.is_due(data):
            return False
        has_batch = len(self.pool) >= self.method.batch_size_for(len(self.pool))
        return in_any(data.shards, has_batch)

    def steps_for(self, data: MultitaskDataset) -> int:
        """The number of steps before a fit to these data."""
        if not self.check.is_used:
            return 0
        num_tasks = int((data.samples_per_task > 0).sum())
        return self.method.steps_for(data.total / max(1, totals(data.shards, num_tasks)[0]))

    def generator(self, stream: str, index: int) -> torch.Generator:
        """The source of randomness of the steps before a fit, or of those of a check."""
        return random_stream(self.seed, stream, index)

    def diagnostics(self) -> Row:
        """Whether self-supervision is used, 1 or 0; it is not without candidates."""
        return {"self_supervision": int(self.check.is_used and not self.pool.is_empty)}

    def tensors(self) -> dict[str, Tensor]:
        """The pool and the last check, for saving."""
        if self.pool.inputs is None:
            return {}
        check = torch.tensor([self.check.is_used, self.check.num_samples])
        return {INPUTS: self.pool.inputs, CHECK: check}

    def restored(
        self, state: Mapping[str, Tensor], inputs: Tensor, num_samples: int
    ) -> CandidateLearning:
        """With the pool of a saved state whose samples have these inputs [n, *input].

        `num_samples` is the number of samples that the learner has seen.
        """
        empty = self.emptied()
        own = {name: tensor for name, tensor in state.items() if name.startswith(CANDIDATES_PREFIX)}
        if own or len(inputs):  # a shard without samples has no candidates
            validate_state_names(own, [INPUTS, CHECK] if self.uses(inputs) else [])
        if not own:
            return empty
        is_float = inputs.is_floating_point()
        largest = LARGEST_INPUT if is_float else math.inf
        shape = (None, *inputs.shape[1:])
        saved = validate_state_tensor(
            own, INPUTS, shape, dtype=inputs.dtype, low=-largest, high=largest
        )
        check = validate_state_tensor(own, CHECK, (2,), dtype=torch.int64, low=0, high=num_samples)
        if int(check[0]) > 1:
            raise InvalidInputError(f"{CHECK!r} of the state must start with 0 or 1")
        is_used, checked = bool(check[0]), int(check[1])
        return replace(empty, pool=empty.pool.restored(saved), check=RewardCheck(is_used, checked))


def candidate_learning(
    method: SelfSupervision | Literal["auto"] | None,
    representation_class: RepresentationClass,
    seed: int,
) -> CandidateLearning | None:
    """The learning from candidates that the argument `self_supervision` of an agent stands for."""
    if method is None:
        return None
    if isinstance(method, str) and method == "auto":
        if not isinstance(representation_class, DefaultNetworkClass):
            return None
        return CandidateLearning.of(DEFAULT_METHOD, seed, images_only=True)
    valid = validate_self_supervision(method)
    if representation_class.structure != "neural":
        raise InvalidInputError(
            "self_supervision trains networks; for a representation class of structure "
            f"{representation_class.structure!r} it must be None"
        )
    return CandidateLearning.of(valid, seed)


def describe_candidate_learning(learning: CandidateLearning | None) -> str:
    """The settings, for saved agents."""
    if learning is None:
        return "None"
    # What "auto" stands for may change with the version of the library. Files stay readable.
    return SELF_SUPERVISION_AUTO if learning.images_only else describe_setting(learning.method)


def candidate_diagnostics(learning: CandidateLearning | None) -> Row:
    """Those of the learning from candidates, if there is any."""
    return {} if learning is None else learning.diagnostics()
