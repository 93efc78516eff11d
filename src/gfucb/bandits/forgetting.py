"""Which rewards an agent still uses: rules that bound their age or their number."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

import torch
from torch import Tensor

from gfucb.bandits.drift import LARGEST_EVIDENCE
from gfucb.core.errors import InvalidInputError
from gfucb.core.hashed_draws import GOLDEN, mixed
from gfucb.core.validation.settings import validate_count, validate_number

# Samples are dropped together, when a task has this share more of them than it keeps.
SLACK = 1 / 8
AUTO = "auto"


@runtime_checkable
class KeepingRule(Protocol):
    """Says which samples are kept. The age of a sample is in rewards of its own task."""

    def kept(self, tasks: Tensor, arrivals: Tensor, seen: Tensor, seed: int) -> Tensor | None:
        """Which samples are kept, [sample] of booleans; None if there is nothing to drop yet.

        Args:
            tasks: [sample].
            arrivals: how many samples of the same task came before, [sample].
            seen: how many samples of each task have come, [task].
            seed: of the random draws.
        """


@dataclass(frozen=True)
class SlidingWindow(KeepingRule):
    """Only the last rewards of each task count, for its head and for the representation.

    Samples are dropped together, so a task has up to an eighth more of them.
    """

    samples: int
    """The number of rewards of a task."""

    def __post_init__(self) -> None:
        validate_count(self.samples, "samples")

    def kept(self, tasks: Tensor, arrivals: Tensor, seen: Tensor, seed: int) -> Tensor | None:
        """Those that are younger than `samples` rewards."""
        ages = seen[tasks] - arrivals
        if not bool((ages > (1 + SLACK) * self.samples).any()):
            return None
        return _where_due(tasks, ages <= self.samples, ages > (1 + SLACK) * self.samples, seen)


@dataclass(frozen=True)
class Discounting(KeepingRule):
    """Exponential discounting: a reward counts with probability exp(-age / samples).

    Every reward has a random lifetime with this mean. The expected loss of a fit is then that of
    weights exp(-age / samples), with any fit and any model, and memory is bounded.
    """

    samples: float
    """The mean lifetime in rewards of the same task, and the mean number of samples it has."""

    def __post_init__(self) -> None:
        validate_number(self.samples, "samples", at_least=1.0)

    def kept(self, tasks: Tensor, arrivals: Tensor, seen: Tensor, seed: int) -> Tensor | None:
        """Those that are younger than their lifetime."""
        ages = seen[tasks] - arrivals - 1
        is_kept = ages < -self.samples * _uniform(tasks, arrivals, seed).log()
        num_expired = torch.bincount(tasks[~is_kept], minlength=len(seen))
        most = max(1, math.ceil(SLACK * self.samples))
        if int(num_expired.max()) < most:
            return None
        return is_kept | (num_expired < most)[tasks]


@dataclass(frozen=True)
class Reservoir(KeepingRule):
    """A random part of the rewards of each task, of bounded size; all are equally likely.

    Samples are dropped together, so a task has up to an eighth more of them.
    """

    samples: int
    """The number of samples of a task."""

    def __post_init__(self) -> None:
        validate_count(self.samples, "samples")

    def kept(self, tasks: Tensor, arrivals: Tensor, seen: Tensor, seed: int) -> Tensor | None:
        """Those with the smallest random keys of their task."""
        counts = torch.bincount(tasks, minlength=len(seen))
        is_due = counts > (1 + SLACK) * self.samples
        if not bool(is_due.any()):
            return None
        keys = _uniform(tasks, arrivals, seed)
        order = keys.argsort(stable=True)
        order = order[tasks[order].argsort(stable=True)]  # by task, then by key
        ranks = torch.empty_like(order)
        starts = counts.cumsum(0) - counts
        ranks[order] = torch.arange(len(order), device=order.device) - starts[tasks[order]]
        return (ranks < self.samples) | ~is_due[tasks]


@dataclass(frozen=True)
class DriftDetection:
    """Forget what came before a change of the rewards, if there is one.

    The squared errors of predictions that were made before the rewards came are compared with
    those of the past, in each task and for the typical task. If they have grown, the rewards from
    before the change are dropped: of this task, or of all. Without an alarm nothing is forgotten.
    See `DriftMonitor` for the test.
    """

    rewards_per_alarm: float = 10_000.0
    """If nothing changes, there are on average at least this many rewards between alarms of tasks,
    and as many between alarms of all tasks."""

    def __post_init__(self) -> None:
        validate_number(self.rewards_per_alarm, "rewards_per_alarm", at_least=1.0)
        if self.rewards_per_alarm > LARGEST_EVIDENCE:
            raise InvalidInputError(
                f"rewards_per_alarm must be at most {LARGEST_EVIDENCE:g}, "
                f"got {self.rewards_per_alarm:g}"
            )


Forgetting = SlidingWindow | Discounting | DriftDetection


@dataclass(frozen=True)
class KeepingRules:
    """The settings of an agent: what it forgets, and how many samples it stores at most."""

    forgetting: Forgetting | None = None
    max_samples_per_task: int | None = None

    @classmethod
    def of(
        cls, forgetting: Forgetting | Literal["auto"] | None, max_samples_per_task: int | None
    ) -> KeepingRules:
        """The settings, checked; "auto" is `DriftDetection()`."""
        if isinstance(forgetting, str) and forgetting == AUTO:
            forgetting = DriftDetection()
        if forgetting is not None and not isinstance(forgetting, Forgetting):
            raise InvalidInputError(
                "forgetting must be SlidingWindow(samples), Discounting(samples), "
                f'DriftDetection(), "auto" or None, got {forgetting!r}'
            )
        if max_samples_per_task is not None:
            validate_count(max_samples_per_task, "max_samples_per_task")
        return cls(forgetting, max_samples_per_task)

    @property
    def rules(self) -> tuple[KeepingRule, ...]:
        """The rules that do not depend on rewards."""
        cap = self.max_samples_per_task
        own = (self.forgetting,) if isinstance(self.forgetting, KeepingRule) else ()
        return own if cap is None else (*own, Reservoir(cap))

    @property
    def drift(self) -> DriftDetection | None:
        """The detection of changes, if there is one."""
        return self.forgetting if isinstance(self.forgetting, DriftDetection) else None

    @property
    def keeps_all(self) -> bool:
        """Whether no sample is ever dropped."""
        return self == KeepingRules()

    @property
    def forgets(self) -> bool:
        """Whether old samples count less than new ones."""
        return self.forgetting is not None

    def without_drift(self) -> KeepingRules:
        """The same rules without the detection of changes."""
        own = None if self.drift is not None else self.forgetting
        return KeepingRules(own, self.max_samples_per_task)


KEEP_ALL = KeepingRules()


def _where_due(tasks: Tensor, is_kept: Tensor, is_late: Tensor, seen: Tensor) -> Tensor:
    """Keep all samples of tasks that have no late one: tasks drop samples one after another."""
    is_due = torch.bincount(tasks[is_late], minlength=len(seen)) > 0
    return is_kept | ~is_due[tasks]


def _uniform(tasks: Tensor, arrivals: Tensor, seed: int) -> Tensor:
    """A draw in (0, 1) for each sample, the same whenever it is asked for: [sample]."""
    words = mixed(mixed(tasks * GOLDEN + seed) + arrivals * GOLDEN)
    return (((words >> 11) & (2**53 - 1)).to(torch.float64) + 0.5) / 2**53
