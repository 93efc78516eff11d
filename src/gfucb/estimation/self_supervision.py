"""Self-supervised losses: what a network can learn from inputs without rewards."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import normalize

from gfucb.core.protocols import SelfSupervision
from gfucb.core.validation.settings import (
    validate_component,
    validate_count,
    validate_flag,
    validate_not_negative,
    validate_number,
)
from gfucb.estimation.views import Views, default_views


@dataclass(frozen=True)
class TwoViews(SelfSupervision):
    """Settings of the methods that compare two views of each input; the loss is left to them."""

    views: Views | None = None
    """(inputs [n, *input], generator) -> views of them. None: `ImageViews` for images,
    `TableViews` for other numbers, and no self-supervision for ids."""
    steps: int = 25
    """Gradient steps before a fit with up to `few_samples` samples for each task on average. With
    more samples there are fewer steps, in inverse proportion to their square root."""
    few_samples: float = 40.0
    """See `steps`; infinity always makes all steps."""
    batch_size: int = 64
    """The fewest inputs of a step, each in two views. There are no steps before the pool has so
    many."""
    largest_batch: int = 256
    """The most inputs of a step. Between the two a step has a quarter to a half of the pool."""
    learning_rate: float = 1e-3
    weight_decay: float = 1e-4
    pool_size: int = 32768
    """The most candidates that are kept; fewer of large ones, see `CandidatePool`."""
    adaptive: bool = True
    """Whether steps are made only while the rewards show that they help, see `RewardCheck`."""

    def __post_init__(self) -> None:
        if self.views is not None:
            validate_component(self.views, "views", "a function (inputs, generator) -> inputs")
        validate_count(self.steps, "steps", at_least=0)
        validate_count(self.batch_size, "batch_size", at_least=2)
        validate_count(self.largest_batch, "largest_batch")
        validate_count(self.pool_size, "pool_size", at_least=self.batch_size)
        validate_not_negative(self.learning_rate, "learning_rate")
        validate_not_negative(self.weight_decay, "weight_decay")
        validate_number(self.few_samples, "few_samples", above=0.0, is_finite=False)
        validate_flag(self.adaptive, "adaptive")

    def steps_for(self, samples_per_task: float) -> int:
        """The number of steps before a fit to so many samples of a task, on average."""
        return round(self.steps * min(1.0, math.sqrt(self.few_samples / samples_per_task)))

    def batch_size_for(self, num_inputs: int) -> int:
        """The inputs of a step on a pool of so many: `batch_size` times a power of two."""
        # Large batches have more negatives, which are different inputs only if the pool is larger.
        doublings = max(0, math.floor(math.log2(max(1, num_inputs) / (2 * self.batch_size))))
        return min(self.batch_size * 2**doublings, max(self.batch_size, self.largest_batch))

    def views_for(self, inputs: Tensor) -> Views | None:
        """The views of inputs like these [n, *input]; None if they have none."""
        return default_views(inputs) if self.views is None else self.views


@dataclass(frozen=True)
class Contrastive(TwoViews):
    """NT-Xent (Chen et al. 2020): find the other view of an input among those of all others.

    With z = outputs / |outputs| and similarities s_ij = <z_i, z_j> / temperature, the loss of a
    view i with the other view j is log(sum_{k != i} exp(s_ik)) - s_ij, averaged over all 2 n views.
    """

    temperature: float = 0.2
    neighbour_share: float = 1 / 16
    """The share of the inputs of a step that are the neighbours of an input: those with the most
    similar outputs. Batches of the smallest size have none: the network is new then."""
    neighbour_weight: float = 0.0
    """How much of the positives of a view are the views of these neighbours, which are mostly of
    the same class (Koohpayegani et al. 2021); the rest is the other view of the input itself. 0 is
    plain NT-Xent, which also drives inputs of one class apart."""

    def __post_init__(self) -> None:
        super().__post_init__()
        validate_number(self.temperature, "temperature", above=0.0)
        validate_number(self.neighbour_share, "neighbour_share", at_least=0.0, at_most=1.0)
        validate_number(self.neighbour_weight, "neighbour_weight", at_least=0.0, at_most=1.0)

    def loss(self, first: Tensor, second: Tensor) -> Tensor:
        """[..., n, output] of both views -> [...]."""
        num_inputs = first.shape[-2]
        z = normalize(torch.cat([first, second], dim=-2), dim=-1)
        similarities = z @ z.mT / self.temperature
        positives = similarities.diagonal(num_inputs, -2, -1).repeat_interleave(2, dim=-1)
        # A sum takes a fifth of the time of a mask, and has no backward pass of its own.
        nothing = similarities.new_zeros(z.shape[-2]).fill_(-torch.inf)
        totals = (similarities + nothing.diag()).logsumexp(-1)
        count = min(int(self.neighbour_share * num_inputs), num_inputs - 1)
        if count and self.neighbour_weight and num_inputs > self.batch_size:
            near = _nearest(z.detach(), count)
            neighbours = (near * similarities).sum(-1) / near.sum(-1)
            positives = torch.lerp(positives, neighbours, self.neighbour_weight)
        return totals.mean(-1) - positives.mean(-1)


def _nearest(z: Tensor, count: int) -> Tensor:
    """Ones where the second of two views is of a neighbour of the input of the first.

    z [..., 2 n, output] are the directions of the first views of n inputs, then of the second. An
    input has `count` neighbours, those with the closest mean direction of both views.
    """
    first, second = z.chunk(2, dim=-2)
    means = normalize(first + second, dim=-1)
    itself = torch.eye(means.shape[-2], dtype=torch.bool, device=z.device)
    closeness = (means @ means.mT).masked_fill(itself, -torch.inf)
    near = (closeness >= closeness.topk(count, dim=-1).values[..., -1:]).to(z.dtype)
    both = torch.cat([near, near], dim=-1)
    return torch.cat([both, both], dim=-2)


@dataclass(frozen=True)
class VICReg(TwoViews):
    """Variance, invariance, covariance (Bardes et al. 2022): no comparison with other inputs.

    Both views of an input get close outputs, each output keeps a standard deviation of 1 over
    inputs, and different outputs are decorrelated.
    """

    learning_rate: float = 3e-3
    invariance: float = 25.0
    variance: float = 25.0
    covariance: float = 10.0
    """Larger than the 1 of the paper: there is no expander, the outputs are few."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("invariance", "variance", "covariance"):
            validate_not_negative(getattr(self, name), name)

    def loss(self, first: Tensor, second: Tensor) -> Tensor:
        """[..., n, output] of both views -> [...]."""
        both = torch.stack([first, second])
        centered = both - both.mean(-2, keepdim=True)
        covariances = centered.mT @ centered / (both.shape[-2] - 1)
        variances = covariances.diagonal(dim1=-2, dim2=-1)
        too_small = (1 - (variances + 1e-4).sqrt()).relu().mean(-1).mean(0)
        squares = covariances.square().sum((-2, -1)) - variances.square().sum(-1)
        correlated = squares.sum(0) / both.shape[-1]
        distances = (first - second).square().mean((-2, -1))
        return (
            self.invariance * distances + self.variance * too_small + self.covariance * correlated
        )
