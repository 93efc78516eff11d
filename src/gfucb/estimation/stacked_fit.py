"""Variable projection for a stack of networks: all replicas train in the same operations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from gfucb.core.random import global_randomness_from
from gfucb.estimation.fit_plan import FitPlan, plan_generator
from gfucb.estimation.stopping import HeldOutCheck, HeldOutStopping
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
        self.fit, self.stack, self.data = fit, stack, data
        self.offset, self.ridge, self.generators = offset, ridge, generators
        self.device = data[0].inputs.device
        self.batch: tuple[Tensor, ...] = ()
        self.inputs = torch.stack([own.inputs for own in data])
        self.targets = torch.stack([own.targets for own in data]) - offset
        self.optimiser = fit.make_optimiser(
            [*stack.weights.values()],
            fit.learning_rate_for(len(data[0])),
            capturable=self.device.type == "cuda",
        )

    def run(self) -> None:
        """Make the steps of the plan, or those until the held-out errors stop falling."""
        # An augmentation draws on the CPU in every step, so it cannot be part of a CUDA graph. The
        # graph is no attribute: it would be in a cycle, and freed during the capture of another.
        is_graphed = self.fit.augment is None
        step = CudaGraphed(self._step, self.device) if is_graphed else self._step
        stopping = self.fit.stopping
        # Held-out samples follow from their indices: all replicas hold out the same.
        held_out = None if stopping is None else stopping.held_out(self.data[0])
        if stopping is None or held_out is None:
            plan = self._plan(self.generators)
            with global_randomness_from(self.generators[0]):
                self._make_steps(step, plan)
        else:
            self._run_until_stopped(step, stopping, held_out)
        self.stack.module.eval()

    def _run_until_stopped(
        self, step: Callable[[], None], stopping: HeldOutStopping, held_out: Tensor
    ) -> None:
        """All replicas make steps until the last one stops; each has its own best weights."""
        draws = [plan_generator(generator) for generator in self.generators]
        rules = [self.fit.stopping_rule(stopping, own, self.stack.module) for own in self.data]
        check = StackedCheck(self.data, held_out, offset=self.offset, ridge=self.ridge)
        averaged = self.stack.taken(range(len(self.stack)))
        best = self.stack.taken(range(len(self.stack)))
        for rule, error in zip(rules, check.errors(averaged), strict=True):
            rule.is_best(0, error)
        with global_randomness_from(self.generators[0]):
            while steps := max(rule.next_steps for rule in rules):
                done = max(rule.step for rule in rules)
                plan = self._plan(draws, steps=steps, held_out=held_out)
                self._make_steps(step, plan, (stopping, averaged, done))
                errors = check.errors(averaged)
                for replica, (rule, error) in enumerate(zip(rules, errors, strict=True)):
                    if rule.next_steps and rule.is_best(done + steps, error):
                        best.put([replica], averaged.taken([replica]))
        self.stack.put(range(len(self.stack)), best)

    def _plan(
        self,
        generators: Sequence[torch.Generator],
        *,
        steps: int | None = None,
        held_out: Tensor | None = None,
    ) -> FitPlan:
        plans = [
            self.fit.plan(own, self.stack.module, generator, steps=steps, held_out=held_out)
            for own, generator in zip(self.data, generators, strict=True)
        ]
        return FitPlan.stack(plans).to(self.device)

    def _make_steps(
        self,
        step: Callable[[], None],
        plan: FitPlan,
        averaging: tuple[HeldOutStopping, NetworkStack, int] | None = None,
    ) -> None:
        """Make the steps of a plan; averages are updated after each, given the steps before."""
        self.stack.module.train()
        for index, batch in enumerate(plan):
            self._set_batch(batch)
            step()
            if averaging is not None:
                stopping, averaged, done = averaging
                averages, weights = averaged.weights.values(), self.stack.weights.values()
                stopping.average([*averages], [*weights], done + index + 1)

    def _set_batch(self, batch: tuple[Tensor, ...]) -> None:
        # A CUDA graph reads its batch from the same memory in every step.
        if self.batch:
            for buffer, values in zip(self.batch, batch, strict=True):
                buffer.copy_(values)
            return
        self.batch = tuple(values.clone() for values in batch)
        names, seeds = seed_names(self.stack.module), self.batch[2]
        self.stack.buffers |= {name: seeds[:, index] for index, name in enumerate(names)}

    def _step(self) -> None:
        samples, present, _ = self.batch
        replicas = torch.arange(len(self.stack), device=self.device)[:, None]
        features = self.stack(self._augmented(self.inputs[replicas, samples.flatten(1)]))
        features = features.unflatten(1, samples.shape[1:])
        errors = self.fit.errors(
            features.flatten(0, 1),
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


class StackedCheck:
    """The held-out errors of all replicas, see `HeldOutCheck`.

    Args:
        data: one data set for each replica, with the same tasks.
        held_out: which samples are held out, [sample].
        offset: of the functions that are fitted.
        ridge: the penalty on heads.
    """

    def __init__(
        self, data: Sequence[MultitaskDataset], held_out: Tensor, *, offset: float, ridge: float
    ) -> None:
        self.check, self.ridge = HeldOutCheck.of(data[0], held_out), ridge
        self.inputs = torch.stack([self.check.inputs(own) for own in data])
        self.targets = [self.check.targets(own, offset) for own in data]

    def errors(self, stack: NetworkStack) -> list[float]:
        """The error of each replica."""
        stack.module.eval()
        with torch.no_grad():
            features = stack(self.inputs)
        pairs = zip(features, self.targets, strict=True)
        return [self.check.error(phi, targets, self.ridge) for phi, targets in pairs]
