"""Variable projection for a stack of networks: all replicas train in the same operations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from gfucb.core.random import global_randomness_from
from gfucb.estimation.fit_plan import FitPlan
from gfucb.models import MultitaskDataset
from gfucb.models.nn.cuda_graphs import CudaGraphed
from gfucb.models.nn.seeded_layers import seed_names
from gfucb.models.nn.stacked import NetworkStack

if TYPE_CHECKING:
    from gfucb.estimation.variable_projection import VariableProjection


class StackedFit:
    """Trains the networks of a stack in place, each on its own data, as in separate fits.

    Args:
        fit: the settings.
        stack: the networks, one for each replica.
        data: one data set for each replica. All have the same number of samples of each task, and
            enough to train on.
        offset: of the functions that are fitted.
        ridge: the penalty on heads.
        generators: one for each replica; the only sources of randomness.
    """

    def __init__(
        self,
        fit: VariableProjection,
        stack: NetworkStack,
        data: Sequence[MultitaskDataset],
        *,
        offset: float,
        ridge: float,
        generators: Sequence[torch.Generator],
    ) -> None:
        self.fit, self.stack, self.ridge, self.generators = fit, stack, ridge, generators
        self.device = data[0].inputs.device
        pairs = zip(data, generators, strict=True)
        plans = [fit.plan(own, stack.module, generator) for own, generator in pairs]
        self.plan = FitPlan.stack(plans).to(self.device)
        # A CUDA graph reads its batch from the same memory in every step.
        self.batch = tuple(first.clone() for first in next(iter(self.plan)))
        names, seeds = seed_names(stack.module), self.batch[2]
        stack.buffers |= {name: seeds[:, index] for index, name in enumerate(names)}
        self.inputs = torch.stack([own.inputs for own in data])
        self.targets = torch.stack([own.targets for own in data]) - offset
        self.optimiser = fit.make_optimiser(
            [*stack.weights.values()],
            fit.learning_rate_for(len(data[0])),
            capturable=self.device.type == "cuda",
        )

    def run(self) -> None:
        """Make all steps of the plan."""
        # An augmentation draws on the CPU in every step, so it cannot be part of a CUDA graph.
        is_graphed = self.fit.augment is None
        step = CudaGraphed(self._step, self.device) if is_graphed else self._step
        self.stack.module.train()
        with global_randomness_from(self.generators[0]):
            for batch in self.plan:
                for buffer, values in zip(self.batch, batch, strict=True):
                    buffer.copy_(values)
                step()
        self.stack.module.eval()

    def _step(self) -> None:
        samples, present, _ = self.batch
        replicas = torch.arange(len(self.stack), device=self.device)[:, None]
        features = self.stack(self._augmented(self.inputs[replicas, samples.flatten(1)]))
        features = features.unflatten(1, samples.shape[1:])
        errors = self.fit.errors(
            features.flatten(0, 1).to(torch.float64),
            self.targets[replicas, samples.flatten(1)].view(-1, samples.shape[-1], 1),
            present.flatten(0, 1),
            self.ridge,
        )
        losses = errors.square().view(len(self.stack), -1).sum(1) / present.sum((1, 2))
        self.optimiser.zero_grad()
        losses.sum().backward()
        self.optimiser.step()

    def _augmented(self, inputs: Tensor) -> Tensor:
        """Inputs [replica, n, *input], those of each replica augmented by its own generator."""
        if self.fit.augment is None:
            return inputs
        pairs = zip(inputs, self.generators, strict=True)
        return torch.stack([self.fit.augmented(own, generator) for own, generator in pairs])
