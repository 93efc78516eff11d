"""What an agent has learned: the data, the fit, and the statistics of its heads."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor, nn

from gfucb.bandits.refit_rule import PredictionErrorMonitor
from gfucb.core.errors import InvalidInputError
from gfucb.core.protocols import LeastSquares
from gfucb.core.random import random_stream
from gfucb.models import (
    FiniteClass,
    HeadPenalty,
    HeadStatistics,
    LinearClass,
    LinearRepresentation,
    MultiheadFunction,
    MultitaskDataset,
    NeuralClass,
    NeuralRepresentation,
    Representation,
    RepresentationClass,
    features_of,
)
from gfucb.models.copy_on_write import CopyOnWriteRows
from gfucb.models.diagonal_gram import (
    GradientSquares,
    WeightStatistics,
    restored_statistics,
    statistics_of,
    tensors_of,
)
from gfucb.models.gradients import WeightSketch
from gfucb.models.nn.networks import default_network

# Inputs beyond this are refused by the default network, which expects them around one.
LARGEST_DEFAULT_INPUT = 1e3


class Learner:
    """Keeps a least-squares fit of all tasks up to date, at a bounded cost a reward.

    The representation is fitted anew when the data has grown by `refit_growth` since the last
    fit (1.0: at every call of `learn`), or earlier when rewards since then were predicted much
    worse than before it; in between, every reward updates the heads in closed form. With a
    `sketch`, statistics of the weights are kept along. With a `perturbation` the fit is told
    rewards + N(0, perturbation^2): all drawn afresh for a fit, each once for the rewards between
    fits; the data keep what was paid. Nothing is built before the shape of an input is known.
    """

    def __init__(
        self,
        *,
        num_tasks: int,
        representation_class: RepresentationClass | None,
        fit: LeastSquares,
        penalty: HeadPenalty,
        offset: float,
        value_range: tuple[float, float] | None,
        refit_growth: float,
        seed: int,
        device: torch.device | str,
        sketch: WeightSketch | GradientSquares | None = None,
        perturbation: float = 0.0,
    ) -> None:
        if not refit_growth >= 1:
            raise InvalidInputError(f"refit_growth must be at least 1, got {refit_growth}")
        self.num_tasks = num_tasks
        self.representation_class = representation_class
        self.fit = fit
        self.penalty = penalty
        self.offset = offset
        self.value_range = value_range
        self.refit_growth = refit_growth
        self.seed = seed
        self.device = _usable(device)
        self.sketch = sketch
        self.perturbation = perturbation
        self.num_fits = 0
        self._samples_at_fit = 0
        self._error_monitor = PredictionErrorMonitor()
        self._data: MultitaskDataset | None = None
        self._center: MultiheadFunction | None = None
        self._statistics: HeadStatistics | None = None
        self.tangents: WeightStatistics | None = None

    def fit_state(
        self, inputs: Tensor
    ) -> tuple[MultiheadFunction, MultitaskDataset, HeadStatistics]:
        """The center, the data and the center's statistics, for inputs like these [n, *input].

        Before the first reward this is a function that gives every input the offset; it is made
        on demand and not kept, so asking never commits the learner to a shape.
        """
        if self.representation_class is None:
            _require_default_inputs(inputs)
        if self._data is None or self._center is None or self._statistics is None:
            return self._prior(inputs)
        self._require_alike(inputs, self._data)
        return self._center, self._data, self._statistics

    def learn(self, tasks: Tensor, inputs: Tensor, rewards: Tensor) -> None:
        """Add samples [n], [n, *input], [n] and bring the fit up to date."""
        if len(tasks) == 0:
            return
        tasks, inputs, rewards = (x.to(self.device) for x in (tasks, inputs, rewards))
        center, data, statistics = self.fit_state(inputs)
        size_before = len(data)
        data.append(tasks, inputs, rewards)
        try:
            # Paper: least squares anew in every round. Refitting phi at a growth of 30% gave
            # the same regret at a small part of the cost; heads still follow every reward.
            features = features_of(center.representation, inputs)
            errors = rewards - center.values_of_features(features, tasks)
            monitor = self._error_monitor.plus(errors)
            is_due = len(data) >= self.refit_growth * self._samples_at_fit
            if is_due or monitor.should_refit(len(data), self._samples_at_fit, self.refit_growth):
                self._refit(center, data)
                self._error_monitor = monitor.after_fit()
                if is_due:  # a fit out of turn does not move the schedule
                    self._samples_at_fit = len(data)
            else:
                tangents = self.tangents
                if self.sketch is not None and tangents is not None:
                    more = statistics_of(self.sketch, center, inputs, tasks)
                    tangents = tangents.plus(more)
                targets = self._told(rewards, size_before) - self.offset
                statistics, rewarded = statistics.after(features, tasks, targets)
                heads = statistics.heads_solved_at(rewarded, self.penalty, center.heads)
                self._keep(center.with_heads(heads), data, statistics, tangents)
                self._error_monitor = monitor
        except BaseException:
            data.truncate(size_before)
            raise

    def _refit(self, center: MultiheadFunction, data: MultitaskDataset) -> None:
        generator = random_stream(self.seed, "fit", self.num_fits)
        told = data.with_targets(self._told(data.targets, 0)) if self.perturbation else data
        fitted = self.fit(told, center, self.penalty, generator)
        features = features_of(fitted.representation, data.inputs)
        targets = told.targets - self.offset
        statistics = HeadStatistics.of(features, data.tasks, targets, self.num_tasks)
        fitted = fitted.with_heads(statistics.heads(self.penalty))
        tangents = None
        if self.sketch is not None:
            tangents = statistics_of(self.sketch, fitted, data.inputs, data.tasks)
        self._keep(fitted, data, statistics, tangents)
        self.num_fits += 1

    def _keep(
        self,
        center: MultiheadFunction,
        data: MultitaskDataset,
        statistics: HeadStatistics,
        tangents: WeightStatistics | None,
    ) -> None:
        self._center, self._data = center, data
        self._statistics, self.tangents = statistics, tangents

    def _told(self, rewards: Tensor, first: int) -> Tensor:
        """What the fit is told of rewards [n], of the samples from `first` on."""
        if not self.perturbation:
            return rewards
        generator = random_stream(self.seed, "perturbation", self.num_fits, first)
        noise = torch.randn(len(rewards), generator=generator, dtype=torch.float64)
        return rewards + self.perturbation * noise.to(rewards.device)

    def _prior(self, inputs: Tensor) -> tuple[MultiheadFunction, MultitaskDataset, HeadStatistics]:
        representation = self._first_representation(inputs)
        feature_dim = _feature_dim(representation, inputs)
        if isinstance(self.representation_class, FiniteClass):
            dims = {_feature_dim(m, inputs) for m in self.representation_class.members}
            if dims != {feature_dim}:
                raise InvalidInputError(
                    "the representations of a finite class must have the same number of features, "
                    f"got {sorted(dims)}"
                )
        statistics = HeadStatistics.empty(self.num_tasks, feature_dim, self.device)
        center = MultiheadFunction(
            representation, statistics.moments, self.offset, self.value_range
        )
        dtype = inputs.dtype
        if inputs.is_floating_point():
            dtype = torch.promote_types(dtype, torch.float32)  # half would round what comes later
        data = MultitaskDataset(self.num_tasks, inputs.shape[1:], dtype, device=self.device)
        return center, data, statistics

    def _first_representation(self, inputs: Tensor) -> Representation:
        known = self.representation_class
        if isinstance(known, FiniteClass):
            return known.members[0]
        if isinstance(known, LinearClass):
            eye = torch.eye(known.feature_dim, known.input_dim, dtype=torch.float64)
            return LinearRepresentation(eye.to(self.device))
        if isinstance(known, NeuralClass):
            return _on(known.start(), self.device)
        module = default_network(inputs.shape[1:], random_stream(self.seed, "network"))
        return _on(NeuralRepresentation(module), self.device)

    def _require_alike(self, inputs: Tensor, data: MultitaskDataset) -> None:
        known = data.inputs
        if inputs.shape[1:] != known.shape[1:]:
            raise InvalidInputError(
                f"this agent has learned from inputs of shape {list(known.shape[1:])}, "
                f"got inputs of shape {list(inputs.shape[1:])}"
            )
        alike = inputs.dtype == known.dtype or (
            inputs.is_floating_point() and known.is_floating_point()
        )
        if not alike:
            raise InvalidInputError(
                f"this agent has learned from {known.dtype} inputs, got {inputs.dtype}; "
                "bytes are read as images in [0, 1], so the two do not mean the same"
            )

    def state(self) -> dict[str, Tensor]:
        """Named tensors from which `load_state` continues exactly; empty before any reward."""
        if self._data is None or self._center is None or self._statistics is None:
            return {}
        tensors = {
            "counters": torch.tensor([self.num_fits, self._samples_at_fit]),
            "monitor": self._error_monitor.tensor(),
            "data.inputs": self._data.inputs,
            "data.tasks": self._data.tasks,
            "data.targets": self._data.targets,
            "statistics.grams": self._statistics.grams,
            "statistics.moments": self._statistics.moments,
            "heads": self._center.heads,
        }
        if self.tangents is not None:
            named = tensors_of(self.tangents)
            tensors |= {f"tangents.{name}": tensor for name, tensor in named.items()}
        return tensors | self._representation_state(self._center.representation)

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Become the learner whose `state` this is; it must have been built alike."""
        if not state:
            self._data = self._center = self._statistics = self.tangents = None
            self.num_fits = self._samples_at_fit = 0
            self._error_monitor = PredictionErrorMonitor()
            return
        inputs = state["data.inputs"].to(self.device)
        center, data, _ = self._prior(inputs)
        data.append(state["data.tasks"], inputs, state["data.targets"])
        representation = self._restored_representation(center.representation, state)
        statistics = HeadStatistics(
            CopyOnWriteRows(state["statistics.grams"].to(self.device)),
            state["statistics.moments"].to(self.device),
        )
        heads = state["heads"].to(self.device)
        if heads.shape != center.heads.shape:
            raise InvalidInputError(
                f"the saved heads have shape {list(heads.shape)}, "
                f"this agent's have {list(center.heads.shape)}"
            )
        self.num_fits, self._samples_at_fit = (int(n) for n in state["counters"])
        self._center = replace(center, representation=representation, heads=heads)
        self._data, self._statistics = data, statistics
        self._error_monitor = PredictionErrorMonitor(*state["monitor"].tolist())
        self.tangents = None
        if self.sketch is not None:
            prefix = "tangents."
            names = [name for name in state if name.startswith(prefix)]
            tensors = {n.removeprefix(prefix): state[n].to(self.device) for n in names}
            self.tangents = restored_statistics(self.sketch, tensors)

    def _representation_state(self, representation: Representation) -> dict[str, Tensor]:
        if isinstance(representation, NeuralRepresentation):
            module = representation.module.state_dict()
            return {f"module.{name}": tensor for name, tensor in module.items()}
        if isinstance(representation, LinearRepresentation) and isinstance(
            self.representation_class, LinearClass
        ):
            return {"matrix": representation.matrix}
        assert isinstance(self.representation_class, FiniteClass)
        members = self.representation_class.members
        index = next(i for i, member in enumerate(members) if member is representation)
        return {"member": torch.tensor(index)}

    def _restored_representation(
        self, first: Representation, state: dict[str, Tensor]
    ) -> Representation:
        if isinstance(first, NeuralRepresentation):
            prefix = "module."
            names = [name for name in state if name.startswith(prefix)]
            first.module.load_state_dict({n.removeprefix(prefix): state[n] for n in names})
            return first
        if isinstance(self.representation_class, LinearClass):
            return LinearRepresentation(state["matrix"].to(self.device))
        assert isinstance(self.representation_class, FiniteClass)
        return self.representation_class.members[int(state["member"])]


def as_class(representation: nn.Module | RepresentationClass | None) -> RepresentationClass | None:
    """A bare module stands for the class of all its parameters."""
    if isinstance(representation, nn.Module):
        return NeuralClass(representation)
    if representation is None or isinstance(
        representation, FiniteClass | LinearClass | NeuralClass
    ):
        return representation
    raise InvalidInputError(
        "representation must be a torch module, a FiniteClass, a LinearClass, a NeuralClass or "
        f"None, got {type(representation).__name__}"
    )


def _usable(device: torch.device | str) -> torch.device:
    try:
        return torch.empty(0, device=device).device
    except (RuntimeError, AssertionError) as error:
        raise InvalidInputError(f"device {device!r} cannot be used here: {error}") from error


def _require_default_inputs(inputs: Tensor) -> None:
    """What the default network can read: bytes, and floats around one."""
    if inputs.is_floating_point() and float(inputs.abs().max()) > LARGEST_DEFAULT_INPUT:
        raise InvalidInputError(
            f"inputs reach {float(inputs.abs().max()):.3g}; the default network expects values "
            "around one. Standardise them, or pass a representation that does"
        )
    if not inputs.is_floating_point() and inputs.dtype != torch.uint8:
        raise InvalidInputError(
            f"inputs are {inputs.dtype}, which the default network does not read. Pass floats, "
            "bytes for images, or a representation (for item numbers, a torch.nn.Embedding)"
        )


def _on(representation: NeuralRepresentation, device: torch.device) -> NeuralRepresentation:
    representation.module.to(device).eval()
    return representation


def _feature_dim(representation: Representation, inputs: Tensor) -> int:
    try:
        features = features_of(representation, inputs[:1])
    except (RuntimeError, TypeError, ValueError, IndexError) as error:
        raise InvalidInputError(
            f"the representation cannot read inputs of shape {list(inputs.shape[1:])} "
            f"and type {inputs.dtype} (bytes become floats in [0, 1], other integers are passed "
            f"as they are): {error}"
        ) from error
    if features.ndim != 2:
        raise InvalidInputError(
            "a representation maps [n, *input] to [n, feature]; "
            f"this one maps {list(inputs[:1].shape)} to {list(features.shape)}"
        )
    return features.shape[1]
