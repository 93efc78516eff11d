"""Many independent replicas of an agent on one device, advanced together.

The seeds of an experiment, or groups of tasks that share nothing, are small problems that leave a
device idle when they run one at a time. `BatchedAgents` stacks them: every layer of every network,
every head and every confidence ellipsoid is one batched operation over all replicas. Each replica
decides and learns as it would alone, up to rounding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from gfucb.bandits.batched_candidates import BatchedCandidates
from gfucb.bandits.batched_scales import BatchedScales
from gfucb.bandits.batched_validation import (
    batched_fit,
    batched_selector,
    validate_batch_candidates,
    validate_batch_feedback,
    validate_replicas,
)
from gfucb.bandits.default_learner import network_learner
from gfucb.bandits.gfucb import GFUCB
from gfucb.bandits.refit_rule import PredictionErrorMonitor
from gfucb.bandits.saved_fit import representation_state
from gfucb.core.linalg import inverse_squared_norms
from gfucb.core.random import random_stream
from gfucb.core.records import BatchedDecision, Prediction, Row
from gfucb.core.validation.arrays import ArrayLike
from gfucb.core.validation.bandits import gradients_allowed
from gfucb.estimation.calibration import with_reward_scale
from gfucb.models import HeadStatistics, MultitaskDataset
from gfucb.models.gradients import network_of
from gfucb.models.nn.stacked import NetworkStack


class BatchedAgents:
    """Agents that differ in their seeds only, each with its own data, in one batch.

    In every round every task of every replica decides and gets a reward. On a GPU the time of a
    round hardly grows with the number of replicas until the device is full.

    Args:
        agents: `GFUCB` agents on networks, without data, with a fit that has `fit_stack`, as
            `VariableProjection` has, and an action selector that has `select_batched`, as
            `LastLayer` and `Greedy` have. `unbatch` gives them the state of their replicas.
    """

    def __init__(self, agents: Sequence[GFUCB]) -> None:
        self.agents = validate_replicas(agents)
        first = self.agents[0]
        self.num_tasks = first.num_tasks
        self.device = first.network_learner.device
        self.num_fits = [0] * len(self.agents)
        self.radius_states = [agent.radius_state for agent in self.agents]
        self._learner = first.network_learner
        self._fit, self._selector = batched_fit(first), batched_selector(first)
        self._scales = BatchedScales(
            self._learner.scaling, (self._learner.scale,) * len(self.agents), self.device
        )
        self._samples_at_fit = 0
        self._error_monitors = [PredictionErrorMonitor()] * len(self.agents)
        self._fit_state: _BatchState | None = None
        self._candidates = BatchedCandidates.of([agent.network_learner for agent in self.agents])

    def __len__(self) -> int:
        return len(self.agents)

    def __repr__(self) -> str:
        samples = 0 if self._fit_state is None else len(self._fit_state.data)
        return f"BatchedAgents({len(self)} replicas of {self.num_tasks} tasks, samples={samples})"

    @gradients_allowed()
    def decide(self, candidates: ArrayLike, available: ArrayLike | None = None) -> BatchedDecision:
        """Choose for every task of every replica: candidates [replica, task, action, *input].

        `available` [replica, task, action] says which actions exist; by default all do.
        """
        action_sets = validate_batch_candidates(
            candidates, available, (len(self), self.num_tasks), self.device
        )
        fit_state = self._fit_state or self._prior(action_sets.candidates.flatten(0, 1))
        penalty = self._learner.penalty
        num_actions = action_sets.available.shape[1]
        inputs = self._by_replica(action_sets.candidates).flatten(1, 2)
        features = fit_state.stack.features(inputs).view(len(action_sets.tasks), num_actions, -1)
        heads = fit_state.statistics.heads(penalty)
        offsets = self._scales.locations.repeat_interleave(self.num_tasks, dim=0)
        means = offsets + (features @ heads.unsqueeze(-1)).squeeze(-1)
        means = means.masked_fill(~action_sets.available, -torch.inf)
        variances = inverse_squared_norms(fit_state.statistics.cholesky(penalty.ridge), features)
        radii = torch.tensor(self._squared_radii(fit_state), dtype=means.dtype, device=self.device)
        actions, bonuses = self._selector.select_batched(
            self._by_replica(means), self._by_replica(variances), radii
        )

        rows, chosen = torch.arange(len(action_sets.tasks)), actions.flatten()
        mean = self._by_replica(means[rows, chosen])
        variance = self._by_replica(variances[rows, chosen])
        return BatchedDecision(
            actions,
            self._scales.clip_values(mean + bonuses),
            self._by_replica(action_sets.inputs_of(chosen)),
            self._by_replica(features[rows, chosen]),
            Prediction(mean, variance),
            tuple(self.num_fits),
            self._candidates.offered(action_sets),
        )

    @gradients_allowed()
    def observe(self, decision: BatchedDecision, rewards: ArrayLike) -> None:
        """Learn from rewards [replica, task] of a decision; if a refit fails, nothing changes."""
        values = validate_batch_feedback(decision, rewards, (len(self), self.num_tasks))
        fit_state = self._fit_state or self._prior(decision.inputs.flatten(0, 1))
        before = self._fit_state, list(self.num_fits), self._scales, self._candidates
        size = len(fit_state.data)
        tasks = torch.arange(values.numel(), device=self.device)
        fit_state.data.append(tasks, decision.inputs.flatten(0, 1), values.flatten())
        try:
            self._learn(fit_state, decision, values)
        except BaseException:
            fit_state.data.truncate(size)
            self._fit_state, self.num_fits, self._scales, self._candidates = before
            raise

    def _learn(self, fit_state: _BatchState, decision: BatchedDecision, values: Tensor) -> None:
        """Update scales, heads, networks and radii with the last rewards [replica, task]."""
        self._candidates = self._candidates.with_decision(decision, like=fit_state.data.inputs)
        samples = len(fit_state.data) // len(self)
        num_old, growth = samples - self.num_tasks, self._learner.refit_growth
        self._scales, rescaled = self._scales.after(
            values,
            num_old,
            lambda replica: self._own(fit_state.data.targets, replica),
            is_due=growth > 2 and samples.bit_length() > num_old.bit_length(),
        )
        targets, means = self._scales.clip(values).to(self.device), decision.prediction.mean
        is_predicted = self._learner.scaling.is_located or any(decision.num_fits)
        if not is_predicted:
            means = self._scales.locations.expand_as(means)
        errors = (targets - means).cpu()
        monitors = [m.plus(e) for m, e in zip(self._error_monitors, errors, strict=True)]
        is_due = samples >= growth * self._samples_at_fit
        refitted = [
            replica
            for replica, monitor in enumerate(monitors)
            if is_due or monitor.should_refit(samples, self._samples_at_fit, growth)
        ]
        features = decision.features
        if decision.num_fits != tuple(self.num_fits):  # a late reward: phi has changed since
            features = fit_state.stack.features(decision.inputs)
        statistics = fit_state.statistics.plus_one_each(
            features.flatten(0, 1), (targets - self._scales.locations).flatten()
        )
        self._fit_state = replace(fit_state, statistics=statistics)
        if refitted:
            self._refit(refitted)
        if only_rescaled := [replica for replica in rescaled if replica not in refitted]:
            self._refit(only_rescaled, trains=False)
        if is_due:
            self._samples_at_fit = samples
        self._error_monitors = [
            monitor.after_fit() if replica in refitted else monitor
            for replica, monitor in enumerate(monitors)
        ]
        self._update_radii(decision.prediction if is_predicted else None, values)

    def diagnostics(self, replica: int) -> Row:
        """The number of fits of one replica, and the diagnostics of its radius."""
        candidates = self._candidates.diagnostics(replica)
        radius = self.radius_states[replica].diagnostics()
        return {"fits": self.num_fits[replica], **candidates, **radius}

    def unbatch(self) -> list[GFUCB]:
        """The agents, each with the state of its replica, to continue one by one."""
        if self._fit_state is not None:
            networks = self._fit_state.stack.unstacked()
            heads = self._fit_state.statistics.heads(self._learner.penalty)
            for replica, (agent, network) in enumerate(zip(self.agents, networks, strict=True)):
                agent.load_state(
                    self._state_of(replica, heads)
                    | representation_state(agent.network_learner, network)
                    | self.radius_states[replica].tensors()
                )
        return self.agents

    def _state_of(self, replica: int, heads: Tensor) -> dict[str, Tensor]:
        """The state of one replica, without its network and its radius."""
        assert self._fit_state is not None
        own, statistics = self._tasks_of(replica), self._fit_state.statistics
        data = self._data_of(replica)
        return {
            "counters": torch.tensor([self.num_fits[replica], self._samples_at_fit]),
            "monitor": self._error_monitors[replica].tensor(),
            "data.inputs": data.inputs,
            "data.tasks": data.tasks,
            "data.targets": data.targets,
            "statistics.grams": statistics.grams[own],
            "statistics.moments": statistics.moments[own],
            "heads": heads[own],
            **self._scales.scaling.tensors(self._scales.scales[replica]),
            **self._candidates.tensors(replica),
        }

    def _prior(self, inputs: Tensor) -> _BatchState:
        """The state without data, for inputs like these [n, *input]."""
        priors = [
            network_learner(agent.learner, inputs[:1]).fit_state(inputs[:1])
            for agent in self.agents
        ]
        stack = NetworkStack([network_of(center) for center, _, _ in priors])
        num_tasks = len(self) * self.num_tasks
        feature_dim = priors[0][0].heads.shape[1]
        stored = priors[0][1].inputs
        data = MultitaskDataset(num_tasks, stored.shape[1:], stored.dtype, device=self.device)
        return _BatchState(stack, data, HeadStatistics.empty(num_tasks, feature_dim, self.device))

    def _refit(self, replicas: list[int], *, trains: bool = True) -> None:
        """Refit the networks of some replicas, all in one batch, and their heads.

        Without `trains` only the heads, to the targets of the current scales.
        """
        assert self._fit_state is not None
        stack, statistics = self._fit_state.stack, self._fit_state.statistics
        fitted = stack.taken(replicas)  # a copy: if the fit fails, the networks do not change
        stored = {replica: self._data_of(replica) for replica in replicas}
        if trains:
            self._scales = self._scales.estimated({r: own.targets for r, own in stored.items()})
            self._train(fitted, stored, feature_dim=statistics.moments.shape[1])
        features = fitted.features(torch.stack([own.inputs for own in stored.values()]))
        for (replica, own), phi in zip(stored.items(), features, strict=True):
            rows, scale = self._tasks_of(replica), self._scales.scales[replica]
            targets = scale.clip(own.targets) - scale.location
            refitted = HeadStatistics.of(phi, own.tasks, targets, self.num_tasks)
            statistics.grams[rows], statistics.moments[rows] = refitted.grams, refitted.moments
            self.num_fits[replica] += trains
        stack.put(replicas, fitted)

    def _train(
        self, stack: NetworkStack, stored: dict[int, MultitaskDataset], *, feature_dim: int
    ) -> None:
        """Train the networks of some replicas, in place, on their data."""
        self._candidates = self._candidates.trained_before_fit(
            stack, stored, self._scales.scales, self.num_fits
        )
        scaled = [self._scales.fitted_data(replica, own) for replica, own in stored.items()]
        self._fit.fit_stack(
            stack,
            [data for data, _ in scaled],
            [
                random_stream(
                    self.agents[replica].network_learner.seed, "fit", self.num_fits[replica]
                )
                for replica in stored
            ],
            offset=scaled[0][1],
            ridge=self._learner.penalty.ridge,
            feature_dim=feature_dim,
        )

    def _tasks_of(self, replica: int) -> slice:
        """The tasks of one replica among those of all."""
        return slice(replica * self.num_tasks, (replica + 1) * self.num_tasks)

    def _data_of(self, replica: int) -> MultitaskDataset:
        """The samples of one replica, in their order."""
        assert self._fit_state is not None
        data = self._fit_state.data
        inputs = self._own(data.inputs, replica)
        samples = MultitaskDataset(
            self.num_tasks,
            inputs.shape[1:],
            inputs.dtype,
            device=self.device,
            capacity=len(inputs),
        )
        tasks = self._own(data.tasks, replica) % self.num_tasks
        samples.append(tasks, inputs, self._own(data.targets, replica))
        return samples

    def _own(self, rows: Tensor, replica: int) -> Tensor:
        """The part of one replica of samples [round * replica * task, ...], in their order."""
        return rows.unflatten(0, (-1, len(self), self.num_tasks))[:, replica].flatten(0, 1)

    def _squared_radii(self, fit_state: _BatchState) -> list[float]:
        num_sharing = self.num_tasks if self._selector.joint else 1
        index = fit_state.data.round_index
        return [state.squared_radius(index, num_sharing) for state in self.radius_states]

    def _update_radii(self, prediction: Prediction | None, rewards: Tensor) -> None:
        if prediction is not None:
            means, variances = prediction.mean.cpu(), prediction.variance.cpu()
            self.radius_states = [
                state.after(Prediction(means[r], variances[r]), rewards[r])
                for r, state in enumerate(self.radius_states)
            ]
        self.radius_states = [
            with_reward_scale(state, scale.scale)
            for state, scale in zip(self.radius_states, self._scales.scales, strict=True)
        ]

    def _by_replica(self, rows: Tensor) -> Tensor:
        """[replica * task, ...] -> [replica, task, ...]."""
        return rows.unflatten(0, (len(self), self.num_tasks))


@dataclass(frozen=True, eq=False)
class _BatchState:
    """The fit of all replicas; task i of replica r has the number r * num_tasks + i."""

    stack: NetworkStack
    data: MultitaskDataset
    statistics: HeadStatistics
