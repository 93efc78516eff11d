"""The fit of a learner: before any reward, as named tensors, and restored from them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from gfucb.bandits.candidate_learning import CANDIDATES_PREFIX, CandidateLearning
from gfucb.bandits.learner_inputs import empty_data
from gfucb.bandits.refit_rule import PredictionErrorMonitor
from gfucb.bandits.sample_memory import SampleMemory, validate_counters
from gfucb.bandits.saved_statistics import STATISTICS_PREFIX, restored_statistics
from gfucb.bandits.state_validation import (
    REPRESENTATION_PREFIX,
    require_shape,
    validate_learner_state,
    validate_restored_fit,
)
from gfucb.core.nested import below, with_prefix
from gfucb.core.protocols import Representation, WeightStatistics
from gfucb.core.validation.states import validate_state_like
from gfucb.estimation.reward_scale import RewardScale
from gfucb.models import HeadStatistics, MultiheadFunction, MultitaskDataset, prior_function
from gfucb.models.statistics_forms import empty_statistics

if TYPE_CHECKING:
    from gfucb.bandits.learner import Learner

TANGENTS_PREFIX = "tangents."


@dataclass(frozen=True, eq=False)
class SavedFit:
    """What a saved state says about a learner."""

    center: MultiheadFunction
    data: MultitaskDataset
    statistics: HeadStatistics
    tangents: WeightStatistics | None
    scale: RewardScale
    candidates: CandidateLearning | None
    monitor: PredictionErrorMonitor
    num_fits: int
    samples_at_fit: int
    memory: SampleMemory | None

    def tensors(self, learner: Learner) -> dict[str, Tensor]:
        """Named tensors from which `restored_fit` reads the same."""
        tensors = {
            "counters": torch.tensor([self.num_fits, self.samples_at_fit]),
            "monitor": self.monitor.tensor(),
            "data.inputs": self.data.inputs,
            "data.tasks": self.data.tasks,
            "data.targets": self.data.targets,
            **with_prefix(STATISTICS_PREFIX, self.statistics.tensors()),
            "heads": self.center.heads,
            **learner.scaling.tensors(self.scale),
        }
        if self.memory is not None:
            tensors |= self.memory.tensors()
        if self.candidates is not None:
            tensors |= self.candidates.tensors()
        if self.tangents is not None:
            tensors |= with_prefix(TANGENTS_PREFIX, self.tangents.tensors())
        return tensors | representation_state(learner, self.center.representation)


def representation_state(learner: Learner, representation: Representation) -> dict[str, Tensor]:
    """The part of a state that holds the representation."""
    own = learner.representation_class.state_of(representation)
    return with_prefix(REPRESENTATION_PREFIX, own)


def prior_fit(
    learner: Learner, inputs: Tensor
) -> tuple[MultiheadFunction, MultitaskDataset, HeadStatistics]:
    """Center, data and statistics before any reward, for inputs like these [n, *input]."""
    center = prior_function(
        learner.representation_class,
        inputs,
        num_tasks=learner.num_tasks,
        offset=learner.scale.location,
        value_range=learner.scaling.reported_range(learner.scale),
        generator=learner.network_generator(),
        device=learner.device,
    )
    statistics = empty_statistics(
        learner.num_tasks, center.heads.shape[1], learner.device, learner.shards
    )
    data = empty_data(learner.num_tasks, inputs, learner.device, learner.shards)
    return center, data, statistics


def _restored_memory(learner: Learner, state: Mapping[str, Tensor]) -> SampleMemory | None:
    """The memory of a state, all of whose tensors are checked."""
    prefixes = [
        REPRESENTATION_PREFIX,
        *([TANGENTS_PREFIX] if learner.weight_statistics is not None else []),
        *([CANDIDATES_PREFIX] if learner.candidates is not None else []),
    ]
    memory = SampleMemory.empty(learner.keeping, learner.num_tasks, learner.seed)
    more_names = [
        *learner.scaling.tensors(learner.scale),
        *({} if memory is None else memory.tensors()),
    ]
    validate_learner_state(
        state,
        num_tasks=learner.num_tasks,
        prefixes=prefixes,
        more_names=more_names,
        is_shard=learner.shards.count > 1,
    )
    return memory and memory.restored(state)


def restored_fit(learner: Learner, state: Mapping[str, Tensor]) -> SavedFit:
    """The fit of a state of a learner with the same settings; nothing changes."""
    kind, candidates = learner.weight_statistics, learner.candidates
    memory = _restored_memory(learner, state)
    num_samples = math.inf if learner.shards.count > 1 else len(state["data.tasks"])
    num_fits, samples_at_fit = validate_counters(state, num_samples, memory)
    state = {name: tensor.to(learner.device, copy=True) for name, tensor in state.items()}
    inputs, rewards = state["data.inputs"], state["data.targets"]
    scaled = None if memory is not None and memory.num_dropped else rewards
    scale = learner.scaling.restored(state, scaled, learner.shards)
    prior, data, _ = learner.prior(inputs)
    data.append(state["data.tasks"], inputs, rewards)
    representation = learner.representation_class.restored(
        below(REPRESENTATION_PREFIX, state), inputs, learner.network_generator(), learner.device
    )
    statistics = restored_statistics(below(STATISTICS_PREFIX, state), learner.penalty.ridge)
    require_shape(state["heads"], prior.heads)
    value_range = learner.scaling.reported_range(scale)
    center = MultiheadFunction(representation, state["heads"], scale.location, value_range)
    has_noise = learner.reward_perturbation > 0
    clipped = data.with_targets(scale.clip(rewards))
    validate_restored_fit(center, clipped, statistics, learner.penalty, has_noise=has_noise)
    tangents = None
    if kind is not None:
        # Statistics of one sample have the names, types and shapes of those of all.
        one = kind.statistics(center, inputs[:1], state["data.tasks"][:1], None)
        saved = below(TANGENTS_PREFIX, state)
        validate_state_like(saved, one.tensors())
        tangents = kind.restored(saved, statistics)
    if candidates is not None:
        num_seen = data.total if memory is None else memory.num_seen
        candidates = candidates.restored(state, data.inputs, num_seen)
        candidates = replace(candidates, check=candidates.check.agreed(learner.shards))
    monitor = PredictionErrorMonitor(*state["monitor"].tolist())
    return SavedFit(
        center,
        data,
        statistics,
        tangents,
        scale,
        candidates,
        monitor,
        num_fits,
        samples_at_fit,
        memory,
    )
