"""Ridge regressions of many groups of samples, independent or around shared weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import torch
from torch import Tensor


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
        ridge: penalty on the weights of a group.
        shared_ridge: penalty on the shared weights; None if groups share nothing.
        num_arms: arms of an owner.
        is_centred: whether m is the mean of all rewards, or 0.
    """

    inverses: Tensor
    moments: Tensor
    totals: Tensor
    ridge: float
    shared_ridge: float | None
    num_arms: int
    is_centred: bool
    # Posterior of the shared weights, computed at the first prediction.
    _shared: list[tuple[Tensor, Tensor]]

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
        inverses = prior.expand(owners * arms, -1, -1).clone()
        moments = torch.zeros(owners * arms, num_features, 2, dtype=torch.float64)
        totals = torch.zeros(2, dtype=torch.float64)
        return cls(inverses, moments, totals, ridge, shared_ridge, arms, is_centred, [])

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
        return {
            "inverses": self.inverses.clone(),
            "moments": self.moments.clone(),
            "totals": self.totals.clone(),
        }

    def restored(self, tensors: Mapping[str, Tensor]) -> RidgeGroups:
        """Groups with these `tensors` and the settings of this object."""
        inverses, moments, totals = (tensors[n].clone() for n in ("inverses", "moments", "totals"))
        return replace(self, inverses=inverses, moments=moments, totals=totals, _shared=[])

    def plus(self, groups: Tensor, features: Tensor, rewards: Tensor) -> RidgeGroups:
        """Add samples: groups [n], features [n, feature], rewards [n].

        The arrays of this object are updated in place: it must not be used afterwards.
        """
        columns = torch.stack([rewards, torch.ones_like(rewards)], 1)
        self.moments.index_add_(0, groups, features[:, :, None] * columns[:, None, :])
        touched, counts = groups.unique(return_counts=True)
        if int(counts.max()) == 1:
            _add_one_each(self.inverses, groups, features)
        else:
            for group in touched.tolist():
                own = features[groups == group]
                self.inverses[group] = _with_rows(self.inverses[group], own)
        added = torch.tensor([float(len(rewards)), float(rewards.sum())], dtype=torch.float64)
        return replace(self, totals=self.totals + added, _shared=[])

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
        weights, covariances = self._shared_posterior(mean)
        arms = groups % self.num_arms
        sensitivity = self.ridge * projected
        means = means + (sensitivity * weights[arms][:, None]).sum(-1)
        spread = sensitivity @ (covariances[0] if self.num_arms == 1 else covariances[arms])
        return means, variances + (spread * sensitivity).sum(-1)

    def _of(self, values: Tensor, groups: Tensor) -> Tensor:
        """Values of rows' groups, without a copy where these are all groups in order."""
        if len(groups) == len(values) and torch.equal(groups, torch.arange(len(values))):
            return values
        return values[groups]

    def _mean_reward(self) -> float:
        if not self.is_centred or not self.totals[0]:
            return 0.0
        return float(self.totals[1] / self.totals[0])

    def _shared_posterior(self, mean: float) -> tuple[Tensor, Tensor]:
        """Mean [arm, feature] and covariance [arm, feature, feature] of the shared weights."""
        assert self.shared_ridge is not None
        if not self._shared:
            centred = self.moments[..., 0] - mean * self.moments[..., 1]
            own = torch.einsum("gij,gj->gi", self.inverses, centred)
            by_arm = own.unflatten(0, (-1, self.num_arms)).sum(0) * self.ridge
            inverses = self.inverses.unflatten(0, (-1, self.num_arms))
            identity = torch.eye(self.num_features, dtype=torch.float64)
            information = self.ridge * (len(inverses) * identity - self.ridge * inverses.sum(0))
            factor = torch.linalg.cholesky(self.shared_ridge * identity + information)
            covariances = torch.cholesky_inverse(factor)
            weights = torch.einsum("aij,aj->ai", covariances, by_arm)
            self._shared.append((weights, covariances))
        return self._shared[0]


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
