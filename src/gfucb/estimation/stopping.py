"""Early stopping: train until the error on held-out samples stops falling."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from gfucb.core.errors import InvalidInputError
from gfucb.core.logs import log
from gfucb.core.random import random_stream
from gfucb.core.validation.settings import validate_count, validate_not_negative, validate_number
from gfucb.estimation.held_out import all_targets, head_errors
from gfucb.models import MultitaskDataset

LOGGER = logging.getLogger(__name__)

# A check has at most this many rows, and at least this many of each task where the task has them.
CHECKED_ROWS, CHECKED_ROWS_OF_TASK = 8192, 64
# With many tasks, each of them may hold out this many samples, whatever their total.
HELD_OUT_OF_TASK = 10


@dataclass(frozen=True)
class HeldOutStopping:
    """Stop a fit when the error on samples that phi is not trained on has stopped falling.

    The error is the mean squared leave-one-out error of the held-out samples: that of heads on
    all other samples of the task. It is measured without dropout before the first step and then
    every `check_every` steps, each time with an exponential average of the weights. Training stops
    when the lowest error is older than

        max(patience * usual steps, patience_growth * its step)

    steps, or at the bound below, and the average with the lowest error is returned. So a start
    that is already good costs a part of the usual steps, and one that still improves is trained on.
    Heads are always fitted to all samples.

    Which samples are held out depends on their index only. Later fits hold out the same ones and
    more, because a phi that was trained on a sample in an earlier fit has a lower error on it. With
    fewer than `fewest` of them there is no stopping and the fit has its usual steps.

    The bound: the usual steps times log2(n) for n samples, which is about what an agent makes that
    refits whenever its data has doubled, or `passes` over the data if that is more.

    Every check writes a line of the level INFO to the logger `gfucb.estimation.stopping`. Its
    numbers are also attributes of the log record.
    """

    share: float = 0.1
    """Held-out share of the samples after the first."""
    first_of_task: int = 80
    """The first samples of each task are all trained on, up to sample `first` in total."""
    first: int = 5000
    """Samples after this one may be held out, however few their task has."""
    fewest: int = 50
    """The fewest held-out samples for a check."""
    most: int = 1000
    """The most held-out samples, in equal parts for all tasks; but ten of a task are allowed."""
    check_every: int = 20
    """Steps between checks."""
    patience: float = 0.25
    """Steps without a lower error, at least, as a share of the usual steps of the fit."""
    patience_growth: float = 0.5
    """Steps without a lower error, in proportion to the step of the lowest."""
    smallest_gain: float = 0.01
    """An error counts as lower if it is lower by this share."""
    passes: float = 20.0
    """Of the data, in the bound of the steps."""
    averaging: float = 0.98
    """The average of the weights changes by 1 - `averaging` of the difference in a step, and faster
    in the first ones. 0 checks and returns the weights themselves."""

    def __post_init__(self) -> None:
        validate_number(self.share, "share", above=0.0)
        for name in ("first_of_task", "first"):
            validate_count(getattr(self, name), name, at_least=0)
        for name in ("fewest", "most", "check_every"):
            validate_count(getattr(self, name), name)
        for name in ("patience", "patience_growth", "smallest_gain", "passes"):
            validate_not_negative(getattr(self, name), name)
        validate_number(self.averaging, "averaging", at_least=0.0)
        if self.averaging >= 1 or self.share >= 1:
            name = "averaging" if self.averaging >= 1 else "share"
            raise InvalidInputError(f"{name} must be below 1, got {getattr(self, name)}")

    def held_out(self, data: MultitaskDataset, *, is_first_fit: bool = False) -> Tensor | None:
        """Which samples are held out, [sample] of booleans on the CPU; None if too few are.

        A sample is held out by its index, whatever comes after it. In a first fit all samples may
        be held out: phi is untrained, and the usual steps are too few for a long log.
        """
        # A longer stream of uniform draws begins with the shorter one.
        draws = torch.rand(len(data), generator=random_stream(0, "held-out samples"))
        tasks = data.tasks.cpu()
        # Phi needs all samples while tasks have few: holding some out then costs regret.
        is_later = _ranks(tasks) >= (0 if is_first_fit else self.first_of_task)
        is_later[self.first :] = True
        drawn = ((draws < self.share) & is_later).nonzero().squeeze(1)
        most_of_task = max(HELD_OUT_OF_TASK, self.most // data.num_tasks)
        drawn = drawn[_ranks(tasks[drawn]) < most_of_task]
        if len(drawn) < self.fewest:
            return None
        return torch.zeros(len(data), dtype=torch.bool).index_fill(0, drawn, True)

    def step_bound(self, steps: int, num_samples: int, batch_size: int) -> int:
        """The most steps of a fit that without stopping has `steps`."""
        passes = math.ceil(self.passes * num_samples / batch_size)
        return max(round(steps * max(1.0, math.log2(num_samples))), passes)

    def average(self, averages: Sequence[Tensor], weights: Sequence[Tensor], step: int) -> None:
        """Move the averages towards the weights after a step, counted from 1."""
        # The average of all weights so far, the start included, until there are enough steps.
        share = max(1 - self.averaging, 1 / (step + 1)) if self.averaging else 1.0
        with torch.no_grad():
            torch._foreach_lerp_(list(averages), list(weights), share)


@dataclass(frozen=True, eq=False)
class HeldOutCheck:
    """The samples of one fit's checks, grouped by task.

    Attributes:
        samples: indices into the data, [task, slot].
        present: which slots hold a sample, [task, slot].
        held_out: which slots hold a held-out sample, [task, slot].
    """

    samples: Tensor
    present: Tensor
    held_out: Tensor

    @classmethod
    def of(cls, data: MultitaskDataset, held_out: Tensor) -> HeldOutCheck:
        """All held-out samples of some tasks and the latest others, within `CHECKED_ROWS`."""
        tasks = data.tasks.cpu()
        some = tasks[held_out].unique()
        num_tasks = min(len(some), CHECKED_ROWS // CHECKED_ROWS_OF_TASK)
        some = some[torch.linspace(0, len(some) - 1, num_tasks).round().long()]
        rows = [_latest(tasks == task, held_out, CHECKED_ROWS // num_tasks) for task in some]
        samples = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)
        counts = torch.tensor([len(own) for own in rows])
        present = torch.arange(samples.shape[1]) < counts[:, None]
        device = data.inputs.device
        is_held_out = held_out[samples] & present
        return cls(samples.to(device), present.to(device), is_held_out.to(device))

    def inputs(self, data: MultitaskDataset) -> Tensor:
        """The inputs of all slots, [task * slot, *input]."""
        return data.inputs[self.samples.flatten()]

    def targets(self, data: MultitaskDataset, offset: float) -> Tensor:
        """The targets of all slots, [task, slot, target]."""
        return all_targets(data, offset)[self.samples]

    def error(self, features: Tensor, targets: Tensor, ridge: float) -> float:
        """Mean squared error of the held-out samples with features [task * slot, feature]."""
        errors = head_errors(
            features.to(torch.float64).unflatten(0, self.samples.shape),
            targets,
            self.present,
            ridge=ridge,
            kind="leave_one_out",
        )
        return float(errors[self.held_out].square().sum(-1).mean())


class StoppingRule:
    """Decides after every check whether a fit goes on.

    Args:
        settings: of the rule.
        usual_steps: those of the fit without stopping.
        bound: the most steps.
        num_samples: of the data, for the log.
    """

    def __init__(
        self, settings: HeldOutStopping, *, usual_steps: int, bound: int, num_samples: int
    ) -> None:
        self.settings, self.bound, self.num_samples = settings, bound, num_samples
        self.patience = round(settings.patience * usual_steps)
        self.best_error, self.best_step, self.step = math.inf, 0, 0

    def is_best(self, step: int, error: float) -> bool:
        """Record the error at a step, and return whether it is the lowest so far."""
        self.step = step
        # An error that is not finite is never the lowest, so a fit that diverges is undone.
        is_best = error < self.best_error * (1 - self.settings.smallest_gain)
        if is_best:
            self.best_error, self.best_step = error, step
        log(
            LOGGER,
            logging.INFO,
            "fit to %(num_samples)d samples: step %(step)d of at most %(most_steps)d, held-out "
            "error %(held_out_error).5g, lowest %(lowest_error).5g at step %(lowest_step)d",
            num_samples=self.num_samples,
            step=step,
            most_steps=self.bound,
            held_out_error=error,
            lowest_error=self.best_error,
            lowest_step=self.best_step,
        )
        return is_best

    @property
    def next_steps(self) -> int:
        """The number of steps to the next check; 0 when the fit has ended."""
        growing = math.ceil(self.settings.patience_growth * self.best_step)
        if self.step - self.best_step >= max(self.patience, growing):
            return 0
        return min(self.settings.check_every, self.bound - self.step)


def _ranks(tasks: Tensor) -> Tensor:
    """How many earlier elements are the same task: [n] -> [n]."""
    order = tasks.argsort(stable=True)
    counts = torch.bincount(tasks)
    starts = (counts.cumsum(0) - counts)[tasks[order]]
    return torch.empty_like(tasks).index_copy(0, order, torch.arange(len(tasks)) - starts)


def _latest(own: Tensor, held_out: Tensor, most: int) -> Tensor:
    """Indices of the own samples: the held-out ones, then the latest others, at most `most`."""
    checked = (own & held_out).nonzero().squeeze(1)[-most:]
    others = (own & ~held_out).nonzero().squeeze(1)
    return torch.cat([checked, others[max(0, len(others) - most + len(checked)) :]])
