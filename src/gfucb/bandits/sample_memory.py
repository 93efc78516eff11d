"""The samples that a learner still uses, if it forgets or stores a bounded number."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from gfucb.bandits.drift import DriftMonitor
from gfucb.bandits.forgetting import KeepingRules
from gfucb.core.errors import InvalidInputError
from gfucb.core.validation.states import validate_state_tensor

PREFIX = "memory."


@dataclass(frozen=True, eq=False)
class SampleMemory:
    """When the samples of a learner came, and how many it has dropped.

    Attributes:
        rules: which samples are kept.
        seed: of the random draws.
        seen: how many samples of each task have come, [task], on the CPU.
        arrivals: for each kept sample, how many of its task came before, [sample], on the CPU.
        num_dropped: samples that were dropped since the last fit if the rules forget, and since
            the first sample otherwise.
        drift: the test for changes, if there is one.
    """

    rules: KeepingRules
    seed: int
    seen: Tensor
    arrivals: Tensor
    num_dropped: int = 0
    drift: DriftMonitor | None = None

    @classmethod
    def empty(cls, rules: KeepingRules, num_tasks: int, seed: int) -> SampleMemory | None:
        """Before any sample; None if the rules keep all samples."""
        if rules.keeps_all:
            return None
        none = torch.zeros(0, dtype=torch.int64)
        drift = None if rules.drift is None else DriftMonitor.empty(num_tasks)
        return cls(rules, seed, none.new_zeros(num_tasks), none, drift=drift)

    def emptied(self) -> SampleMemory | None:
        """The memory of the same tasks before any sample."""
        return SampleMemory.empty(self.rules, len(self.seen), self.seed)

    @property
    def num_seen(self) -> int:
        """How many samples have come."""
        return int(self.seen.sum())

    @property
    def needs_errors(self) -> bool:
        """Whether `after` needs the errors of predictions."""
        return self.drift is not None

    def with_tasks(self, count: int) -> SampleMemory:
        """The same with more tasks, which have no samples."""
        drift = None if self.drift is None else self.drift.with_tasks(count)
        seen = torch.cat([self.seen, self.seen.new_zeros(count)])
        return replace(self, seen=seen, drift=drift)

    def after(self, tasks: Tensor, errors: Tensor | None = None) -> SampleMemory:
        """With samples of tasks [n], and the errors [n] of predictions made before, if known."""
        tasks, count = tasks.cpu(), len(self.seen)
        order = tasks.argsort(stable=True)
        added = torch.bincount(tasks, minlength=count)
        starts = added.cumsum(0) - added
        arrivals = torch.empty_like(tasks)
        arrivals[order] = torch.arange(len(tasks)) - starts[tasks[order]]
        arrivals += self.seen[tasks]
        drift = self.drift
        if drift is not None and errors is not None:
            drift = drift.after(tasks, errors.cpu(), self.seen)
        return replace(
            self,
            seen=self.seen + added,
            arrivals=torch.cat([self.arrivals, arrivals]),
            drift=drift,
        )

    def kept(self, tasks: Tensor) -> tuple[SampleMemory, Tensor | None, bool]:
        """Which samples are kept, given the tasks [sample] of all of them.

        Returns the memory after this, which samples are kept, [sample] of booleans or None if all
        are, and whether the reason is a change of the rewards.
        """
        tasks, drift = tasks.cpu(), self.drift
        masks = [r.kept(tasks, self.arrivals, self.seen, self.seed) for r in self.rules.rules]
        first = None
        if drift is not None and self.rules.drift is not None:
            first = drift.alarms(self.rules.drift.rewards_per_alarm)
            if first is not None:
                drift = drift.after_alarms(first)
                masks.append(self.arrivals >= first[tasks])
        found = [mask for mask in masks if mask is not None]
        if not found:
            return self, None, False
        kept = torch.stack(found).all(0)
        after = replace(
            self,
            arrivals=self.arrivals[kept],
            num_dropped=self.num_dropped + int((~kept).sum()),
            drift=drift,
        )
        return after, kept, first is not None

    def after_fit(self) -> SampleMemory:
        """The memory after all samples were fitted."""
        return replace(self, num_dropped=0) if self.rules.forgets else self

    def tensors(self) -> dict[str, Tensor]:
        """All numbers, to be saved."""
        drift = {} if self.drift is None else self.drift.tensors()
        return {
            f"{PREFIX}seen": self.seen,
            f"{PREFIX}arrivals": self.arrivals,
            f"{PREFIX}dropped": torch.tensor([self.num_dropped]),
        } | {f"{PREFIX}{name}": tensor for name, tensor in drift.items()}

    def restored(self, state: Mapping[str, Tensor]) -> SampleMemory:
        """The memory of a state with samples, checked against their tasks."""
        tasks, whole = state["data.tasks"].cpu(), torch.int64
        count = (len(self.seen),)
        seen = validate_state_tensor(state, f"{PREFIX}seen", count, dtype=whole, low=0).cpu()
        name, low = f"{PREFIX}arrivals", 0
        arrivals = validate_state_tensor(state, name, (len(tasks),), dtype=whole, low=low).cpu()
        dropped = validate_state_tensor(state, f"{PREFIX}dropped", (1,), dtype=whole, low=0)
        keys = torch.stack([tasks, arrivals], 1)
        if bool((arrivals >= seen[tasks]).any()) or len(keys.unique(dim=0)) < len(keys):
            raise InvalidInputError(
                f"{name!r} of the state do not number the samples of each task that have come"
            )
        if int(dropped) + len(tasks) > int(seen.sum()):
            raise InvalidInputError(
                f"'{PREFIX}dropped' of the state gives {int(dropped)} dropped samples, but "
                f"{len(tasks)} of {int(seen.sum())} are there"
            )
        drift = self.drift
        if drift is not None:
            own = {n.removeprefix(PREFIX): t for n, t in state.items() if n.startswith(PREFIX)}
            drift = DriftMonitor.restored(own, seen)
        return replace(
            self,
            seen=seen.clone(),
            arrivals=arrivals.clone(),
            num_dropped=int(dropped),
            drift=drift,
        )


def validate_counters(
    state: Mapping[str, Tensor], num_samples: float, memory: SampleMemory | None
) -> tuple[int, int]:
    """The number of fits and of samples at the last one, in a state with `num_samples`, checked."""
    counters = validate_state_tensor(state, "counters", (2,), dtype=torch.int64, low=0)
    num_fits, samples_at_fit = counters.tolist()
    size = num_samples + (0 if memory is None else memory.num_dropped)
    # After a change of the rewards a fit is due, as if there had been none.
    can_be_zero = memory is not None and memory.needs_errors
    is_consistent = can_be_zero or (num_fits > 0) == (samples_at_fit > 0)
    if samples_at_fit > size or not is_consistent:
        raise InvalidInputError(
            f"'counters' of the state give {num_fits} fits and {samples_at_fit} samples at the "
            f"last fit, but the state has {size} samples"
        )
    return num_fits, samples_at_fit
