"""Classification as a bandit: the class of a row of columns is the best of its actions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import torch
from torch import Tensor

from gfucb.core.discrete_actions import with_actions
from gfucb.core.random import random_stream
from gfucb.core.records import BanditRound
from gfucb.environments import LabelledImages
from gfucb.environments.wheel_bandit import arm_interactions
from gfucb.models.representations import flat_inputs

BundledTable = Literal["iris", "wine", "breast_cancer"]


class Classes:
    """Rows of a table, drawn with replacement, whose class is the best of as many actions.

    The mean reward is 1 for the class of the row and 0 for all others. The agent receives the
    reward of its action only (Bietti et al. 2018 compare agents on hundreds of such problems).

    Args:
        contexts: [sample, column].
        labels: the class of each sample, from 0, [sample].
        noise_scale: standard deviation of the noise.
        seed: rounds derive from it.
    """

    num_tasks = 1
    value_range = (0.0, 1.0)

    def __init__(
        self, contexts: Tensor, labels: Tensor, *, noise_scale: float = 0.1, seed: int = 0
    ) -> None:
        self.contexts, self.labels = contexts, labels
        self.discrete_actions = int(labels.max()) + 1
        self.noise_scale, self.seed = noise_scale, seed

    def round(self, round_index: int) -> BanditRound:
        """Round `round_index`, from 1: candidates [1, class, column + class]."""
        generator = random_stream(self.seed, "round", round_index)
        index = torch.randint(len(self.labels), (1,), generator=generator)
        noise = torch.randn(1, generator=generator, dtype=torch.float64)
        is_class = torch.arange(self.discrete_actions) == self.labels[index]
        return BanditRound(
            candidates=with_actions(self.contexts[index], self.discrete_actions),
            mean_rewards=is_class[None].to(torch.float64),
            noise=self.noise_scale * noise,
            true_features=arm_interactions(is_class[None], self.discrete_actions),
        )

    def describe(self) -> Mapping[str, Any]:
        """Facts about the environment for reports."""
        return {"actions": self.discrete_actions, "columns": self.contexts.shape[1]}


class ImageClasses(Classes):
    """Images as columns of the context."""

    def __init__(self, data: LabelledImages, *, noise_scale: float = 0.1, seed: int = 0) -> None:
        super().__init__(flat_inputs(data.images), data.labels, noise_scale=noise_scale, seed=seed)


class TableClasses(Classes):
    """A small table that comes with scikit-learn, with standardised columns."""

    def __init__(self, name: BundledTable, *, noise_scale: float = 0.1, seed: int = 0) -> None:
        from sklearn import datasets

        values, labels = getattr(datasets, f"load_{name}")(return_X_y=True)
        columns = torch.from_numpy(values).to(torch.float64)
        contexts = (columns - columns.mean(0)) / columns.std(0, correction=0)
        super().__init__(contexts, torch.from_numpy(labels), noise_scale=noise_scale, seed=seed)
