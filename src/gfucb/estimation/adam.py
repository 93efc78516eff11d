"""The paper's fit (section 6.2): module and heads together by Adam, many epochs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from gfucb.core.random import global_randomness_from
from gfucb.estimation.profile import best_on, trainable_copy
from gfucb.models import (
    HeadPenalty,
    MultiheadFunction,
    MultitaskDataset,
    NeuralRepresentation,
)
from gfucb.models.heads import shorten
from gfucb.models.nn.cuda_graphs import CudaGraphed
from gfucb.models.representations import train_on


@dataclass(frozen=True)
class AdamFit:
    """Adam with lr 1e-3 for 200 epochs, started from the previous fit.

    Args:
        batch_size: samples a step; None takes all data at every step.
        stop_below: end the fit when the mean squared error of an epoch is below this;
            None never does.
    """

    epochs: int = 200
    learning_rate: float = 1e-3
    batch_size: int | None = 256
    stop_below: float | None = None

    def __call__(
        self,
        data: MultitaskDataset,
        start: MultiheadFunction,
        penalty: HeadPenalty,
        generator: torch.Generator,
    ) -> MultiheadFunction:
        """Train copies of the start's module and heads."""
        representation = trainable_copy(start)
        if len(data):
            heads = start.heads.clone().requires_grad_()
            self._train(representation, heads, data, start.offset, penalty, generator)
        # Paper: the heads are the ones Adam arrives at. We replace them by the minimisers on the
        # representation it found: the set is centered at a least-squares fit by assumption, and
        # the error Adam leaves in the heads was measured to be as large as the radius.
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
        # Paper: whether Adam keeps its moments from round to round is not said; we reset them.
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

        # Batches of one size share a place, so that their step can be replayed.
        places: dict[int, tuple[Tensor, CudaGraphed]] = {}
        with global_randomness_from(generator):
            for _ in range(self.epochs):
                total.zero_()
                for batch in torch.randperm(len(data), generator=generator).split(
                    self.batch_size or len(data)
                ):
                    train_on(module, len(batch))
                    if len(batch) not in places:
                        place = torch.empty_like(batch, device=device)
                        places[len(batch)] = place, CudaGraphed(partial(step, place), device)
                    place, repeated = places[len(batch)]
                    place.copy_(batch)
                    repeated()
                if self.stop_below is not None and float(total) <= self.stop_below * len(data):
                    break
        module.eval()
