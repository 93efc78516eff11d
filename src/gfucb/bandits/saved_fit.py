"""From the saved state of a learner to its fit, completely checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from torch import Tensor

from gfucb.bandits.candidate_learning import CANDIDATES_PREFIX, CandidateLearning
from gfucb.bandits.refit_rule import PredictionErrorMonitor
from gfucb.bandits.state_validation import (
    REPRESENTATION_PREFIX,
    require_shape,
    validate_learner_state,
    validate_restored_fit,
)
from gfucb.core.nested import below
from gfucb.core.protocols import WeightStatistics
from gfucb.core.validation.states import validate_state_like
from gfucb.estimation.reward_scale import RewardScale
from gfucb.models import HeadStatistics, MultiheadFunction, MultitaskDataset
from gfucb.models.copy_on_write import CopyOnWriteRows

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


def restored_fit(learner: Learner, state: Mapping[str, Tensor]) -> SavedFit:
    """The fit of a state of a learner with the same settings; nothing changes."""
    kind, candidates = learner.weight_statistics, learner.candidates
    prefixes = [
        REPRESENTATION_PREFIX,
        *([TANGENTS_PREFIX] if kind is not None else []),
        *([CANDIDATES_PREFIX] if candidates is not None else []),
    ]
    scale_names = learner.scaling.tensors(learner.scale).keys()
    validate_learner_state(
        state,
        num_tasks=learner.num_tasks,
        prefixes=prefixes,
        more_names=scale_names,
        is_shard=learner.shards.count > 1,
    )
    state = {name: tensor.to(learner.device, copy=True) for name, tensor in state.items()}
    inputs, rewards = state["data.inputs"], state["data.targets"]
    scale = learner.scaling.restored(state, rewards, learner.shards)
    prior, data, _ = learner.prior(inputs)
    data.append(state["data.tasks"], inputs, rewards)
    representation = learner.representation_class.restored(
        below(REPRESENTATION_PREFIX, state), inputs, learner.network_generator(), learner.device
    )
    statistics = HeadStatistics(
        CopyOnWriteRows(state["statistics.grams"]), state["statistics.moments"]
    )
    statistics.factors(learner.penalty.ridge)  # raises if a Gram matrix has none
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
        candidates = candidates.restored(state, data.inputs)
    num_fits, samples_at_fit = (int(n) for n in state["counters"])
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
    )
