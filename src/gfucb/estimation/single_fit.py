"""Variable projection for one network."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from gfucb.core.errors import InvalidInputError
from gfucb.core.memory import keep_freed_memory
from gfucb.core.shards import OneShard
from gfucb.estimation.fit_plan import FitPlan, plan_generator
from gfucb.estimation.held_out import all_targets
from gfucb.estimation.shard_gradients import sum_gradients
from gfucb.estimation.stopping import HeldOutCheck, HeldOutStopping
from gfucb.models import MultitaskDataset
from gfucb.models.nn.global_draws import training_randomness_from
from gfucb.models.nn.seeded_layers import seeded_layers, set_row_seeds
from gfucb.models.representations import NeuralRepresentation, train_on

if TYPE_CHECKING:
    from gfucb.estimation.variable_projection import VariableProjection


NO_GRADIENTS = (
    "the features of the network have no gradients, so it cannot be fitted: they were detached, "
    "made integers, or computed outside torch; leave such steps out of its forward"
)


class SingleFit:
    """Trains a network in place, on data that are enough to train on.

    Args:
        fit: the settings.
        representation: the network.
        data: the samples of all tasks.
        offset: of the function that is fitted.
        ridge: the penalty on heads.
        generator: the only source of randomness.
        is_first: whether the network was never trained.
    """

    def __init__(
        self,
        fit: VariableProjection,
        representation: NeuralRepresentation,
        data: MultitaskDataset,
        *,
        offset: float,
        ridge: float,
        generator: torch.Generator,
        is_first: bool,
    ) -> None:
        self.fit, self.representation, self.data = fit, representation, data
        self.offset, self.ridge, self.generator = offset, ridge, generator
        self.is_first, self.module = is_first, representation.module
        self.layers = seeded_layers(self.module)
        self.weights = [p for p in self.module.parameters() if p.requires_grad]
        self.targets = all_targets(data, offset)
        self.optimiser = fit.make_optimiser(self.weights, fit.learning_rate_for(data.total))

    def run(self) -> None:
        """Make the steps of the plan, or those until the held-out error stops falling."""
        keep_freed_memory()
        stopping = self.fit.stopping
        held_out = None
        if stopping is not None:
            held_out = stopping.held_out(self.data, is_first_fit=self.is_first)
        if stopping is None or held_out is None:
            is_alone = isinstance(self.data.shards, OneShard)
            draw = self.fit.plan if is_alone else self.fit.shard_plan
            plan = draw(self.data, self.module, self.generator)
            with self._randomness():
                for batch in plan.to(self.data.inputs.device).batches():
                    self._step(*batch)
        else:
            self._run_until_stopped(stopping, held_out)
        set_row_seeds(self.module, None)
        self.module.eval()

    def _randomness(self) -> AbstractContextManager[None]:
        return training_randomness_from(
            self.generator,
            self.module,
            others_draw=self.fit.augment is not None,
            waits_for_others=self.data.shards.count > 1,
        )

    def _run_until_stopped(self, stopping: HeldOutStopping, held_out: Tensor) -> None:
        draws = plan_generator(self.generator)
        rule = self.fit.stopping_rule(stopping, self.data, self.module)
        check = HeldOutCheck.of(self.data, held_out)
        inputs, targets = check.inputs(self.data), check.targets(self.data, self.offset)
        averaged = self.representation.copy()
        averages = [p for p in averaged.module.parameters() if p.requires_grad]

        def error() -> float:
            with torch.no_grad():
                return check.error(averaged(inputs), targets, self.ridge)

        rule.is_best(0, error())
        best = _state(averaged)
        with self._randomness():
            while rule.next_steps:
                first = rule.step + 1
                plan = self._plan(rule.next_steps, held_out, draws)
                for step, batch in enumerate(plan.batches(), start=first):
                    self._step(*batch)
                    stopping.average(averages, self.weights, step)
                _copy_buffers(self.representation, averaged)
                if rule.is_best(first + len(plan) - 1, error()):
                    best = _state(averaged)
        self.module.load_state_dict(best)

    def _plan(self, steps: int, held_out: Tensor, draws: torch.Generator) -> FitPlan:
        plan = self.fit.plan(self.data, self.module, draws, steps=steps, held_out=held_out)
        return plan.to(self.data.inputs.device)

    def _step(self, samples: Tensor, present: Tensor, seeds: Tensor, total: Tensor | int) -> None:
        self.optimiser.zero_grad()
        if len(samples):  # a shard may have none of the tasks of a batch
            self._set_seeds(seeds)
            train_on(self.module, samples.numel())
            inputs = self.fit.augmented(self.data.inputs[samples.flatten()], self.generator)
            features = self.representation(inputs).unflatten(0, samples.shape)
            if not features.requires_grad:
                raise InvalidInputError(NO_GRADIENTS)
            errors = self.fit.errors(features, self.targets[samples], present, self.ridge)
            (errors.square().sum() / total).backward()
        sum_gradients(self.weights, self.data.shards)
        self.optimiser.step()

    def _set_seeds(self, seeds: Tensor) -> None:
        """Set those of the layers [layer], or of the layers and rows [layer, n]."""
        if seeds.ndim == 2:
            set_row_seeds(self.module, seeds)
            return
        for layer, seed in zip(self.layers, seeds, strict=True):
            layer.seed = seed


def _state(representation: NeuralRepresentation) -> dict[str, Tensor]:
    """A copy of weights and buffers."""
    return {name: x.detach().clone() for name, x in representation.module.state_dict().items()}


def _copy_buffers(source: NeuralRepresentation, target: NeuralRepresentation) -> None:
    """Copy what training changes besides weights, such as the statistics of batch normalisation."""
    pairs = zip(source.module.buffers(), target.module.buffers(), strict=True)
    for value, buffer in pairs:
        buffer.copy_(value)
