"""Records that pass between components: decisions, predictions, selections, rounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gfucb.core.errors import InvalidInputError
from gfucb.core.offered_candidates import OfferedCandidates
from gfucb.core.row_selection import selected_rows

if TYPE_CHECKING:
    from gfucb.core.protocols import Representation
    from gfucb.models import MultiheadFunction

Row = Mapping[str, float | int | str]
# Actions that the repr of a decision shows.
SHOWN_ACTIONS = 6


@dataclass(frozen=True, eq=False, repr=False)
class Decision:
    """The chosen actions, with all an agent needs to learn from their rewards later.

    `decision[rows]` is the decision on some of its rows: a number, a list, a slice or a mask.
    Rewards are learned as (task, input, reward), so rows may be rewarded in any order, late, or
    never.
    """

    tasks: Tensor  # [row]
    actions: Tensor  # [row]
    inputs: Tensor  # [row, *input], the chosen candidates
    optimistic_values: Tensor  # [row]; the predicted means of agents without a bonus
    prediction: Prediction | None = None  # None for agents that predict nothing
    features: InputFeatures | None = None  # of the inputs, for the agent that decided
    probabilities: Tensor | None = None  # [row], of the chosen actions; None if not randomised
    action_probabilities: Tensor | None = None  # [row, action], of all actions
    monte_carlo_samples: int | None = None  # that estimate the probabilities; None if exact
    offered: OfferedCandidates | None = None  # for agents that learn from all candidates

    def __len__(self) -> int:
        return len(self.tasks)

    def __getitem__(self, rows: int | list[int] | slice | Tensor) -> Decision:
        index = selected_rows(rows, len(self))
        inputs, features = self.inputs[index], self.features
        if features is not None:
            features = features.taken(index, inputs) if features.is_of(self.inputs) else None
        return Decision(
            self.tasks[index],
            self.actions[index],
            inputs,
            self.optimistic_values[index],
            self.prediction and self.prediction[index],
            features,
            None if self.probabilities is None else self.probabilities[index],
            None if self.action_probabilities is None else self.action_probabilities[index],
            self.monte_carlo_samples,
            self.offered and self.offered.taken(index),
        )

    def drawn_from(self, action_probabilities: Tensor, samples: int | None = None) -> Decision:
        """The decision whose actions were drawn with these probabilities [row, action]."""
        chosen = action_probabilities.gather(1, self.actions[:, None]).squeeze(1)
        return replace(
            self,
            probabilities=chosen,
            action_probabilities=action_probabilities,
            monte_carlo_samples=samples,
        )

    def valid_features(self) -> ChosenFeatures | None:
        """The features under one representation, if they were computed from these inputs."""
        features = self.features
        if isinstance(features, ChosenFeatures) and features.is_of(self.inputs):
            return features
        return None

    def __getstate__(self) -> dict[str, Any]:
        # Features are valid for one representation object, which is not sent along.
        return vars(self) | {"features": None}

    def __repr__(self) -> str:
        shown = [str(action) for action in self.actions[:SHOWN_ACTIONS].tolist()]
        more = ["..."] if len(self) > SHOWN_ACTIONS else []
        rows = "1 row" if len(self) == 1 else f"{len(self)} rows"
        return f"Decision({rows}, actions=[{', '.join(shown + more)}])"


@dataclass(frozen=True, eq=False)
class ChosenFeatures:
    """Features of the inputs of a decision, so that `observe` does not compute them again.

    They are valid for the representation object and the inputs they were computed from, as long
    as neither those inputs nor the features are changed in place.

    Attributes:
        representation: the object that computed them.
        values: [row, feature].
        inputs: [row, *input].
        versions: torch's counts of writes to `inputs` and to `values`.
    """

    representation: Representation
    values: Tensor
    inputs: Tensor
    versions: tuple[int, int]

    @classmethod
    def of(
        cls, representation: Representation, inputs: Tensor, values: Tensor
    ) -> ChosenFeatures | None:
        """The record for inputs [row, *input]; None for those whose writes torch does not count."""
        if inputs.is_inference() or values.is_inference():
            return None
        return cls(representation, values, inputs, (inputs._version, values._version))

    def is_of(self, inputs: Tensor) -> bool:
        """Whether these are the features of `inputs`, unchanged."""
        versions = (inputs._version, self.values._version)
        return inputs is self.inputs and versions == self.versions

    def taken(self, rows: Tensor, inputs: Tensor) -> ChosenFeatures | None:
        """The features of some rows [n], whose inputs are `inputs` [n, *input]."""
        return ChosenFeatures.of(self.representation, inputs, self.values[rows])


@dataclass(frozen=True, eq=False)
class GroupFeatures:
    """Features of the inputs of a decision that several agents made, each on some of the rows.

    Attributes:
        parts: the features that each agent computed; None for an agent that has none.
        owners: the part that each row belongs to, [row].
        positions: the position of each row in its part, [row].
        inputs: [row, *input].
        version: torch's count of writes to `inputs`.
    """

    parts: tuple[InputFeatures | None, ...]
    owners: Tensor
    positions: Tensor
    inputs: Tensor
    version: int

    @classmethod
    def of(
        cls, decisions: Sequence[Decision], rows: Sequence[Tensor], inputs: Tensor
    ) -> GroupFeatures | None:
        """The record for decisions on these rows of inputs [row, *input], each row in one."""
        parts = tuple(decision.features for decision in decisions)
        if inputs.is_inference() or not any(parts):
            return None
        owners, positions = torch.empty(2, len(inputs), dtype=torch.int64)
        for part, own in enumerate(rows):
            owners[own], positions[own] = part, torch.arange(len(own))
        return cls(parts, owners, positions, inputs, inputs._version)

    def is_of(self, inputs: Tensor) -> bool:
        """Whether these are the features of `inputs`, unchanged."""
        return inputs is self.inputs and inputs._version == self.version

    def taken(self, rows: Tensor, inputs: Tensor) -> InputFeatures | None:
        """The features of some rows [n], whose inputs are `inputs` [n, *input].

        Those of rows of one agent are the features which that agent computed.
        """
        owners, positions = self.owners[rows], self.positions[rows]
        if len(rows) and bool((owners == owners[0]).all()):
            part = self.parts[int(owners[0])]
            return part.taken(positions, inputs) if part is not None else None
        if inputs.is_inference():
            return None
        return GroupFeatures(self.parts, owners, positions, inputs, inputs._version)


InputFeatures = ChosenFeatures | GroupFeatures


@dataclass(frozen=True, eq=False)
class Prediction:
    """What an agent predicts of the rewards of its decision, before they are known.

    Attributes:
        mean: values of the fit at the chosen actions, [row].
        variance: the largest squared difference between the fit and a member of the confidence
            set of squared radius 1 at the chosen actions, [row].
    """

    mean: Tensor
    variance: Tensor

    def __getitem__(self, rows: Tensor) -> Prediction:
        return Prediction(self.mean[rows], self.variance[rows])


@dataclass(frozen=True, eq=False, repr=False)
class BatchedDecision:
    """The decision of every replica of `BatchedAgents`."""

    actions: Tensor  # [replica, task]
    optimistic_values: Tensor  # [replica, task]
    inputs: Tensor  # [replica, task, *input], the chosen candidates
    features: Tensor  # [replica, task, feature], of the inputs
    prediction: Prediction  # [replica, task]
    num_fits: tuple[int, ...]  # [replica], when the features were computed
    offered: OfferedCandidates | None = None  # rows [replica * task]; as in `Decision`

    def __repr__(self) -> str:
        replicas, tasks = self.actions.shape
        return f"BatchedDecision({replicas} replicas of {tasks} tasks)"


@dataclass(frozen=True, eq=False)
class Selection:
    """The result of an action selector: line 4 of Algorithm 1.

    Attributes:
        function: the function f that has the reported values. None where no single function has
            them, for example where each row uses the whole radius.
        actions: the chosen actions, [row].
        values: optimistic values of the chosen actions, not clipped, [row].
        squared_distance: of f from the center, or the squared radius that was used if there is
            no f. It exceeds `squared_radius` by `violation` where f is outside the set.
        squared_radius: of the confidence set.
        is_exact: whether no other member and actions can have a larger sum of values.
        prediction: means and unit variances at the chosen actions. None for selectors that use
            the widths of the fit's heads, which the agent computes itself.
        representation_widths: the part of the unit variance that is due to the representation
            and not to the head of the task, [row]. None for selectors that use heads only.
    """

    function: MultiheadFunction | None
    actions: Tensor
    values: Tensor
    squared_distance: float
    squared_radius: float
    is_exact: bool = False
    prediction: Prediction | None = None
    representation_widths: Tensor | None = None

    def __post_init__(self) -> None:
        require_finite_values(self.values)

    @property
    def violation(self) -> float:
        """How far f is outside the set, relative to the squared radius; 0 inside."""
        excess = max(0.0, self.squared_distance - self.squared_radius)
        return excess / self.squared_radius if self.squared_radius > 0 else excess


def require_finite_values(values: Tensor) -> None:
    """Refuse predicted or optimistic values that are NaN or infinite."""
    if not bool(values.isfinite().all()):
        raise InvalidInputError(
            "the values of the chosen actions are not finite; "
            "rewards or inputs are too large, or the fit has diverged"
        )


@dataclass(frozen=True, eq=False)
class BanditRound:
    """One round of an environment. Agents see `candidates`; the rest is for evaluation.

    The noise is drawn before any action is known, so runs with the same seed are paired.
    """

    candidates: Tensor  # [task, action, *input]
    mean_rewards: Tensor  # [task, action]
    noise: Tensor  # [task], or [task, action] where its distribution depends on the action
    true_features: Tensor | None = None  # [task, action, true feature]; for oracles only

    def shown(self, *, uses_true_features: bool) -> Tensor:
        """What an agent receives: the candidates, or the true features if it is an oracle."""
        if not uses_true_features:
            return self.candidates
        if self.true_features is None:
            raise InvalidInputError(
                "the rounds of this environment have no true_features, which oracles need; leave "
                "the oracles out, or state the features"
            )
        return self.true_features

    def rewards(self, actions: Tensor) -> Tensor:
        """Rewards of actions [task] -> [task]."""
        noise = self.noise if self.noise.ndim == 1 else _taken(self.noise, actions)
        return self._means_of(actions) + noise

    def regrets(self, actions: Tensor) -> Tensor:
        """Mean reward of the best action minus that of `actions`, exact: [task] -> [task]."""
        return self.mean_rewards.max(dim=1).values - self._means_of(actions)

    def _means_of(self, actions: Tensor) -> Tensor:
        return _taken(self.mean_rewards, actions)


def _taken(values: Tensor, actions: Tensor) -> Tensor:
    """Values [task, action] of the actions [task]."""
    # Agent and environment may be on different devices.
    return values.gather(1, actions.to(values.device)[:, None]).squeeze(1)


@dataclass(frozen=True, eq=False)
class Outcome:
    """The result of the actions of one stage: rewards, and the candidates of the next stage."""

    rewards: Tensor  # [row]
    next_candidates: Tensor  # [row, action, *input]
    ended: Tensor  # [row], bool; the `next_candidates` of rows that ended have no meaning


@dataclass(frozen=True, eq=False)
class Transitions:
    """Validated results of decisions in one stage, as numpy arrays."""

    tasks: list[int]  # [row]
    inputs: NDArray[np.generic]  # [row, *input]
    rewards: NDArray[np.float64]  # [row]
    ended: NDArray[np.bool_]  # [row]
    next_candidates: NDArray[np.generic] | None  # [row, action, *input]; None if all have ended
