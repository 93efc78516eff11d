"""The fit of section 6.2 of the paper: Adam on module and heads together, for many epochs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from gfucb.core.protocols import LeastSquares
from gfucb.core.validation.settings import validate_count, validate_not_negative
from gfucb.estimation.profile import best_on, trainable_copy
from gfucb.models import (
    HeadPenalty,
    MultiheadFunction,
    MultitaskDataset,
    NeuralRepresentation,
)
from gfucb.models.heads import shorten
from gfucb.models.nn.cuda_graphs import CudaGraphed
from gfucb.models.nn.global_draws import training_randomness_from
from gfucb.models.representations import train_on


@dataclass(frozen=True)
class AdamFit(LeastSquares):
    """Adam with learning rate 1e-3 for 200 epochs, from the previous fit.

    Cost: `epochs` passes over the data, forward and backward.

    Args:
        epochs: passes over the data.
        learning_rate: of Adam.
        batch_size: samples in a step; None uses all data in every step.
        stop_below: stop when the mean squared error of an epoch is below this; None never stops.
    """

    epochs: int = 200
    learning_rate: float = 1e-3
    batch_size: int | None = 256
    stop_below: float | None = None

    def __post_init__(self) -> None:
        validate_count(self.epochs, "epochs", at_least=0)
        validate_not_negative(self.learning_rate, "learning_rate")
        if self.batch_size is not None:
            validate_count(self.batch_size, "batch_size")
        if self.stop_below is not None:
            validate_not_negative(self.stop_below, "stop_below")

    def __call__(
        self,
        data: MultitaskDataset,
        start: MultiheadFunction,
        penalty: HeadPenalty,
        generator: torch.Generator,
    ) -> MultiheadFunction:
        """Train a copy of the start's module and heads."""
        representation = trainable_copy(start)
        if len(data):
            heads = start.heads.clone().requires_grad_()
            self._train(representation, heads, data, start.offset, penalty, generator)
        # Paper: the heads are those of Adam. Here they are the minimisers for the representation
        # that Adam found: the confidence set assumes a least-squares fit as its center, and the
        # measured error of Adam's heads was as large as the radius.
        return best_on(representation, data, start, penalty)

    def _train(
        self,
        representation: NeuralRepresentation,
        heads: Tensor,
        data: MultitaskDataset,
        offset: float,
        penalty: HeadPenalty,
        generator: torch.Generator,
    ) -> None:
        # Paper: it does not say whether Adam keeps its moments between rounds; they are reset.
        module, device = representation.module, heads.device
        optimiser = torch.optim.Adam(
            [*module.parameters(), heads],
            lr=self.learning_rate,
            fused=True,
            capturable=device.type == "cuda",
        )
        total = torch.zeros((), dtype=torch.float64, device=device)

        def step(batch: Tensor) -> None:
            features = representation(data.inputs[batch]).to(torch.float64)
            values = offset + (features * heads[data.tasks[batch]]).sum(-1)
            loss = (values - data.targets[batch]).square().mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            if penalty.norm_bound is not None:
                shorten(heads, penalty.norm_bound)
            total.add_(loss.detach() * len(batch))

        # Batches of the same size share a buffer, so that a CUDA graph can replay their step.
        buffers: dict[int, tuple[Tensor, CudaGraphed]] = {}
        with training_randomness_from(generator, module):
            for _ in range(self.epochs):
                total.zero_()
                for batch in torch.randperm(len(data), generator=generator).split(
                    self.batch_size or len(data)
                ):
                    train_on(module, len(batch))
                    if len(batch) not in buffers:
                        buffer = torch.empty_like(batch, device=device)
                        buffers[len(batch)] = buffer, CudaGraphed(partial(step, buffer), device)
                    buffer, graphed_step = buffers[len(batch)]
                    buffer.copy_(batch)
                    graphed_step()
                if self.stop_below is not None and float(total) <= self.stop_below * len(data):
                    break
        module.eval()
