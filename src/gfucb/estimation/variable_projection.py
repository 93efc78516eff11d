"""Least squares over any torch module: the heads are eliminated, the module is trained."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from gfucb.estimation.profile import best_on, trainable_copy
from gfucb.functions import (
    HeadPenalty,
    MultiheadFunction,
    MultitaskDataset,
    NeuralRepresentation,
)
from gfucb.functions.representations import train_on
from gfucb.linalg import ridge_cholesky
from gfucb.seeding import global_randomness_from

# Leave-one-out residuals are divided by 1 - leverage, but never by less than this.
SMALLEST_LEFT_OUT = 1e-3


@dataclass(frozen=True)
class VariableProjection:
    """Train phi on the error its best heads leave, with those heads in closed form.

    For each task, w = (Phi^T Phi + ridge I)^-1 Phi^T y is a differentiable function of phi, so
    only phi is trained. The error of a sample is, with leverage h = phi^T V^-1 phi,

        leave_one_out   (y - <w, phi>) / (1 - h)   what the heads miss if this sample is held out
        residual         y - <w, phi>              plain least squares

    While tasks have fewer samples than features, heads fit their own data whatever phi is and
    the residual says nothing about phi; held-out errors still do.

    Each step looks at a few random tasks and at most `samples_per_task` of each, so the cost
    of a fit, steps * batch_size samples, does not grow with the data.
    """

    steps: int = 60
    learning_rate: float = 3e-3
    weight_decay: float = 0.0
    batch_size: int = 1024
    """Samples a step looks at, at most."""
    samples_per_task: int = 64
    """Of these, at most so many of one task."""
    loss: Literal["leave_one_out", "residual"] = "leave_one_out"

    def __call__(
        self,
        data: MultitaskDataset,
        start: MultiheadFunction,
        penalty: HeadPenalty,
        generator: torch.Generator,
    ) -> MultiheadFunction:
        """Train a copy of the start's module and return it with its best heads."""
        representation = trainable_copy(start)
        parameters = [p for p in representation.module.parameters() if p.requires_grad]
        if parameters and len(data):
            self._train(representation, parameters, data, start.offset, penalty.ridge, generator)
        return best_on(representation, data, start, penalty)

    def _train(
        self,
        representation: NeuralRepresentation,
        parameters: list[torch.nn.Parameter],
        data: MultitaskDataset,
        offset: float,
        ridge: float,
        generator: torch.Generator,
    ) -> None:
        optimiser = torch.optim.AdamW(
            parameters, lr=self.learning_rate, weight_decay=self.weight_decay, fused=True
        )
        batches = TaskBatches(data, self.batch_size, self.samples_per_task, generator)
        with global_randomness_from(generator):
            for _ in range(self.steps):
                samples, present = (x.to(data.inputs.device) for x in batches.draw(generator))
                train_on(representation.module, samples.numel())
                features = representation(data.inputs[samples.flatten()])
                targets = data.targets[samples] - offset
                errors = self.errors(
                    features.to(torch.float64).unflatten(0, samples.shape), targets, present, ridge
                )
                optimiser.zero_grad()
                (errors.square().sum() / present.sum()).backward()
                optimiser.step()
        representation.module.eval()

    def errors(self, features: Tensor, targets: Tensor, present: Tensor, ridge: float) -> Tensor:
        """Errors of padded batches: [task, slot, feature], [task, slot] twice -> [task, slot]."""
        features = features * present.unsqueeze(-1)
        targets = targets * present
        cholesky = ridge_cholesky(features.transpose(1, 2) @ features, ridge)
        # Rows of L^-1 phi: their squared norm is the leverage, their span gives the fit.
        whitened = torch.linalg.solve_triangular(cholesky, features.transpose(1, 2), upper=False)
        fitted = (whitened.transpose(1, 2) @ (whitened @ targets.unsqueeze(-1))).squeeze(-1)
        residuals = targets - fitted
        if self.loss == "residual":
            return residuals
        # Paper: plain least squares. Networks that interpolate make its loss say nothing of phi.
        leverages = whitened.square().sum(1)
        return residuals / (1 - leverages).clamp_min(SMALLEST_LEFT_OUT)


class TaskBatches:
    """Random batches laid out by task, so that each task's heads can be solved at once."""

    def __init__(
        self,
        data: MultitaskDataset,
        batch_size: int,
        samples_per_task: int,
        generator: torch.Generator,
    ) -> None:
        shuffled = torch.randperm(len(data), generator=generator)
        self.order = shuffled[data.tasks.cpu()[shuffled].argsort(stable=True)]
        self.counts = data.samples_per_task.cpu()
        self.starts = self.counts.cumsum(0) - self.counts
        self.seen_tasks = self.counts.nonzero().squeeze(1)
        self.num_slots = min(int(self.counts.max()), samples_per_task)
        self.num_tasks = max(1, batch_size // self.num_slots)

    def draw(self, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Sample indices and which of them count: [task, slot] twice.

        A task with more samples than slots shows a random window of its shuffled samples.
        """
        chosen = torch.randperm(len(self.seen_tasks), generator=generator)[: self.num_tasks]
        tasks = self.seen_tasks[chosen]
        counts = self.counts[tasks].unsqueeze(1)
        windows = torch.rand(len(tasks), 1, generator=generator, dtype=torch.float64) * counts
        slots = torch.arange(self.num_slots)
        samples = self.order[self.starts[tasks].unsqueeze(1) + (windows.long() + slots) % counts]
        return samples, slots < counts
