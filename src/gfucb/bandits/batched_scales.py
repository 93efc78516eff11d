"""The scales of the rewards of all replicas of a batch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from gfucb.estimation.reward_scale import RewardScale
from gfucb.estimation.reward_scaling import RewardScaling
from gfucb.models import MultitaskDataset


@dataclass(frozen=True)
class BatchedScales:
    """One scale per replica, as a value.

    Attributes:
        scaling: the settings, the same for all replicas.
        scales: [replica].
        device: of the tensors.
    """

    scaling: RewardScaling
    scales: tuple[RewardScale, ...]
    device: torch.device

    @property
    def locations(self) -> Tensor:
        """[replica, 1]."""
        return self._column([scale.location for scale in self.scales])

    def clip(self, rewards: Tensor) -> Tensor:
        """Clipped rewards, [replica, task] -> [replica, task]."""
        rows = zip(self.scales, rewards, strict=True)
        return torch.stack([scale.clip(row) for scale, row in rows])

    def clip_values(self, values: Tensor) -> Tensor:
        """Values clipped to the reported range of each replica: [replica, task], the same."""
        ranges = [self.scaling.reported_range(scale) for scale in self.scales]
        return self._clamp(values, [found or (-torch.inf, torch.inf) for found in ranges])

    def after(
        self,
        new: Tensor,
        num_old: int,
        rewards_of: Callable[[int], Tensor],
        *,
        is_due: bool = False,
    ) -> tuple[BatchedScales, list[int]]:
        """The scales after new rewards [replica, task], and the replicas whose targets change.

        `rewards_of` returns all rewards of a replica, new ones included, of which `num_old` are
        not new. A new estimate `is_due` for all replicas, or for those with rewards out of limits.
        """
        is_due = is_due or num_old == 0
        known = self._clamp(new, [scale.known_range for scale in self.scales])
        concerned = torch.ones(len(new)) if is_due else (known != new).any(dim=1)
        scales, rescaled = list(self.scales), []
        for replica in concerned.nonzero().flatten().tolist():
            scales[replica], is_rescaled = self.scaling.after(
                scales[replica], rewards_of(replica), num_old, is_due=is_due
            )
            rescaled += [replica] * is_rescaled
        return replace(self, scales=tuple(scales)), rescaled

    def estimated(self, rewards: dict[int, Tensor]) -> BatchedScales:
        """With the scales of some replicas estimated again, from all their rewards."""
        scales = list(self.scales)
        for replica, own in rewards.items():
            scales[replica] = self.scaling.estimated(own)
        return replace(self, scales=tuple(scales))

    def fitted_data(self, replica: int, data: MultitaskDataset) -> tuple[MultitaskDataset, float]:
        """The data that a network of one replica is fitted to, and their offset."""
        scale = self.scales[replica]
        if self.scaling.is_estimated:
            return data.with_targets(scale.standardise(data.targets)), 0.0
        return data.with_targets(scale.clip(data.targets)), scale.location

    def _clamp(self, values: Tensor, limits: list[tuple[float, float]]) -> Tensor:
        low, high = (
            self._column([pair[side] for pair in limits]).to(values.device) for side in (0, 1)
        )
        return values.clamp(low, high)

    def _column(self, numbers: list[float]) -> Tensor:
        return torch.tensor(numbers, dtype=torch.float64, device=self.device)[:, None]
