"""Many independent copies of an agent on one device, advanced in batch.

Seeds of an experiment, or groups of tasks that share nothing, are small problems that leave a
device idle one at a time. A batched stacks them: every layer of every network, every head and
every confidence ellipsoid is one batched operation over all copies. Copies remain what they
would be alone, up to rounding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from gfucb.bandits.gfucb import GFUCB
from gfucb.bandits.refit_rule import PredictionErrorMonitor
from gfucb.core.errors import InvalidInputError
from gfucb.core.linalg import inverse_squared_norms
from gfucb.core.protocols import BatchedActionSelector
from gfucb.core.random import random_stream
from gfucb.core.records import Prediction, Row
from gfucb.core.validation.bandits import gradients_allowed, validate_action_sets, validate_rewards
from gfucb.estimation import CalibratedRadius, VariableProjection
from gfucb.models import HeadStatistics, MultitaskDataset
from gfucb.models.gradients import network_of
from gfucb.models.nn.stacked import NetworkStack


@dataclass(frozen=True, eq=False)
class BatchedDecision:
    """What every copy chose.

    Attributes:
        actions: [copy, task].
        optimistic_values: [copy, task].
        inputs: the chosen candidates, [copy, task, *input].
        features: their features, [copy, task, feature].
        prediction: estimates and unit widths, [copy, task] each.
    """

    actions: Tensor
    optimistic_values: Tensor
    inputs: Tensor
    features: Tensor
    prediction: Prediction


class BatchedAgents:
    """Agents built alike but for their seeds, each with problems of its own, in batch.

    In every round every task of every copy decides and is rewarded. What alone costs a launch a
    copy costs one in all: on a GPU the time of a round hardly grows with the number of copies
    until the device is full.

    Args:
        agents: `GFUCB` agents on networks, fitted by `VariableProjection`, with the optimism of
            `LastLayer` or `Greedy`, that have learned nothing yet. `unbatch` tells them what
            their copies have learned.
    """

    def __init__(self, agents: Sequence[GFUCB]) -> None:
        self.agents = list(agents)
        first = _checked(self.agents)
        self.num_tasks = first.num_tasks
        self.device = first.learner.device
        self.num_fits = [0] * len(agents)
        self.calibrations = [agent.calibration for agent in agents]
        self._learner, self._selector = first.learner, _batched_selector(first)
        self._samples_at_fit = 0
        self._error_monitors = [PredictionErrorMonitor()] * len(agents)
        self._fit_state: _BatchState | None = None

    def __len__(self) -> int:
        return len(self.agents)

    @gradients_allowed()
    def decide(self, candidates: Tensor, available: Tensor | None = None) -> BatchedDecision:
        """Choose for every task of every copy: candidates [copy, task, action, *input].

        `available` [copy, task, action] says which of them exist; by default all do.
        """
        if tuple(candidates.shape[:2]) != (len(self), self.num_tasks):
            raise InvalidInputError(
                "candidates must have the shape [copy, task, action, *input] with "
                f"[{len(self)}, {self.num_tasks}, ...], got {list(candidates.shape)}"
            )
        action_sets = validate_action_sets(
            candidates.flatten(0, 1),
            None,
            None if available is None else available.flatten(0, 1),
            num_tasks=len(self) * self.num_tasks,
            device=self.device,
        )
        fit_state = self._fit_state or self._prior(action_sets.candidates.flatten(0, 1))
        penalty, offset = self._learner.penalty, self._learner.offset
        actions_offered = action_sets.available.shape[1]
        by_copy = action_sets.candidates.unflatten(0, (len(self), -1)).flatten(1, 2)
        features = fit_state.stack.features(by_copy).view(
            len(action_sets.tasks), actions_offered, -1
        )
        heads = fit_state.statistics.heads(penalty)
        means = offset + (features @ heads.unsqueeze(-1)).squeeze(-1)
        means = means.masked_fill(~action_sets.available, -torch.inf)
        widths = inverse_squared_norms(fit_state.statistics.cholesky(penalty.ridge), features)
        radii = torch.tensor(self._squared_radii(fit_state), dtype=means.dtype, device=self.device)
        actions, bonuses = self._selector.select_batched(
            self._by_copy(means), self._by_copy(widths), radii
        )

        rows, chosen = torch.arange(len(action_sets.tasks)), actions.flatten()
        estimates = self._by_copy(means[rows, chosen])
        squared_widths = self._by_copy(widths[rows, chosen])
        optimistic_values = estimates + bonuses
        if self._learner.value_range is not None:
            optimistic_values = optimistic_values.clamp(*self._learner.value_range)
        return BatchedDecision(
            actions,
            optimistic_values,
            self._by_copy(action_sets.inputs_of(chosen)),
            self._by_copy(features[rows, chosen]),
            Prediction(estimates, squared_widths),
        )

    @gradients_allowed()
    def observe(self, decision: BatchedDecision, rewards: Any) -> None:
        """Learn from rewards [copy, task] of the last decision."""
        shape = (len(self), self.num_tasks)
        read = torch.as_tensor(rewards)
        if tuple(read.shape) != shape:
            raise InvalidInputError(
                f"rewards must have the shape [copy, task] = {list(shape)}, got {list(read.shape)}"
            )
        read = validate_rewards(read.flatten(), read.numel()).view(shape)
        fit_state = self._fit_state or self._prior(decision.inputs.flatten(0, 1))
        tasks = torch.arange(read.numel(), device=self.device)
        targets = read.to(self.device)
        errors = (targets - decision.prediction.mean).cpu()
        monitors = [s.plus(e) for s, e in zip(self._error_monitors, errors, strict=True)]
        samples = len(fit_state.data) // len(self) + self.num_tasks
        is_due = samples >= self._learner.refit_growth * self._samples_at_fit
        stale = [
            copy
            for copy, monitor in enumerate(monitors)
            if is_due
            or monitor.should_refit(samples, self._samples_at_fit, self._learner.refit_growth)
        ]
        fit_state.data.append(tasks, decision.inputs.flatten(0, 1), targets.flatten())
        statistics = fit_state.statistics.plus_one_each(
            decision.features.flatten(0, 1), targets.flatten() - self._learner.offset
        )
        self._fit_state = replace(fit_state, statistics=statistics)
        if stale:
            self._refit(stale)
        if is_due:
            self._samples_at_fit = samples
        self._error_monitors = [
            monitor.after_fit() if copy in stale else monitor
            for copy, monitor in enumerate(monitors)
        ]
        self._calibrate(decision.prediction, read)

    def diagnostics(self, copy: int) -> Row:
        """Facts about one copy: its number of fits and the coverage of its bounds."""
        row: dict[str, float | int] = {"fits": self.num_fits[copy]}
        calibration = self.calibrations[copy]
        if calibration is not None:
            row["coverage"] = calibration.coverage
        return row

    def unbatch(self) -> list[GFUCB]:
        """The agents, each with what its copy has learned: they go on alone from here."""
        if self._fit_state is not None:
            networks = self._fit_state.stack.unstacked()
            for copy, (agent, network) in enumerate(zip(self.agents, networks, strict=True)):
                own = self._data_of(copy)
                mine = slice(copy * self.num_tasks, (copy + 1) * self.num_tasks)
                statistics = self._fit_state.statistics
                heads = statistics.heads(self._learner.penalty)
                state = {
                    "counters": torch.tensor([self.num_fits[copy], self._samples_at_fit]),
                    "monitor": self._error_monitors[copy].tensor(),
                    "data.inputs": own.inputs,
                    "data.tasks": own.tasks,
                    "data.targets": own.targets,
                    "statistics.grams": statistics.grams[mine],
                    "statistics.moments": statistics.moments[mine],
                    "heads": heads[mine],
                }
                state |= agent.learner.representation_state(network)
                calibration = self.calibrations[copy]
                agent.load_state(state | (calibration.tensors() if calibration else {}))
        return self.agents

    def _prior(self, inputs: Tensor) -> _BatchState:
        """The fit_state before any data, for inputs like these [n, *input]."""
        beginnings = [agent.learner.fit_state(inputs[:1]) for agent in self.agents]
        stack = NetworkStack([network_of(center) for center, _, _ in beginnings])
        num_tasks = len(self) * self.num_tasks
        feature_dim = beginnings[0][0].heads.shape[1]
        stored = beginnings[0][1].inputs
        data = MultitaskDataset(num_tasks, stored.shape[1:], stored.dtype, device=self.device)
        return _BatchState(stack, data, HeadStatistics.empty(num_tasks, feature_dim, self.device))

    def _refit(self, copies: list[int]) -> None:
        """Fit the networks of some copies anew, all at once, and their heads."""
        assert self._fit_state is not None
        stack, statistics = self._fit_state.stack, self._fit_state.statistics
        fit = self._learner.fit
        assert isinstance(fit, VariableProjection)
        fitted = stack if len(copies) == len(self) else stack.taken(copies)
        data = [self._data_of(copy) for copy in copies]
        if fit.can_train(len(data[0]), stack.module, statistics.moments.shape[1]):
            fit.fit_stack(
                fitted,
                data,
                offset=self._learner.offset,
                ridge=self._learner.penalty.ridge,
                generators=[
                    random_stream(self.agents[copy].learner.seed, "fit", self.num_fits[copy])
                    for copy in copies
                ],
            )
        features = fitted.features(torch.stack([own.inputs for own in data]))
        for own, phi, copy in zip(data, features, copies, strict=True):
            mine = slice(copy * self.num_tasks, (copy + 1) * self.num_tasks)
            targets = own.targets - self._learner.offset
            news = HeadStatistics.of(phi, own.tasks, targets, self.num_tasks)
            statistics.grams[mine], statistics.moments[mine] = news.grams, news.moments
            self.num_fits[copy] += 1
        if fitted is not stack:
            stack.put(copies, fitted)

    def _data_of(self, copy: int) -> MultitaskDataset:
        """The samples of one copy, in their order."""
        assert self._fit_state is not None
        data = self._fit_state.data

        def mine(rows: Tensor) -> Tensor:
            return rows.unflatten(0, (-1, len(self), self.num_tasks))[:, copy].flatten(0, 1)

        inputs = mine(data.inputs)
        own = MultitaskDataset(
            self.num_tasks,
            inputs.shape[1:],
            inputs.dtype,
            device=self.device,
            capacity=len(inputs),
        )
        own.append(mine(data.tasks) % self.num_tasks, inputs, mine(data.targets))
        return own

    def _squared_radii(self, fit_state: _BatchState) -> list[float]:
        radius, calibrations = self.agents[0].squared_radius, self.calibrations
        if isinstance(radius, CalibratedRadius):
            sharers = self.num_tasks if self._selector.joint else 1
            return [c.squared_radius(sharers) for c in calibrations if c is not None]
        return [radius(fit_state.data.round_index)] * len(self)

    def _calibrate(self, prediction: Prediction, rewards: Tensor) -> None:
        estimates, widths = prediction.mean.cpu(), prediction.variance.cpu()
        self.calibrations = [
            calibration and calibration.after(Prediction(estimates[c], widths[c]), rewards[c])
            for c, calibration in enumerate(self.calibrations)
        ]

    def _by_copy(self, rows: Tensor) -> Tensor:
        """[copy task, ...] -> [copy, task, ...]."""
        return rows.unflatten(0, (len(self), self.num_tasks))


@dataclass(frozen=True, eq=False)
class _BatchState:
    """What the batched has learned; task i of copy c stands at c * num_tasks + i."""

    stack: NetworkStack
    data: MultitaskDataset
    statistics: HeadStatistics


def _checked(agents: list[GFUCB]) -> GFUCB:
    """The first agent, once it is clear that all are built alike and can be stacked."""
    if not agents:
        raise InvalidInputError("a batched needs at least one agent, got none")
    first = agents[0]
    alike = [agent.settings() | {"seed": "", "M": str(agent.num_tasks)} for agent in agents]
    for one in alike[1:]:
        if one != alike[0]:
            name = next(name for name in one if one[name] != alike[0].get(name))
            raise InvalidInputError(
                "the agents of a batched must be built alike but for their seeds; they differ in "
                f"{name}: {alike[0].get(name)} and {one[name]}"
            )
    fit = first.learner.fit
    if (
        not isinstance(fit, VariableProjection)
        or first.representation_class.structure != "neural"
        or first.learner.penalty.norm_bound is not None
    ):
        raise InvalidInputError(
            "agents can be batched if their representations are networks, fitted by "
            f"VariableProjection without a norm bound, got {type(fit).__name__}"
        )
    if any(agent.state() for agent in agents):
        raise InvalidInputError("the agents of a batched must not have learned anything yet")
    return first


def _batched_selector(agent: GFUCB) -> BatchedActionSelector:
    """The selector of an agent, which must be able to decide for many replicas at once."""
    selector = agent.action_selector
    if not isinstance(selector, BatchedActionSelector):
        raise InvalidInputError(
            "agents can be batched if their action selector has the method select_batched, as "
            f"LastLayer and Greedy have, got {type(selector).__name__}"
        )
    return selector
