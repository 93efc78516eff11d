"""The fits of all members of a finite class to one stage, and the set around the best one.

The results are those of `Exhaustive` and `ConfidenceSet`, which visit every sample for every
member. Here identical samples are counted first, so a plan costs O(N R k^2) for N members and R
distinct inputs, for any number of samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from gfucb.core.linalg import cholesky_solve, ridge_cholesky
from gfucb.core.protocols import Representation
from gfucb.episodic.buffer import StageBuffer
from gfucb.episodic.cached_features import MemberFeatures
from gfucb.episodic.distinct_rows import Floats
from gfucb.episodic.stage_plan import Ellipsoids
from gfucb.models import HeadEllipsoid, HeadStatistics
from gfucb.models.copy_on_write import CopyOnWriteRows


@dataclass(frozen=True, eq=False)
class FiniteStage:
    """Features and counts of the distinct inputs of a stage, and the fit of every member.

    Attributes:
        members: the representations of the class.
        features: [member, input, feature].
        tasks, counts: task and number of samples of each input, [input].
        grams, moments: statistics of every member, [member, task, ...].
        cholesky: lower factors of gram + ridge I, [member, task, feature, feature].
        anchors: the ridge fit of every member, [member, task, feature].
        ridge: the penalty of the fit.
    """

    members: Sequence[Representation]
    features: Tensor
    tasks: Tensor
    counts: Tensor
    grams: Tensor
    moments: Tensor
    cholesky: Tensor
    anchors: Tensor
    ridge: float

    @classmethod
    def of(
        cls,
        features_of_members: MemberFeatures,
        buffer: StageBuffer,
        targets: Floats,
        *,
        offset: float,
        ridge: float,
    ) -> FiniteStage:
        """Statistics of the targets [sample] on every member."""
        num_inputs = buffer.num_inputs(len(targets))
        inputs, tasks = buffer.inputs.rows[:num_inputs], buffer.inputs.tasks[:num_inputs]
        members, features = features_of_members.members, features_of_members(inputs)
        counts = torch.from_numpy(buffer.counts(len(targets)))[:num_inputs]
        sums = torch.from_numpy(buffer.target_sums(targets))[:num_inputs] - offset * counts
        grams = _by_task(features * counts[:, None], features, tasks, buffer.num_tasks)
        moments = _by_task(
            features, sums[:, None].expand(len(members), -1, 1), tasks, buffer.num_tasks
        )
        cholesky = ridge_cholesky(grams, ridge)
        anchors = cholesky_solve(cholesky, moments.squeeze(-1))
        return cls(
            members,
            features,
            tasks,
            counts,
            grams,
            moments.squeeze(-1),
            cholesky,
            anchors,
            ridge,
        )

    @property
    def best(self) -> int:
        """The first member with the smallest penalised error.

        The error is |y|^2 - sum_i <moment_i, w_i>, so the member has the largest such sum.
        """
        return int((self.moments * self.anchors).sum((1, 2)).argmax())

    def statistics(self, member: int) -> HeadStatistics:
        """The head statistics of one member."""
        return HeadStatistics(CopyOnWriteRows(self.grams[member]), self.moments[member])

    def ellipsoids(self, center: int, squared_radius: float) -> Ellipsoids:
        """The feasible heads of each member in the set around the fit of the member `center`.

        As in `ConfidenceSet.ellipsoid`: |Phi w - f|^2 + ridge |w - anchor|^2 is
        |w - c|^2_V + rest, so the squared radius of the ellipsoid is squared_radius - rest.
        """
        values = (self.features[center] * self.anchors[center][self.tasks]).sum(-1)
        weighted = (self.counts * values)[:, None].expand(len(self.members), -1, 1)
        moments = _by_task(self.features, weighted, self.tasks, self.anchors.shape[1]).squeeze(-1)
        heads = cholesky_solve(self.cholesky, moments + self.ridge * self.anchors)
        errors = (self.features * heads[:, self.tasks]).sum(-1) - values
        rest = (self.counts * errors.square()).sum(-1)
        rest = rest + self.ridge * (heads - self.anchors).square().sum((1, 2))
        remaining = (squared_radius - rest).tolist()
        # The center is in its own set, also after rounding.
        remaining[center] = squared_radius
        heads[center] = self.anchors[center]
        return [
            (
                member,
                HeadEllipsoid(
                    heads[index], CopyOnWriteRows(self.cholesky[index]), remaining[index]
                ),
            )
            for index, member in enumerate(self.members)
            if remaining[index] >= 0
        ]


def _by_task(left: Tensor, right: Tensor, tasks: Tensor, num_tasks: int) -> Tensor:
    """left^T right over the inputs of each task: [member, input, *] -> [member, task, *, *]."""
    parts = []
    for task in range(num_tasks):
        rows = (tasks == task).nonzero().squeeze(1)
        parts.append(left[:, rows].transpose(1, 2) @ right[:, rows])
    return torch.stack(parts, dim=1)
