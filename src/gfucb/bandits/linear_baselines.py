"""Linear UCB on fixed features, with separate, pooled or hierarchical weights, in closed form."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from gfucb.bandits.linear_features import FeatureMap, InputFeatures
from gfucb.bandits.ridge_groups import TENSORS, RidgeGroups
from gfucb.core.action_sets import ActionSets
from gfucb.core.errors import InvalidInputError
from gfucb.core.memory import memory_of_tasks
from gfucb.core.records import Decision, Row
from gfucb.core.validation.arrays import ArrayLike
from gfucb.core.validation.bandits import (
    validate_action_sets,
    validate_feedback,
    validate_samples,
)
from gfucb.core.validation.settings import (
    validate_choice,
    validate_component,
    validate_count,
    validate_flag,
    validate_not_negative,
    validate_ridge,
)
from gfucb.core.validation.states import (
    validate_state,
    validate_state_names,
    validate_state_tensor,
)

Sharing = Literal["task", "pooled", "hierarchical"]
SHARING = ("task", "pooled", "hierarchical")


class LinearUCB:
    """Ridge regression on fixed features and the bonus alpha |phi(x)|_{V^-1}.

    A group of weights w minimises sum (y - m - <w, phi>)^2 + ridge |w|^2, where m is the running
    mean of all rewards, or 0. Every reward updates the inverse Gram matrix in closed form (Sherman,
    Morrison and Woodbury) at a cost of O(feature^2).

    Args:
        num_tasks: M.
        alpha: multiplier of the standard deviation in the bonus.
        ridge: penalty on the weights; for `hierarchical`, on the shared weights.
        sharing: `task` gives each task weights of its own. `pooled` uses one vector for all
            tasks. `hierarchical` uses w_0 + v_i for task i, with penalties ridge |w_0|^2 and
            own_ridge sum_i |v_i|^2; the posterior of both is exact.
        own_ridge: the penalty on v_i.
        num_arms: if positive, the last `num_arms` inputs are the one-hot number of an arm, and each
            arm has weights of its own on the features of the other inputs (disjoint arms). There
            must be other inputs.
        features: the feature map; by default the inputs and a constant.
        center: whether rewards are centred by their running mean, so that predictions shift with
            the rewards. False is the textbook LinUCB.
    """

    def __init__(
        self,
        num_tasks: int,
        *,
        alpha: float = 0.3,
        ridge: float = 1.0,
        sharing: Sharing = "task",
        own_ridge: float = 1.0,
        num_arms: int = 0,
        features: FeatureMap | None = None,
        center: bool = True,
    ) -> None:
        self.num_tasks = validate_count(num_tasks, "num_tasks")
        self.alpha = validate_not_negative(alpha, "alpha")
        self.ridge = validate_ridge(ridge)
        self.own_ridge = validate_ridge(own_ridge, "own_ridge")
        validate_choice(sharing, "sharing", SHARING)
        self.sharing = sharing
        self.num_arms = validate_count(num_arms, "num_arms", at_least=0)
        self.features = validate_component(
            features or InputFeatures(), "features", "a feature map such as FourierInputs()"
        )
        self.center = validate_flag(center, "center")
        self.groups: RidgeGroups | None = None
        self._bonus: float | None = None

    def __repr__(self) -> str:
        samples = 0 if self.groups is None else self.groups.num_samples
        return f"LinearUCB(num_tasks={self.num_tasks}, {self.sharing}, samples={samples})"

    def decide(
        self,
        candidates: ArrayLike,
        tasks: ArrayLike | None = None,
        available: ArrayLike | None = None,
    ) -> Decision:
        """Choose the largest upper bound in every row; see `GFUCB.decide` for the arguments."""
        action_sets = validate_action_sets(
            candidates, tasks, available, num_tasks=self.num_tasks, device="cpu"
        )
        means, variances = self._predict(action_sets)
        decision, self._bonus = action_sets.upper_bound_decision(means, variances, self.alpha)
        return decision

    def observe(self, decision: Decision, rewards: ArrayLike) -> None:
        """Learn from rewards [row] of a decision, which may be late and partial."""
        self._add(*validate_feedback(decision, rewards, num_tasks=self.num_tasks))

    def learn(self, tasks: ArrayLike, inputs: ArrayLike, rewards: ArrayLike) -> None:
        """Learn from samples that are no decision of this agent; see `GFUCB.learn`."""
        self._add(*validate_samples(tasks, inputs, rewards, num_tasks=self.num_tasks))

    def diagnostics(self) -> Row:
        """The mean bonus of the last decision."""
        return {} if self._bonus is None else {"bonus": self._bonus}

    def state(self) -> dict[str, Tensor]:
        """Inverse Gram matrices and moments of all groups; empty before the first reward."""
        return {} if self.groups is None else self.groups.tensors()

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Continue from the state of an agent built with the same arguments."""
        validate_state(state)
        groups = self._restored(state) if state else None
        self.groups, self._bonus = groups, None

    def settings(self) -> dict[str, str]:
        """Everything an agent must be built with to continue from this one's state."""
        return {
            "alpha": str(self.alpha),
            "ridge": str(self.ridge),
            "sharing": self.sharing,
            "own_ridge": str(self.own_ridge),
            "num_arms": str(self.num_arms),
            "features": repr(self.features),
            "center": str(self.center),
        }

    def _predict(self, action_sets: ActionSets) -> tuple[Tensor, Tensor]:
        """Means and unit variances of all candidates, [row, action] each."""
        rows, actions = action_sets.available.shape
        tasks = action_sets.tasks.repeat_interleave(actions)
        features, numbers = self._features(action_sets.candidates.flatten(0, 1), tasks)
        groups = self.groups or self._new_groups(features.shape[1])
        self._require_width(features, groups)
        if self.num_arms == 0:  # all candidates of a row use one group
            features = features.unflatten(0, (rows, actions))
            numbers = numbers.view(rows, actions)[:, 0]
            return groups.predict(features, numbers)
        means, variances = groups.predict(features[:, None], numbers)
        return means.view(rows, actions), variances.view(rows, actions)

    def _add(self, tasks: Tensor, inputs: Tensor, rewards: Tensor) -> None:
        if not len(tasks):
            return
        features, numbers = self._features(inputs, tasks)
        groups = self.groups or self._new_groups(features.shape[1])
        self._require_width(features, groups)
        self.groups = groups.plus(numbers, features, rewards)

    def _features(self, inputs: Tensor, tasks: Tensor) -> tuple[Tensor, Tensor]:
        """Features and group numbers of samples: [n, *input], [n] -> [n, feature], [n]."""
        groups = tasks if self.sharing != "pooled" else torch.zeros_like(tasks)
        if self.num_arms == 0:
            return self.features(inputs), groups
        if inputs.ndim != 2 or inputs.shape[1] <= self.num_arms:
            raise InvalidInputError(
                f"with {self.num_arms} disjoint arms an input is a vector of more than "
                f"{self.num_arms} numbers, the last ones one-hot, got inputs of shape "
                f"{list(inputs.shape[1:])}"
            )
        context, arms = inputs[:, : -self.num_arms], inputs[:, -self.num_arms :].argmax(1)
        return self.features(context), groups * self.num_arms + arms

    def _new_groups(self, num_features: int) -> RidgeGroups:
        owners = 1 if self.sharing == "pooled" else self.num_tasks
        is_shared = self.sharing == "hierarchical"
        with memory_of_tasks(self.num_tasks):
            return RidgeGroups.empty(
                owners,
                max(1, self.num_arms),
                num_features,
                self.own_ridge if is_shared else self.ridge,
                self.ridge if is_shared else None,
                is_centred=self.center,
            )

    def _require_width(self, features: Tensor, groups: RidgeGroups) -> None:
        if features.shape[1] != groups.num_features:
            raise InvalidInputError(
                f"these inputs have {features.shape[1]} features, the first ones had "
                f"{groups.num_features}"
            )

    def _restored(self, state: dict[str, Tensor]) -> RidgeGroups:
        validate_state_names(state, TENSORS)
        width = validate_state_tensor(state, "inverses", (None, None, None)).shape[2]
        groups = self._new_groups(width)
        for name, tensor in groups.tensors().items():
            validate_state_tensor(state, name, tensor.shape, dtype=torch.float64)
        return groups.restored(state)
