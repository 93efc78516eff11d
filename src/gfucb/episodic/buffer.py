"""The transitions of one stage: (task, input, reward, next observation)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from gfucb.core.errors import InvalidInputError
from gfucb.core.records import Transitions
from gfucb.core.validation.arrays import LARGEST_INPUT
from gfucb.core.validation.settings import LARGEST_REWARD
from gfucb.core.validation.states import validate_state_names, validate_state_tensor
from gfucb.episodic.distinct_rows import DistinctRows, Floats, GrowingColumn, Integers
from gfucb.models import HeadStatistics, MultitaskDataset

ENDED = -1  # the next index of a transition that ended its episode


class StageBuffer:
    """The transitions of one stage, with identical inputs and next observations stored once.

    An observation is stored as its candidates, the inputs of all actions in it: [action, *input].

    Attributes:
        inputs: distinct (task, input) pairs.
        next_observations: distinct (task, candidates) pairs that followed.
    """

    def __init__(self, num_tasks: int) -> None:
        self.num_tasks = num_tasks
        self.inputs = DistinctRows()
        self.next_observations = DistinctRows()
        self._input_indices, self._next_indices = GrowingColumn(np.int64), GrowingColumn(np.int64)
        self._rewards = GrowingColumn(np.float64)

    def __len__(self) -> int:
        return self._rewards.size

    @property
    def input_indices(self) -> Integers:
        """The row of `inputs` of each sample, [sample]."""
        return np.asarray(self._input_indices.values, dtype=np.int64)

    @property
    def next_indices(self) -> Integers:
        """The row of `next_observations` of each sample; -1 where the episode ended: [sample]."""
        return np.asarray(self._next_indices.values, dtype=np.int64)

    @property
    def rewards(self) -> Floats:
        """[sample]."""
        return np.asarray(self._rewards.values, dtype=np.float64)

    def validate(self, transitions: Transitions) -> None:
        """Refuse transitions whose candidates differ in shape from those stored."""
        candidates = transitions.next_candidates
        if candidates is None or not len(self.next_observations):
            return
        stored = self.next_observations.row_shape
        if candidates.shape[1:] != stored:
            raise InvalidInputError(
                "earlier next_candidates of this stage have the shape [action, *input] = "
                f"{list(stored)}, got {list(candidates.shape[1:])}; pad action sets to one length"
            )

    def append(self, transitions: Transitions) -> list[int]:
        """Add transitions; return the rows of their inputs in `inputs`."""
        input_indices = self.inputs.add(transitions.tasks, transitions.inputs)
        next_indices = np.full(len(transitions.tasks), ENDED, dtype=np.int64)
        if transitions.next_candidates is not None:
            rows = np.flatnonzero(~transitions.ended)
            tasks = [transitions.tasks[row] for row in rows]
            next_indices[rows] = self.next_observations.add(
                tasks, transitions.next_candidates[rows]
            )
        self._input_indices.extend(input_indices)
        self._next_indices.extend(next_indices)
        self._rewards.extend(transitions.rewards)
        return input_indices

    def num_inputs(self, num_samples: int) -> int:
        """The number of distinct inputs among the first samples; they are stored first."""
        return int(self.input_indices[:num_samples].max()) + 1

    def first_inputs(self, num_samples: int) -> Tensor:
        """The distinct inputs of the first samples, [input, *input].

        Of all samples, this is the tensor object `inputs.rows`.
        """
        count = self.num_inputs(num_samples)
        return self.inputs.rows if count == len(self.inputs) else self.inputs.rows[:count]

    def targets(self, next_values: Floats, num_samples: int | None = None) -> Floats:
        """R + V(s') of the first samples, [sample]; V(s') is zero after the end of an episode.

        `next_values` [next_observation] are the values of `next_observations`.
        """
        end = len(self) if num_samples is None else num_samples
        values = np.append(next_values, 0.0)  # the index ENDED = -1 selects the zero
        return np.asarray(self.rewards[:end] + values[self.next_indices[:end]])

    def counts(self, num_samples: int) -> Floats:
        """The number of samples of each input among the first samples, [input]."""
        indices = self.input_indices[:num_samples]
        return np.bincount(indices, minlength=len(self.inputs)).astype(np.float64)

    def target_sums(self, targets: Floats) -> Floats:
        """The sum of the targets [sample] of each input, [input]."""
        indices = self.input_indices[: len(targets)]
        sums = np.bincount(indices, weights=targets, minlength=len(self.inputs))
        return sums.astype(np.float64, copy=False)

    def statistics(self, features: Tensor, targets: Floats, offset: float) -> HeadStatistics:
        """Head statistics of all samples from the features [input, feature] of distinct inputs.

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
        """The first samples with these targets [sample], one row each.

        `example` [1, *input] gives the shape of inputs where there is no sample.
        """
        if not len(targets) and example is not None:
            return MultitaskDataset(self.num_tasks, example.shape[1:], example.dtype)
        rows = torch.from_numpy(self.input_indices[: len(targets)])
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
        """All transitions as named tensors; empty if there are none."""
        if not len(self):
            return {}
        tensors = {
            "inputs": self.inputs.rows,
            "inputs.tasks": self.inputs.tasks,
            "input_indices": torch.from_numpy(self.input_indices.copy()),
            "next_indices": torch.from_numpy(self.next_indices.copy()),
            "rewards": torch.from_numpy(self.rewards.copy()),
        }
        if len(self.next_observations):
            tensors |= {
                "next_observations": self.next_observations.rows,
                "next_observations.tasks": self.next_observations.tasks,
            }
        return tensors

    @classmethod
    def of_state(cls, num_tasks: int, state: Mapping[str, Tensor]) -> StageBuffer:
        """The buffer with this state, after a check of all its tensors."""
        buffer = cls(num_tasks)
        if not state:
            return buffer
        _validate(state, num_tasks)
        buffer._restore(buffer.inputs, state, "inputs")
        if "next_observations" in state:
            buffer._restore(buffer.next_observations, state, "next_observations")
        buffer._input_indices.extend(state["input_indices"].numpy())
        buffer._next_indices.extend(state["next_indices"].numpy())
        buffer._rewards.extend(state["rewards"].numpy())
        return buffer

    def _restore(self, rows: DistinctRows, state: Mapping[str, Tensor], name: str) -> None:
        rows.add(state[f"{name}.tasks"].tolist(), state[name].contiguous().numpy())
        if len(rows) != len(state[name]):
            raise InvalidInputError(f"{name!r} of the state holds a row twice")


def _validate(state: Mapping[str, Tensor], num_tasks: int) -> None:
    """Refuse the state of a buffer whose names, shapes or numbers do not fit together."""
    columns = ("inputs", "inputs.tasks", "input_indices", "next_indices", "rewards")
    following = ("next_observations", "next_observations.tasks")
    has_next = any(name in state for name in following)
    validate_state_names(state, columns + following if has_next else columns)
    num_samples, num_inputs = len(state["rewards"]), len(state["inputs"])
    _validate_rows(state, "inputs", num_tasks, state["inputs"].shape[1:])
    num_next = 0
    if has_next:
        num_next = len(state["next_observations"])
        action_shape = state["next_observations"].shape[1:2] + state["inputs"].shape[1:]
        _validate_rows(state, "next_observations", num_tasks, action_shape)
        if state["next_observations"].dtype != state["inputs"].dtype:
            raise InvalidInputError(
                f"'next_observations' of the state must be {state['inputs'].dtype}, as 'inputs', "
                f"got {state['next_observations'].dtype}"
            )
    _validate_indices(state, "input_indices", num_samples, 0, num_inputs - 1)
    _validate_indices(state, "next_indices", num_samples, ENDED, num_next - 1)
    validate_state_tensor(
        state,
        "rewards",
        [num_samples],
        dtype=torch.float64,
        low=-LARGEST_REWARD,
        high=LARGEST_REWARD,
    )


def _validate_rows(
    state: Mapping[str, Tensor], name: str, num_tasks: int, shape: torch.Size
) -> None:
    validate_state_tensor(state, name, [None, *shape], low=-LARGEST_INPUT, high=LARGEST_INPUT)
    _validate_indices(state, f"{name}.tasks", len(state[name]), 0, num_tasks - 1)


def _validate_indices(
    state: Mapping[str, Tensor], name: str, length: int, low: int, high: int
) -> None:
    validate_state_tensor(state, name, [length], dtype=torch.int64, low=low, high=high)


def dataset_of(num_tasks: int, tasks: Tensor, inputs: Tensor, targets: Tensor) -> MultitaskDataset:
    """A data set of these samples: [sample], [sample, *input], [sample]."""
    data = MultitaskDataset(num_tasks, inputs.shape[1:], inputs.dtype, capacity=max(1, len(tasks)))
    data.append(tasks, inputs, targets)
    return data
