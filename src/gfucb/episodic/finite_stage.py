"""A stage of a finite class, all members at once: what `Exhaustive` and `ConfidenceSet` compute.

They look at every sample for every member. Here identical samples are counted first, so a plan
costs O(N R k^2) for N members and R distinct inputs, whatever the number of samples.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from gfucb.core.linalg import cholesky_solve, ridge_cholesky
from gfucb.episodic.buffer import Floats, StageBuffer
from gfucb.models import HeadEllipsoid, HeadStatistics, Representation, features_of
from gfucb.models.copy_on_write import CopyOnWriteRows

Ellipsoids = list[tuple[Representation, HeadEllipsoid]]


# Numbers kept of features that may be asked for again: 32 MB.
LARGEST_MEMORY = 4_000_000


class MemberFeatures:
    """Features of all members at once, remembered: finite environments ask for the same ones again."""

    def __init__(self, members: Sequence[Representation]) -> None:
        self.members = members
        self._known: dict[tuple[torch.Size, bytes], Tensor] = {}
        self._size = 0

    def __call__(self, inputs: Tensor) -> Tensor:
        """[n, *input] -> [member, n, feature]."""
        digest = hashlib.blake2b(inputs.contiguous().numpy().tobytes(), digest_size=16).digest()
        key = (inputs.shape, digest)
        if key not in self._known:
            features = torch.stack([features_of(member, inputs) for member in self.members])
            if self._size + features.numel() > LARGEST_MEMORY:
                self._known, self._size = {}, 0
            self._known[key] = features
            self._size += features.numel()
        return self._known[key]

    def index(self, representation: Representation) -> int:
        """Which member this is."""
        return next(i for i, member in enumerate(self.members) if member is representation)


@dataclass(frozen=True, eq=False)
class FiniteStage:
    """Features and counts of the distinct inputs of a stage, and what every member fits to them.

    Attributes:
        features: [member, input, feature].
        tasks, counts: task and number of samples of each input, [input].
        grams, moments: statistics of every member, [member, task, ...].
        cholesky: lower factors of gram + ridge I, [member, task, feature, feature].
        anchors: the ridge fit of every member, [member, task, feature].
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
        memory: StageBuffer,
        targets: Floats,
        *,
        offset: float,
        ridge: float,
    ) -> FiniteStage:
        """Statistics of the targets [sample] on every member."""
        num_inputs = int(memory.played[: len(targets)].max()) + 1
        inputs, tasks = memory.inputs.rows[:num_inputs], memory.inputs.tasks[:num_inputs]
        members, features = features_of_members.members, features_of_members(inputs)
        counts = torch.from_numpy(memory.counts(len(targets)))[:num_inputs]
        sums = torch.from_numpy(memory.target_sums(targets))[:num_inputs] - offset * counts
        grams = _by_task(features * counts[:, None], features, tasks, memory.num_tasks)
        moments = _by_task(
            features, sums[:, None].expand(len(members), -1, 1), tasks, memory.num_tasks
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
        """The member with the smallest penalised error, the first of equals.

        Its error is |y|^2 - sum_i <moment_i, w_i>, so the last sum is to be large.
        """
        return int((self.moments * self.anchors).sum((1, 2)).argmax())

    def statistics(self, member: int) -> HeadStatistics:
        """Those of one member."""
        return HeadStatistics(CopyOnWriteRows(self.grams[member]), self.moments[member])

    def ellipsoids(self, center: int, squared_radius: float) -> Ellipsoids:
        """The heads that the set around the fit of `center` leaves on each member.

        As in `ConfidenceSet.ellipsoid`: |Phi w - f|^2 + ridge |w - anchor|^2 is
        |w - c|^2_V + rest, and what is left of the radius is squared_radius - rest.
        """
        values = (self.features[center] * self.anchors[center][self.tasks]).sum(-1)
        weighted = (self.counts * values)[:, None].expand(len(self.members), -1, 1)
        moments = _by_task(self.features, weighted, self.tasks, self.anchors.shape[1]).squeeze(-1)
        heads = cholesky_solve(self.cholesky, moments + self.ridge * self.anchors)
        misses = (self.features * heads[:, self.tasks]).sum(-1) - values
        rest = (self.counts * misses.square()).sum(-1)
        rest = rest + self.ridge * (heads - self.anchors).square().sum((1, 2))
        left = (squared_radius - rest).tolist()
        # The center is in its own set whatever rounding says.
        left[center] = squared_radius
        heads[center] = self.anchors[center]
        return [
            (
                member,
                HeadEllipsoid(heads[index], CopyOnWriteRows(self.cholesky[index]), left[index]),
            )
            for index, member in enumerate(self.members)
            if left[index] >= 0
        ]


def _by_task(left: Tensor, right: Tensor, tasks: Tensor, num_tasks: int) -> Tensor:
    """left^T right over the inputs of each task: [member, input, *] -> [member, task, *, *]."""
    parts = []
    for task in range(num_tasks):
        own = (tasks == task).nonzero().squeeze(1)
        parts.append(left[:, own].transpose(1, 2) @ right[:, own])
    return torch.stack(parts, dim=1)
