"""Ridge regressions of many groups of samples, independent or around shared weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

TENSORS = ("inverses", "moments", "totals", "inverse_sums", "solution_sums")


@dataclass(frozen=True, eq=False)
class RidgeGroups:
    """The posterior of linear weights of every group, updated in closed form.

    Group g = owner * arms + arm has A_g = ridge I + sum phi phi^T over its samples. Rewards may be
    centred by the mean m of all rewards, otherwise m = 0: moments hold sum y phi and sum phi, and
    weights are A_g^-1 (sum y phi - m sum phi).

    With a shared ridge the weights of group g are w_arm + v_g, where v_g has the penalty ridge and
    w_arm, common to all owners, the penalty shared ridge. v_g is integrated out exactly: with
    G_g = A_g - ridge I, the precision of w_arm is

        shared_ridge I + sum_g ridge G_g A_g^-1  =  shared_ridge I + sum_g ridge (I - ridge A_g^-1).

    Attributes:
        inverses: A_g^-1, [group, feature, feature].
        moments: sum y phi and sum phi, [group, feature, 2].
        totals: number and sum of all rewards, [2].
        inverse_sums: A_g^-1 summed over owners, [arm, feature, feature]; of no arm if groups
            share nothing.
        solution_sums: A_g^-1 moments_g summed over owners, [arm, feature, 2]; likewise.
        ridge: penalty on the weights of a group.
        shared_ridge: penalty on the shared weights; None if groups share nothing.
        num_arms: arms of an owner.
        is_centred: whether m is the mean of all rewards, or 0.
    """

    inverses: Tensor
    moments: Tensor
    totals: Tensor
    inverse_sums: Tensor
    solution_sums: Tensor
    ridge: float
    shared_ridge: float | None
    num_arms: int
    is_centred: bool
    # Covariances of the shared weights by arm, computed when they are needed.
    _covariances: dict[int, Tensor]

    @classmethod
    def empty(
        cls,
        owners: int,
        arms: int,
        num_features: int,
        ridge: float,
        shared_ridge: float | None = None,
        *,
        is_centred: bool = True,
    ) -> RidgeGroups:
        """The prior of owners x arms groups."""
        prior = torch.eye(num_features, dtype=torch.float64) / ridge
        shared_arms = 0 if shared_ridge is None else arms
        return cls(
            inverses=prior.expand(owners * arms, -1, -1).clone(),
            moments=prior.new_zeros(owners * arms, num_features, 2),
            totals=prior.new_zeros(2),
            inverse_sums=owners * prior.expand(shared_arms, -1, -1),
            solution_sums=prior.new_zeros(shared_arms, num_features, 2),
            ridge=ridge,
            shared_ridge=shared_ridge,
            num_arms=arms,
            is_centred=is_centred,
            _covariances={},
        )

    @property
    def num_features(self) -> int:
        """Length of a feature vector."""
        return self.moments.shape[1]

    @property
    def num_samples(self) -> int:
        """How many rewards were added."""
        return int(self.totals[0])

    def tensors(self) -> dict[str, Tensor]:
        """All that was learned, as named tensors of their own."""
        return {name: getattr(self, name).clone() for name in TENSORS}

    def restored(self, tensors: Mapping[str, Tensor]) -> RidgeGroups:
        """Groups with these `tensors` and the settings of this object."""
        values: dict[str, Any] = {name: tensors[name].clone() for name in TENSORS}
        return replace(self, **values, _covariances={})

    def plus(self, groups: Tensor, features: Tensor, rewards: Tensor) -> RidgeGroups:
        """Add samples: groups [n], features [n, feature], rewards [n].

        The arrays of this object are updated in place: it must not be used afterwards.
        """
        touched, counts = groups.unique(return_counts=True)
        self._add_to_sums(touched, sign=-1)
        columns = torch.stack([rewards, torch.ones_like(rewards)], 1)
        self.moments.index_add_(0, groups, features[:, :, None] * columns[:, None, :])
        if int(counts.max()) == 1:
            _add_one_each(self.inverses, groups, features)
        else:
            for group in touched.tolist():
                own = features[groups == group]
                self.inverses[group] = _with_rows(self.inverses[group], own)
        self._add_to_sums(touched, sign=1)
        added = torch.tensor([float(len(rewards)), float(rewards.sum())], dtype=torch.float64)
        changed = set((touched % self.num_arms).tolist())
        kept = {arm: value for arm, value in self._covariances.items() if arm not in changed}
        return replace(self, totals=self.totals + added, _covariances=kept)

    def _add_to_sums(self, groups: Tensor, sign: int) -> None:
        if self.shared_ridge is not None:
            arms, inverses = groups % self.num_arms, self._of(self.inverses, groups)
            solutions = inverses @ self._of(self.moments, groups)
            self.inverse_sums.index_add_(0, arms, inverses, alpha=sign)
            self.solution_sums.index_add_(0, arms, solutions, alpha=sign)

    def predict(self, features: Tensor, groups: Tensor) -> tuple[Tensor, Tensor]:
        """Means and unit variances: [row, action, feature], [row] -> [row, action] each."""
        mean = self._mean_reward()
        centred = self.moments[..., 0] - mean * self.moments[..., 1]
        if len(self.inverses) == 1:
            projected = features @ self.inverses[0]
        else:
            projected = features @ self._of(self.inverses, groups)
        means = mean + (projected * self._of(centred, groups)[:, None]).sum(-1)
        variances = (projected * features).sum(-1)
        if self.shared_ridge is None:
            return means, variances
        sensitivity = self.ridge * projected
        arms = groups % self.num_arms
        weights, covariances = self._shared_posterior(mean, arms)
        means = means + (sensitivity * weights[:, None]).sum(-1)
        return means, variances + ((sensitivity @ covariances) * sensitivity).sum(-1)

    def _of(self, values: Tensor, groups: Tensor) -> Tensor:
        """Values of rows' groups, without a copy where these are all groups in order."""
        if len(groups) == len(values) and torch.equal(groups, torch.arange(len(values))):
            return values
        return values[groups]

    def _mean_reward(self) -> float:
        if not self.is_centred or not self.totals[0]:
            return 0.0
        return float(self.totals[1] / self.totals[0])

    def _shared_posterior(self, mean: float, arms: Tensor) -> tuple[Tensor, Tensor]:
        """Mean [row, feature] and covariance [row or 1, feature, feature] of shared weights."""
        for arm in arms.unique().tolist():
            if arm not in self._covariances:
                self._covariances[arm] = self._covariance(arm)
        targets = self.ridge * (self.solution_sums[..., 0] - mean * self.solution_sums[..., 1])
        if self.num_arms == 1:
            covariance = self._covariances[0]
            return (covariance @ targets[0]).expand(len(arms), -1), covariance[None]
        covariances = torch.stack([self._covariances[arm] for arm in arms.tolist()])
        return torch.einsum("rij,rj->ri", covariances, targets[arms]), covariances

    def _covariance(self, arm: int) -> Tensor:
        """The inverse precision of the shared weights of an arm."""
        assert self.shared_ridge is not None
        owners = len(self.inverses) // self.num_arms
        identity = torch.eye(self.num_features, dtype=torch.float64)
        information = self.ridge * (owners * identity - self.ridge * self.inverse_sums[arm])
        factor = torch.linalg.cholesky(self.shared_ridge * identity + information)
        return torch.cholesky_inverse(factor)


def _add_one_each(inverses: Tensor, groups: Tensor, features: Tensor) -> None:
    """Sherman and Morrison for at most one new row in each group, in place."""
    is_all = torch.equal(groups, torch.arange(len(inverses)))
    current = inverses if is_all else inverses[groups]
    projected = (current @ features[:, :, None]).squeeze(2)
    projected /= (1 + (projected * features).sum(1)).sqrt()[:, None]
    current.baddbmm_(projected[:, :, None], projected[:, None, :], alpha=-1)
    if not is_all:
        inverses[groups] = current


def _with_rows(inverse: Tensor, rows: Tensor) -> Tensor:
    """(A + X^T X)^-1 from A^-1 [feature, feature] and X [n, feature]."""
    if len(rows) > rows.shape[1]:
        precision = torch.cholesky_inverse(torch.linalg.cholesky(inverse)) + rows.T @ rows
        return torch.cholesky_inverse(torch.linalg.cholesky(precision))
    projected = rows @ inverse
    capacity = torch.eye(len(rows), dtype=torch.float64) + projected @ rows.T
    factor = torch.linalg.cholesky((capacity + capacity.T) / 2)
    half = torch.linalg.solve_triangular(factor, projected, upper=False)
    return inverse - half.T @ half
