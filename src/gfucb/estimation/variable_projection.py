"""Least squares over any torch module: the heads are eliminated, the module is trained."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor, nn

from gfucb.core.errors import InvalidInputError
from gfucb.core.protocols import LeastSquares
from gfucb.core.shards import in_any, totals
from gfucb.core.validation.settings import (
    validate_choice,
    validate_component,
    validate_count,
    validate_not_negative,
)
from gfucb.estimation.closed_form import fast_head_errors
from gfucb.estimation.fit_plan import FitPlan
from gfucb.estimation.held_out import ErrorKind, head_errors
from gfucb.estimation.profile import best_on, trainable_copy, with_best_heads
from gfucb.estimation.single_fit import SingleFit
from gfucb.estimation.stacked_fit import StackedFit
from gfucb.estimation.stopping import HeldOutStopping, StoppingRule
from gfucb.estimation.task_plan import TaskPlan, draw_by_task
from gfucb.models import HeadPenalty, MultiheadFunction, MultitaskDataset
from gfucb.models.nn.adamw import FusedAdamW
from gfucb.models.nn.networks import convolves, num_unbounded
from gfucb.models.nn.stacked import NetworkStack

# Steps of a fit. Networks with convolutions need fewer, and overfit with more.
STEPS, STEPS_WITH_CONVOLUTIONS = 60, 20
# With more samples than this for a task, on average, a fit has more steps.
MANY_SAMPLES = 10
# The smallest share of the learning rate that small data sets use.
SMALLEST_SHARE = 1 / 3

Augmentation = Callable[[Tensor, torch.Generator], Tensor]


@dataclass(frozen=True)
class VariableProjection(LeastSquares):
    """Train phi on the error that its best heads leave, with those heads in closed form.

    For each task, w = (Phi^T Phi + ridge I)^-1 Phi^T y is a differentiable function of phi, so
    only phi is trained. The error of a sample is, with leverage h = phi^T V^-1 phi,

        leave_one_out   (y - <w, phi>) / (1 - h)   the error of heads fitted without the sample
        residual         y - <w, phi>              plain least squares

    While tasks have fewer samples than features, the heads fit their data for every phi, and the
    residuals contain no information about phi; leave-one-out errors do.

    Auxiliary targets of the data (`MultitaskDataset.with_auxiliary_targets`) have heads of their
    own. They cost little, because all targets share the same matrices.

    Phi is not trained while there are fewer samples than unbounded features. A step uses a few
    random tasks and at most `samples_per_task` samples of each, so the cost of a fit, at most
    max_steps * batch_size samples, does not grow with the data. With `stopping` the bound is that
    of `HeldOutStopping`.
    """

    steps: int | None = None
    """Gradient steps of a fit with up to ten samples a task; more samples use more steps, in
    proportion to the square root. None: 60, and 20 for networks with convolutions."""
    max_steps: int = 240
    """Upper bound of the steps, unless `steps` is larger."""
    learning_rate: float = 3e-3
    samples_at_full_rate: int = 1000
    """With fewer samples the learning rate is smaller in proportion, but at least a third of it.
    0 always uses the full rate."""
    weight_decay: float = 0.0
    batch_size: int = 1024
    """The most samples that a step uses."""
    samples_per_task: int = 64
    """The most samples of one task that a step uses."""
    # Paper: plain least squares. A network that interpolates has no residuals to learn phi from.
    loss: ErrorKind = "leave_one_out"
    epsilon: float = 1e-5
    """Of Adam. Gradients far below it are rounding errors, which a smaller one would amplify."""
    augment: Augmentation | None = None
    """(inputs [n, *input], generator) -> inputs with the same rewards, drawn in every step."""
    gradients: Literal["autograd", "closed_form"] = "autograd"
    """Of the errors of a step in phi. `closed_form` takes less than half the time on a CPU, and
    solves the heads of a step in single precision where that is safe; it differs by rounding."""
    stopping: HeldOutStopping | None = None
    """With enough samples, train until the error on held-out samples stops falling, instead of the
    number of steps above. None always makes those steps."""

    def __post_init__(self) -> None:
        if self.steps is not None:
            validate_count(self.steps, "steps", at_least=0)
        for name in ("max_steps", "samples_at_full_rate"):
            validate_count(getattr(self, name), name, at_least=0)
        for name in ("batch_size", "samples_per_task"):
            validate_count(getattr(self, name), name)
        for name in ("learning_rate", "weight_decay", "epsilon"):
            validate_not_negative(getattr(self, name), name)
        if self.loss not in get_args(ErrorKind):
            raise InvalidInputError(f"loss must be one of {get_args(ErrorKind)}, got {self.loss!r}")
        validate_choice(self.gradients, "gradients", ("autograd", "closed_form"))
        if self.augment is not None:
            expected = "a function (inputs, generator) -> inputs"
            validate_component(self.augment, "augment", expected)
        if self.stopping is not None and not isinstance(self.stopping, HeldOutStopping):
            raise InvalidInputError(
                f"stopping must be a HeldOutStopping or None, got {self.stopping!r}"
            )

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
        has_weights = any(p.requires_grad for p in module.parameters())
        if not has_weights or not self.can_train(data.total, module, start.heads.shape[1]):
            return with_best_heads(start, data, penalty)
        SingleFit(
            self,
            representation,
            data,
            offset=start.offset,
            ridge=penalty.ridge,
            generator=generator,
            is_first=not in_any(data.shards, bool(start.heads.any())),
        ).run()
        return best_on(representation, data, start, penalty)

    def fit_stack(
        self,
        stack: NetworkStack,
        data: Sequence[MultitaskDataset],
        generators: Sequence[torch.Generator],
        *,
        offset: float,
        ridge: float,
        feature_dim: int,
    ) -> None:
        """Train the networks of a stack in place, see `StackedFit`; not with too little data."""
        if self.can_train(len(data[0]), stack.module, feature_dim):
            StackedFit(self, stack, data, offset=offset, ridge=ridge, generators=generators).run()

    def plan(
        self,
        data: MultitaskDataset,
        module: nn.Module,
        generator: torch.Generator,
        *,
        steps: int | None = None,
        held_out: Tensor | None = None,
    ) -> FitPlan:
        """The random draws of a fit of `module` to `data`, or of `steps` steps of it."""
        return FitPlan.draw(
            data,
            module,
            generator,
            steps=self._usual_steps(data, module) if steps is None else steps,
            batch_size=self.batch_size,
            samples_per_task=self.samples_per_task,
            held_out=held_out,
        )

    def shard_plan(
        self, data: MultitaskDataset, module: nn.Module, generator: torch.Generator
    ) -> TaskPlan:
        """The part of a shard in the random draws of a fit of `module` to the data of all."""
        return draw_by_task(
            data,
            module,
            generator,
            steps=self._usual_steps(data, module),
            batch_size=self.batch_size,
            samples_per_task=self.samples_per_task,
        )

    def _usual_steps(self, data: MultitaskDataset, module: nn.Module) -> int:
        """`steps_for` the samples of all shards."""
        counts = data.samples_per_task.cpu()
        if data.shards.count > 1:
            num_tasks, num_samples = totals(data.shards, int((counts > 0).sum()), len(data))
            counts = torch.tensor([num_samples / max(1, num_tasks)])
        return self.steps_for(counts, module)

    def stopping_rule(
        self, stopping: HeldOutStopping, data: MultitaskDataset, module: nn.Module
    ) -> StoppingRule:
        """The rule that stops a fit of `module` to `data`."""
        steps = self._usual_steps(data, module)
        bound = stopping.step_bound(steps, len(data), self.batch_size)
        return StoppingRule(stopping, usual_steps=steps, bound=bound, num_samples=len(data))

    def can_train(self, num_samples: int, module: nn.Module, feature_dim: int) -> bool:
        """Whether there is enough data to train on; with less, only the heads are fitted."""
        # Any features fit fewer samples than features, and larger ones fit them better: networks
        # of single tasks diverged in their first rounds and did not recover.
        return num_samples >= num_unbounded(module, feature_dim)

    def steps_for(self, samples_per_task: Tensor, module: nn.Module) -> int:
        """The number of steps of a fit of a module to tasks with these sample counts [task]."""
        steps = self.steps
        if steps is None:
            steps = STEPS_WITH_CONVOLUTIONS if convolves(module) else STEPS
        # Heads of few samples contain little information about phi, for any number of tasks. With
        # many steps phi overfits them, and later fits do not undo it.
        per_task = samples_per_task[samples_per_task > 0].double().mean().item()
        grown = round(steps * math.sqrt(per_task / MANY_SAMPLES))
        return max(steps, min(grown, self.max_steps))

    def learning_rate_for(self, num_samples: int) -> float:
        """The learning rate of a fit to this many samples."""
        share = num_samples / max(1, self.samples_at_full_rate)
        return self.learning_rate * min(1.0, max(SMALLEST_SHARE, share))

    def make_optimiser(
        self, weights: Sequence[Tensor], learning_rate: float, *, capturable: bool = False
    ) -> FusedAdamW:
        """AdamW, which updates every weight separately: a stack trains as separate networks do."""
        return FusedAdamW(
            weights,
            learning_rate=learning_rate,
            weight_decay=self.weight_decay,
            epsilon=self.epsilon,
            capturable=capturable,
        )

    def augmented(self, inputs: Tensor, generator: torch.Generator) -> Tensor:
        """The inputs [n, *input] of a step."""
        return inputs if self.augment is None else self.augment(inputs, generator)

    def errors(self, features: Tensor, targets: Tensor, present: Tensor, ridge: float) -> Tensor:
        """The errors of the loss [task, slot, target], see `head_errors`."""
        if self.gradients == "closed_form":
            return fast_head_errors(features, targets, present, ridge=ridge, kind=self.loss)
        features = features.to(torch.float64)
        return head_errors(features, targets, present, ridge=ridge, kind=self.loss)
