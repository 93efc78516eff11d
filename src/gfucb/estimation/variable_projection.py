"""Least squares over any torch module: the heads are eliminated, the module is trained."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from gfucb.core.linalg import ridge_cholesky
from gfucb.core.random import global_randomness_from
from gfucb.estimation.profile import best_on, trainable_copy
from gfucb.models import (
    HeadPenalty,
    MultiheadFunction,
    MultitaskDataset,
    Representation,
    features_of,
)
from gfucb.models.heads import SMALLEST_LEFT_OUT
from gfucb.models.nn.cuda_graphs import CudaGraphed
from gfucb.models.nn.networks import convolves, num_unbounded
from gfucb.models.nn.seeded_layers import seed_names, seeded_layers
from gfucb.models.nn.stacked import NetworkStack
from gfucb.models.representations import train_on

# Steps of a fit. Convolutions learn in fewer, and in as many they learn samples by heart.
STEPS, STEPS_WITH_CONVOLUTIONS = 60, 20
# Samples a task, on average, from which on fits have more steps.
MANY_SAMPLES = 10
# The least share of the learning rate.
SMALLEST_SHARE = 1 / 3

Augmentation = Callable[[Tensor, torch.Generator], Tensor]


@dataclass(frozen=True)
class VariableProjection:
    """Train phi on the error its best heads leave, with those heads in closed form.

    For each task, w = (Phi^T Phi + ridge I)^-1 Phi^T y is a differentiable function of phi, so
    only phi is trained. The error of a sample is, with leverage h = phi^T V^-1 phi,

        leave_one_out   (y - <w, phi>) / (1 - h)   what the heads miss if this sample is held out
        residual         y - <w, phi>              plain least squares

    While tasks have fewer samples than features, heads fit their own data whatever phi is and
    the residual says nothing about phi; held-out errors still do.

    Further targets of the data (`MultitaskDataset.with_auxiliary_targets`) are predicted along, each by heads of
    its own, at little cost: the matrices are the same.

    Phi is left alone while there are fewer samples than features that can grow without bound.
    Each step looks at a few random tasks and at most `samples_per_task` of each, so the cost
    of a fit, at most most_steps * batch_size samples, does not grow with the data.
    """

    steps: int | None = None
    """Gradient steps in a fit of up to ten samples a task; beyond, they grow with their root.

    None: 60, and 20 for networks with convolutions."""
    most_steps: int = 240
    """And not beyond these, or `steps` if that is more."""
    learning_rate: float = 3e-3
    samples_at_full_rate: int = 1000
    """With fewer the learning rate is less in proportion, but at least a third of it; 0: never."""
    weight_decay: float = 0.0
    batch_size: int = 1024
    """Samples a step looks at, at most."""
    samples_per_task: int = 64
    """Of these, at most so many of one task."""
    loss: Literal["leave_one_out", "residual"] = "leave_one_out"
    epsilon: float = 1e-5
    """Adam's: gradients far below it are rounding, which a smaller one would blow up to steps."""
    augment: Augmentation | None = None
    """(inputs [n, *input], generator) -> inputs that pay the same, drawn anew in every step."""

    def __call__(
        self,
        data: MultitaskDataset,
        start: MultiheadFunction,
        penalty: HeadPenalty,
        generator: torch.Generator,
    ) -> MultiheadFunction:
        """Train a copy of the start's module and return it with its best heads."""
        representation = trainable_copy(start)
        module = representation.module
        weights = [p for p in module.parameters() if p.requires_grad]
        if weights and self.can_train(len(data), module, start.heads.shape[1]):
            layers = seeded_layers(module)
            plan = FitPlan.draw(self, data, module, generator).to(data.inputs.device)
            optimiser = self.optimiser(weights, self.rate_for(len(data)))
            targets = targets_of(data, start.offset)
            with global_randomness_from(generator):
                for samples, present, seeds in plan:
                    for layer, seed in zip(layers, seeds, strict=True):
                        layer.seed = seed
                    train_on(module, samples.numel())
                    inputs = self.shown(data.inputs[samples.flatten()], generator)
                    features = representation(inputs).unflatten(0, samples.shape)
                    errors = self.errors(
                        features.to(torch.float64), targets[samples], present, penalty.ridge
                    )
                    optimiser.zero_grad()
                    (errors.square().sum() / present.sum()).backward()
                    optimiser.step()
            module.eval()
        return best_on(representation, data, start, penalty)

    def fit_stack(
        self,
        stack: NetworkStack,
        data: Sequence[MultitaskDataset],
        *,
        offset: float,
        ridge: float,
        generators: Sequence[torch.Generator],
    ) -> None:
        """Train the networks of a stack in place, each on its own data, as each would be alone.

        The data sets must have equal numbers of samples, task by task, and enough of them.
        """
        names = seed_names(stack.module)
        device = data[0].inputs.device
        plans = [
            FitPlan.draw(self, own, stack.module, generator)
            for own, generator in zip(data, generators, strict=True)
        ]
        plan = FitPlan.stack(plans).to(device)
        samples, present, seeds = (first.clone() for first in next(iter(plan)))
        stack.buffers |= {name: seeds[:, index] for index, name in enumerate(names)}
        inputs = torch.stack([own.inputs for own in data])
        targets = torch.stack([own.targets for own in data]) - offset
        rows = torch.arange(len(stack), device=device)[:, None]
        optimiser = self.optimiser(
            [*stack.weights.values()],
            self.rate_for(len(data[0])),
            capturable=device.type == "cuda",
        )

        def step() -> None:
            """One step on `samples`, of which those `present` count, with draws from `seeds`."""
            chosen = inputs[rows, samples.flatten(1)]
            if self.augment is not None:
                shown = zip(chosen, generators, strict=True)
                chosen = torch.stack([self.shown(x, draws) for x, draws in shown])
            features = stack(chosen).unflatten(1, samples.shape[1:])
            errors = self.errors(
                features.flatten(0, 1).to(torch.float64),
                targets[rows, samples.flatten(1)].view(-1, samples.shape[-1], 1),
                present.flatten(0, 1),
                ridge,
            )
            losses = errors.square().view(len(stack), -1).sum(1) / present.sum((1, 2))
            optimiser.zero_grad()
            losses.sum().backward()
            optimiser.step()

        # An augmentation draws draws on the CPU, anew in every step.
        repeated = step if self.augment is not None else CudaGraphed(step, device)
        stack.module.train()
        with global_randomness_from(generators[0]):
            for now in plan:
                for mine, given in zip((samples, present, seeds), now, strict=True):
                    mine.copy_(given)
                repeated()
        stack.module.eval()

    def can_train(self, num_samples: int, module: nn.Module, feature_dim: int) -> bool:
        """Whether there is enough data to train on; with less, only the heads are fitted."""
        # Fewer samples than features are fitted by whatever features there are, the larger the
        # better: networks of single tasks blew up in their first rounds and did not recover.
        return num_samples >= num_unbounded(module, feature_dim)

    def steps_for(self, samples_per_task: Tensor, module: nn.Module) -> int:
        """Steps of a fit of a module to tasks that have so many samples, [task]."""
        steps = self.steps
        if steps is None:
            steps = STEPS_WITH_CONVOLUTIONS if convolves(module) else STEPS
        # Heads of few samples say little about phi, however many tasks there are: what many
        # steps would learn from them does not hold for new samples, and is not soon forgotten.
        held = samples_per_task[samples_per_task > 0].double().mean().item()
        grown = round(steps * math.sqrt(held / MANY_SAMPLES))
        return max(steps, min(grown, self.most_steps))

    def rate_for(self, num_samples: int) -> float:
        """The learning rate of a fit of so many samples."""
        share = num_samples / max(1, self.samples_at_full_rate)
        return self.learning_rate * min(1.0, max(SMALLEST_SHARE, share))

    def optimiser(
        self, weights: Sequence[Tensor], learning_rate: float, *, capturable: bool = False
    ) -> torch.optim.Optimizer:
        """AdamW, each weight by itself: stacked networks are trained as they would be alone."""
        return torch.optim.AdamW(
            weights,
            lr=learning_rate,
            weight_decay=self.weight_decay,
            eps=self.epsilon,
            fused=True,
            capturable=capturable,
        )

    def shown(self, inputs: Tensor, generator: torch.Generator) -> Tensor:
        """Inputs [n, *input] as a step sees them."""
        return inputs if self.augment is None else self.augment(inputs, generator)

    def errors(self, features: Tensor, targets: Tensor, present: Tensor, ridge: float) -> Tensor:
        """Errors of padded batches: what heads of each task and target leave, [task, slot, target].

        Args:
            features: [task, slot, feature].
            targets: [task, slot, target].
            present: which slots are filled, [task, slot].
            ridge: the penalty on heads.
        """
        features = features * present.unsqueeze(-1)
        targets = targets * present.unsqueeze(-1)
        num_slots, feature_dim = features.shape[1:]
        solve = left_by_kernel if num_slots < feature_dim else left_by_features
        residuals, shares = solve(features, targets, ridge)
        if self.loss == "residual":
            return residuals
        # Paper: plain least squares. Networks that interpolate make its loss say nothing of phi.
        return residuals / shares.clamp_min(SMALLEST_LEFT_OUT).unsqueeze(-1)


# Neither factor below is checked, which would make a GPU wait in every step: numbers that are not
# finite go on to the weights, and are found when the heads are fitted.


def left_by_features(features: Tensor, targets: Tensor, ridge: float) -> tuple[Tensor, Tensor]:
    """What ridge regression leaves of targets [task, slot, target], and 1 - leverage [task, slot].

    Solves for heads, of the size of the features [task, slot, feature].
    """
    cholesky = ridge_cholesky(features.mT @ features, ridge, is_checked=False)
    # Rows of L^-1 phi: their squared norm is the leverage, their span gives the fit.
    whitened = torch.linalg.solve_triangular(cholesky, features.mT, upper=False)
    return targets - whitened.mT @ (whitened @ targets), 1 - whitened.square().sum(1)


def left_by_kernel(features: Tensor, targets: Tensor, ridge: float) -> tuple[Tensor, Tensor]:
    """The same, solved for samples: cheaper where there are more features than slots.

    Both are read off (Phi Phi^T + ridge I)^-1: times ridge, it takes targets to residuals.
    """
    cholesky = ridge_cholesky(features @ features.mT, ridge, is_checked=False)
    eye = torch.eye(features.shape[1], dtype=features.dtype, device=features.device)
    whitening = torch.linalg.solve_triangular(cholesky, eye.expand_as(cholesky), upper=False)
    return ridge * whitening.mT @ (whitening @ targets), ridge * whitening.square().sum(1)


def targets_of(data: MultitaskDataset, offset: float) -> Tensor:
    """Targets less the offset, then further ones: [sample, target]."""
    targets = (data.targets - offset).unsqueeze(-1)
    return (
        targets
        if data.auxiliary_targets is None
        else torch.cat([targets, data.auxiliary_targets], dim=-1)
    )


def held_out_error(
    representation: Representation, data: MultitaskDataset, *, offset: float, ridge: float
) -> float:
    """Mean square of what heads fitted without a sample miss of it, further targets included."""
    features, targets = features_of(representation, data.inputs), targets_of(data, offset)
    errors_of, total = VariableProjection().errors, 0.0
    for task in data.tasks.unique():
        own = (data.tasks == task).nonzero().squeeze(1)
        everything = torch.ones(1, len(own), dtype=torch.bool, device=own.device)
        errors = errors_of(features[own][None], targets[own][None], everything, ridge)
        total += float(errors.square().sum())
    return total / max(1, len(data))


@dataclass(frozen=True, eq=False)
class FitPlan:
    """All draws of a fit, drawn beforehand: what each step looks at, and the seeds of its layers.

    Batches are laid out by task, so that each task's heads can be solved at once.

    Attributes:
        samples: indices into the data, [step, task, slot].
        present: which of them count, [step, task, slot].
        seeds: of the layers that act at random, [step, layer].
    """

    samples: Tensor
    present: Tensor
    seeds: Tensor

    @classmethod
    def draw(
        cls,
        fit: VariableProjection,
        data: MultitaskDataset,
        module: nn.Module,
        generator: torch.Generator,
    ) -> FitPlan:
        """A few random tasks a step, and of each a random window of its shuffled samples."""
        shuffled = torch.randperm(len(data), generator=generator)
        order = shuffled[data.tasks.cpu()[shuffled].argsort(stable=True)]
        counts = data.samples_per_task.cpu()
        starts = counts.cumsum(0) - counts
        seen = counts.nonzero().squeeze(1)
        num_slots = min(int(counts.max()), fit.samples_per_task)
        num_tasks = min(len(seen), max(1, fit.batch_size // num_slots))

        steps = fit.steps_for(counts, module)
        draws = torch.rand(steps, len(seen), generator=generator)
        tasks = seen[draws.argsort(1)[:, :num_tasks]]  # [step, task]
        windows = torch.rand(steps, num_tasks, 1, generator=generator, dtype=torch.float64)
        in_task = counts[tasks].unsqueeze(-1)
        slots = torch.arange(num_slots)
        places = ((windows * in_task).long() + slots) % in_task
        num_layers = len(seeded_layers(module))
        seeds = torch.randint(2**62, (steps, num_layers), generator=generator)
        return cls(order[starts[tasks].unsqueeze(-1) + places], slots < in_task, seeds)

    @classmethod
    def stack(cls, plans: Sequence[FitPlan]) -> FitPlan:
        """Plans of several copies, [step, copy, ...]."""
        return cls(
            torch.stack([plan.samples for plan in plans], dim=1),
            torch.stack([plan.present for plan in plans], dim=1),
            torch.stack([plan.seeds for plan in plans], dim=1),
        )

    def to(self, device: torch.device) -> FitPlan:
        """The plan on a device."""
        return FitPlan(self.samples.to(device), self.present.to(device), self.seeds.to(device))

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        return zip(self.samples, self.present, self.seeds, strict=True)
