"""What an episodic agent has seen of one stage: (task, input, reward, what was offered next)."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gfucb.core.errors import InvalidInputError
from gfucb.core.records import Transitions
from gfucb.models import HeadStatistics, MultitaskDataset

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
ENDED = -1


class DistinctRows:
    """A growing table of tensors, each kept once for each task it was seen in.

    Where states come back, as in finite environments, its length stays that of the environment, and planning
    costs what the environment costs, whatever the number of episodes.
    """

    def __init__(self) -> None:
        self._index: dict[tuple[int, bytes], int] = {}
        self._tasks: list[int] = []
        self._rows: list[NDArray[np.generic]] = []
        self._stacked: tuple[Tensor, Tensor] | None = None
        self._arrays: tuple[Floats, Integers] | None = None

    def __len__(self) -> int:
        return len(self._tasks)

    def add(self, tasks: list[int], rows: NDArray[np.generic]) -> list[int]:
        """Where rows [n, ...] of tasks [n] stand in the table; new ones are put at its end."""
        found = []
        for task, row in zip(tasks, rows, strict=True):
            place = self._index.setdefault((task, row.tobytes()), len(self._tasks))
            if place == len(self._tasks):
                self._tasks.append(task)
                self._rows.append(row.copy())
                self._stacked = None
            found.append(place)
        return found

    def find(self, tasks: list[int], rows: NDArray[np.generic]) -> Integers:
        """Where rows [n, ...] of tasks [n] stand; -1 for those that were never added: [n]."""
        keys = ((task, row.tobytes()) for task, row in zip(tasks, rows, strict=True))
        return np.array([self._index.get(key, -1) for key in keys], dtype=np.int64)

    @property
    def tasks(self) -> Tensor:
        """The task of each row, [row]."""
        return self._stack()[0]

    @property
    def rows(self) -> Tensor:
        """The rows themselves, [row, ...]."""
        return self._stack()[1]

    def arrays(self) -> tuple[Floats, Integers]:
        """Rows in float64, [row, ...], and the task of each, [row]."""
        if self._arrays is None or len(self._arrays[1]) != len(self):
            rows = np.stack(self._rows).astype(np.float64)
            self._arrays = rows, np.array(self._tasks, dtype=np.int64)
        return self._arrays

    @property
    def row_shape(self) -> tuple[int, ...]:
        """Of every row; there must be one."""
        return self._rows[0].shape

    def row(self, index: int) -> Tensor:
        """One row, [...]."""
        return torch.from_numpy(self._rows[index])

    def _stack(self) -> tuple[Tensor, Tensor]:
        if self._stacked is None:
            rows = torch.from_numpy(np.stack(self._rows))
            self._stacked = torch.tensor(self._tasks, dtype=torch.int64), rows
        return self._stacked


class Numbers:
    """A growing column of numbers; appending costs amortised constant time."""

    def __init__(self, dtype: type) -> None:
        self._values: NDArray[np.generic] = np.empty(64, dtype=dtype)
        self.size = 0

    @property
    def values(self) -> NDArray[np.generic]:
        """What there is, a view."""
        return self._values[: self.size]

    def extend(self, values: NDArray[np.generic] | list[int]) -> None:
        """Add values at the end."""
        end = self.size + len(values)
        if end > len(self._values):
            grown = np.empty(max(end, 2 * len(self._values)), dtype=self._values.dtype)
            grown[: self.size] = self.values
            self._values = grown
        self._values[self.size : end] = values
        self.size = end


class StageBuffer:
    """The transitions of one stage.

    Attributes:
        inputs: distinct (task, input) pairs that were played.
        places: distinct (task, candidates) pairs that followed: where the next stage was entered.
    """

    # What its state is made of.
    NAMES = ("inputs", "inputs.tasks", "played", "entered", "rewards", "places", "places.tasks")

    def __init__(self, num_tasks: int) -> None:
        self.num_tasks = num_tasks
        self.inputs = DistinctRows()
        self.places = DistinctRows()
        self._played, self._entered = Numbers(np.int64), Numbers(np.int64)
        self._rewards = Numbers(np.float64)

    def __len__(self) -> int:
        return self._rewards.size

    @property
    def played(self) -> Integers:
        """Which of `inputs` was played, [sample]."""
        return np.asarray(self._played.values, dtype=np.int64)

    @property
    def entered(self) -> Integers:
        """Which of `places` followed, [sample]; -1 where the episode ended."""
        return np.asarray(self._entered.values, dtype=np.int64)

    @property
    def rewards(self) -> Floats:
        """[sample]."""
        return np.asarray(self._rewards.values, dtype=np.float64)

    def check(self, news: Transitions) -> None:
        """Refuse transitions that could not stand beside those there are."""
        following = news.next_candidates
        if following is None or not len(self.places):
            return
        known = self.places.row_shape
        if following.shape[1:] != known:
            raise InvalidInputError(
                "the places this stage leads to have offered candidates of the shape [action, "
                f"*input] = {list(known)}, got {list(following.shape[1:])}; pad action sets to one length"
            )

    def append(self, news: Transitions) -> list[int]:
        """Add transitions; return where their inputs stand in `inputs`."""
        played = self.inputs.add(news.tasks, news.inputs)
        entered = np.full(len(news.tasks), ENDED, dtype=np.int64)
        if news.next_candidates is not None:
            going = np.flatnonzero(~news.ended)
            tasks = [news.tasks[i] for i in going]
            entered[going] = self.places.add(tasks, news.next_candidates[going])
        self._played.extend(played)
        self._entered.extend(entered)
        self._rewards.extend(news.rewards)
        return played

    def targets(self, place_values: Floats, num_samples: int | None = None) -> Floats:
        """R + V(s') of the first samples: V of `places` [place] -> [sample]; zero after the end."""
        end = len(self) if num_samples is None else num_samples
        following = np.append(place_values, 0.0)  # the last one is for ENDED = -1
        return np.asarray(self.rewards[:end] + following[self.entered[:end]])

    def counts(self, num_samples: int) -> Floats:
        """How often each input was played among the first samples, [input]."""
        played = self.played[:num_samples]
        return np.bincount(played, minlength=len(self.inputs)).astype(np.float64)

    def target_sums(self, targets: Floats) -> Floats:
        """Sum of the targets [sample] of each input, [input]."""
        played = self.played[: len(targets)]
        sums = np.bincount(played, weights=targets, minlength=len(self.inputs))
        return sums.astype(np.float64, copy=False)

    def statistics(self, features: Tensor, targets: Floats, offset: float) -> HeadStatistics:
        """Statistics of all samples, from the features of distinct inputs: [input, feature].

        Costs O(inputs k^2 + samples): identical samples are counted, not repeated.
        """
        counts = torch.from_numpy(self.counts(len(targets)))[: len(features)]
        sums = torch.from_numpy(self.target_sums(targets))[: len(features)] - offset * counts
        seen = counts > 0
        roots = counts[seen].sqrt()
        return HeadStatistics.of(
            features[seen] * roots[:, None],
            self.inputs.tasks[: len(features)][seen],
            sums[seen] / roots,
            self.num_tasks,
        )

    def dataset(self, targets: Floats, example: Tensor | None = None) -> MultitaskDataset:
        """All samples with these targets [sample], one line each.

        `example` [1, *input] gives the shape of inputs where there is no sample yet.
        """
        if not len(targets) and example is not None:
            return MultitaskDataset(self.num_tasks, example.shape[1:], example.dtype)
        rows = torch.from_numpy(self.played[: len(targets)])
        return dataset_of(
            self.num_tasks,
            self.inputs.tasks[rows],
            self.inputs.rows[rows],
            torch.from_numpy(targets),
        )

    def distinct_dataset(self, targets: Floats) -> MultitaskDataset:
        """Every distinct input once, with the mean of its targets [sample]."""
        counts, sums = self.counts(len(targets)), self.target_sums(targets)
        seen = np.flatnonzero(counts)
        rows = torch.from_numpy(seen)
        return dataset_of(
            self.num_tasks,
            self.inputs.tasks[rows],
            self.inputs.rows[rows],
            torch.from_numpy(sums[seen] / counts[seen]),
        )

    def state(self) -> dict[str, Tensor]:
        """All of it as named tensors; empty if nothing was seen."""
        if not len(self):
            return {}
        tensors = {
            "inputs": self.inputs.rows,
            "inputs.tasks": self.inputs.tasks,
            "played": torch.from_numpy(self.played.copy()),
            "entered": torch.from_numpy(self.entered.copy()),
            "rewards": torch.from_numpy(self.rewards.copy()),
        }
        if len(self.places):
            tensors |= {"places": self.places.rows, "places.tasks": self.places.tasks}
        return tensors

    @classmethod
    def of_state(cls, num_tasks: int, state: dict[str, Tensor]) -> StageBuffer:
        """The memory whose state this is."""
        memory = cls(num_tasks)
        if "inputs" in state:
            memory.inputs.add(state["inputs.tasks"].tolist(), state["inputs"].numpy())
            if "places" in state:
                memory.places.add(state["places.tasks"].tolist(), state["places"].numpy())
            memory._played.extend(state["played"].numpy())
            memory._entered.extend(state["entered"].numpy())
            memory._rewards.extend(state["rewards"].numpy())
        return memory


def dataset_of(num_tasks: int, tasks: Tensor, inputs: Tensor, targets: Tensor) -> MultitaskDataset:
    """A data set of these samples: [sample], [sample, *input], [sample]."""
    data = MultitaskDataset(num_tasks, inputs.shape[1:], inputs.dtype, capacity=max(1, len(tasks)))
    data.append(tasks, inputs, targets)
    return data
