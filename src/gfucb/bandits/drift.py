"""Whether the rewards have changed: a sequential test of squared prediction errors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from gfucb.core.errors import InvalidInputError
from gfucb.core.validation.settings import LARGEST_COMPUTED
from gfucb.core.validation.states import validate_state_tensor

# The test asks whether mean squared errors exceed this many times their recent mean.
MARGIN = 1.3
# Ratios of errors to their mean count up to this number, so that one outlier is no change.
LARGEST_RATIO = 10.0
# The share of the evidence that is bet on each reading.
BET = 0.7
# The recent mean is over about this many readings; there is no test with fewer than so many.
HORIZON, FEWEST_READINGS = 100.0, 20.0
# The mean error of a task is taken to be at least this share of that of all tasks.
SMALLEST_SHARE = 0.25
# A reading of the typical task needs this many tasks, or all that are compared with their past,
# but at least so many.
GROUP, FEWEST_TASKS = 8, 3
# The median error relative to the mean is taken to be at least this; of normal errors it is 0.45.
# While errors fall the recent mean is too large, and the median rises when it no longer is.
SMALLEST_MEDIAN = 0.5
# Evidence beyond this is as good as certain.
LARGEST_EVIDENCE = 1e15
PREFIX = "drift."


@dataclass(frozen=True, eq=False)
class Stream:
    """Readings of n streams: their recent means, and the evidence that they have grown.

    The evidence is a CUSUM of bets (an e-detector, Shin, Ramdas and Rinaldo 2022): E becomes
    max(E, 1) * (1 + BET * (ratio - 1)), with the ratio of a reading to `MARGIN` times the recent
    mean. While the expected ratio is at most 1, the mean number of readings before E exceeds a
    threshold is at least this threshold. Readings join the recent mean when E is at most 1 again:
    those after a change would hide it.

    Attributes:
        means: recent mean readings, [n].
        weights: how many readings they are the means of, [n].
        evidence: E, [n].
        sums: of the readings that have not joined the mean, [n].
        counts: their number, [n].
    """

    means: Tensor
    weights: Tensor
    evidence: Tensor
    sums: Tensor
    counts: Tensor

    @classmethod
    def empty(cls, count: int) -> Stream:
        """No readings of `count` streams."""
        zeros = torch.zeros(count, dtype=torch.float64)
        return cls(*[zeros] * 5)

    def with_streams(self, count: int) -> Stream:
        """The same with more streams, which have no readings."""
        more = torch.zeros(count, dtype=torch.float64)
        return Stream(*(torch.cat([x, more]) for x in self._all))

    @property
    def _all(self) -> tuple[Tensor, ...]:
        return self.means, self.weights, self.evidence, self.sums, self.counts

    def after(self, at: Tensor, readings: Tensor, references: Tensor) -> tuple[Stream, Tensor]:
        """With readings [k] of the streams `at` [k], which are compared with references [k].

        Also returns where the evidence begins anew with this reading, [k] of booleans.
        """
        ratios = (readings / (MARGIN * references).clamp_min(1e-300)).clamp_max(LARGEST_RATIO)
        factors = torch.where(self.weights[at] >= FEWEST_READINGS, 1 + BET * (ratios - 1), 0.0)
        is_new = self.evidence[at] <= 1
        evidence = (self.evidence[at].clamp_min(1.0) * factors).clamp_max(LARGEST_EVIDENCE)
        sums, counts = self.sums[at] + readings, self.counts[at] + 1
        joined = counts + self.weights[at] * (1 - 1 / HORIZON) ** counts
        means = self.means[at] + (sums - counts * self.means[at]) / joined
        joins = evidence <= 1
        after = (
            torch.where(joins, means, self.means[at]),
            torch.where(joins, joined, self.weights[at]),
            evidence,
            sums.masked_fill(joins, 0.0),
            counts.masked_fill(joins, 0.0),
        )
        values = zip(self._all, after, strict=True)
        return Stream(*(old.index_copy(0, at, new) for old, new in values)), is_new

    def emptied(self, at: Tensor) -> Stream:
        """The same without readings of the streams `at` [k]."""
        return Stream(*(x.index_fill(0, at, 0.0) for x in self._all))

    def tensor(self) -> Tensor:
        """All numbers, [5, n]."""
        return torch.stack(self._all)


@dataclass(frozen=True, eq=False)
class DriftMonitor:
    """Tests for a change in each task, and for one of most tasks together.

    A reading of a task is the mean squared error of its rewards in one call. A reading of the
    typical task is the median, over at least eight tasks, of errors relative to the recent mean of
    their task: a change of one task does not move it.

    Attributes:
        tasks: the streams of all tasks.
        starts: when the evidence of each task began, in samples of the task, [task].
        typical: the stream of the typical task.
        typical_starts: the samples of each task when that evidence began, [task].
        ratios: sums of relative errors since the last reading of the typical task, [task].
        counts: their number, [task].
    """

    tasks: Stream
    starts: Tensor
    typical: Stream
    typical_starts: Tensor
    ratios: Tensor
    counts: Tensor

    @classmethod
    def empty(cls, num_tasks: int) -> DriftMonitor:
        """Before any reward."""
        none = torch.zeros(num_tasks, dtype=torch.int64)
        return cls(Stream.empty(num_tasks), none, Stream.empty(1), none, none.double(), none)

    def with_tasks(self, count: int) -> DriftMonitor:
        """The same with more tasks, which have no rewards."""
        more = torch.zeros(count, dtype=torch.int64)
        return DriftMonitor(
            self.tasks.with_streams(count),
            torch.cat([self.starts, more]),
            self.typical,
            torch.cat([self.typical_starts, more]),
            torch.cat([self.ratios, more.double()]),
            torch.cat([self.counts, more]),
        )

    def after(self, tasks: Tensor, errors: Tensor, seen: Tensor) -> DriftMonitor:
        """With errors [n] of tasks [n]; `seen` [task] are the samples of each task before them."""
        at, position = tasks.unique(return_inverse=True)
        counts = torch.bincount(position).double()
        readings = torch.zeros(len(at), dtype=torch.float64)
        readings = readings.index_add(0, position, errors.square()) / counts
        known = self.tasks.weights > 0
        common = float(self.tasks.means[known].mean()) if bool(known.any()) else 0.0
        references = self.tasks.means[at].clamp_min(SMALLEST_SHARE * common)
        streams, is_new = self.tasks.after(at, readings, references)
        starts = self.starts.index_copy(0, at, torch.where(is_new, seen[at], self.starts[at]))
        found = replace(self, tasks=streams, starts=starts)
        is_compared = self.tasks.weights[at] >= FEWEST_READINGS
        ratios = (readings / references.clamp_min(1e-300)).clamp_max(LARGEST_RATIO)[is_compared]
        return found._with_ratios(at[is_compared], ratios, seen)

    def _with_ratios(self, at: Tensor, ratios: Tensor, seen: Tensor) -> DriftMonitor:
        """Collect relative errors [k] of the tasks `at` [k]; with enough tasks read the median."""
        one = torch.ones_like(at)
        sums, counts = self.ratios.index_add(0, at, ratios), self.counts.index_add(0, at, one)
        is_present, num_compared = counts > 0, int((self.tasks.weights >= FEWEST_READINGS).sum())
        if int(is_present.sum()) < max(FEWEST_TASKS, min(GROUP, num_compared)):
            return replace(self, ratios=sums, counts=counts)
        reading = (sums[is_present] / counts[is_present]).median().reshape(1)
        first = torch.zeros(1, dtype=torch.int64)
        references = self.typical.means.clamp_min(SMALLEST_MEDIAN)
        typical, is_new = self.typical.after(first, reading, references)
        # The samples of this reading came after `seen`, or shortly before.
        starts = seen if bool(is_new) else self.typical_starts
        none = torch.zeros_like(counts)
        return replace(
            self, typical=typical, typical_starts=starts, ratios=none.double(), counts=none
        )

    def alarms(self, threshold: float) -> Tensor | None:
        """The first sample of each task after its change, 0 without one: [task]; None if no alarm.

        A task without evidence of its own has changed with the typical task.
        """
        is_alarmed = self.tasks.evidence >= threshold
        has_typical = float(self.typical.evidence) >= threshold
        if not has_typical and not bool(is_alarmed.any()):
            return None
        first = torch.where(is_alarmed, self.starts, 0)
        return torch.maximum(first, self.typical_starts) if has_typical else first

    def after_alarms(self, first: Tensor) -> DriftMonitor:
        """Without the readings of the tasks that have changed, and of the typical task."""
        at = (first > 0).nonzero().squeeze(1)
        typical = self.typical
        if 2 * len(at) >= len(first):
            typical = Stream.empty(1)
        return replace(
            self,
            tasks=self.tasks.emptied(at),
            typical=typical,
            ratios=self.ratios.index_fill(0, at, 0.0),
            counts=self.counts.index_fill(0, at, 0),
        )

    def tensors(self) -> dict[str, Tensor]:
        """All numbers, to be saved."""
        return {
            f"{PREFIX}tasks": self.tasks.tensor(),
            f"{PREFIX}typical": self.typical.tensor(),
            f"{PREFIX}ratios": self.ratios,
            f"{PREFIX}starts": torch.stack([self.starts, self.typical_starts, self.counts]),
        }

    @classmethod
    def restored(cls, state: Mapping[str, Tensor], seen: Tensor) -> DriftMonitor:
        """The monitor of a state, checked; `seen` [task] are the samples of each task."""
        count = len(seen)

        def floats(name: str, *shape: int) -> Tensor:
            found = validate_state_tensor(
                state,
                f"{PREFIX}{name}",
                shape,
                dtype=torch.float64,
                low=0.0,
                high=LARGEST_COMPUTED,
            )
            return found.cpu().clone()

        whole = validate_state_tensor(
            state, f"{PREFIX}starts", (3, count), dtype=torch.int64, low=0
        ).cpu()
        if bool((whole > seen).any()):
            raise InvalidInputError(
                f"'{PREFIX}starts' of the state count more samples than tasks have had"
            )
        starts, typical_starts, counts = whole.clone()
        return cls(
            Stream(*floats("tasks", 5, count)),
            starts,
            Stream(*floats("typical", 5, 1)),
            typical_starts,
            floats("ratios", count),
            counts,
        )
