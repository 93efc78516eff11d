"""Alternating least squares for catalogues: users are tasks, items have numbers."""

from __future__ import annotations

from contextlib import AbstractContextManager

import torch
from torch import Tensor

from gfucb.bandits.linear_features import item_numbers
from gfucb.core.memory import memory_for
from gfucb.core.random import random_stream
from gfucb.core.records import Decision, Row
from gfucb.core.validation.arrays import ArrayLike
from gfucb.core.validation.bandits import (
    validate_action_sets,
    validate_feedback,
    validate_samples,
)
from gfucb.core.validation.settings import (
    validate_count,
    validate_not_negative,
    validate_number,
    validate_ridge,
    validate_seed,
)
from gfucb.core.validation.states import (
    validate_state,
    validate_state_names,
    validate_state_tensor,
)

NAMES = ("tasks", "items", "rewards", "item_factors", "item_biases", "counters")


class MatrixFactorisation:
    """Rewards as m + b_task + c_item + <u_task, v_item>, fitted by alternating least squares.

    m is the mean reward. Biases b and c have the penalty `bias_ridge`, factors u and v the penalty
    `ridge`. The items are refitted when the data has grown by `refit_growth`; bias and factor of a
    task follow every reward in closed form. With z = (v, 1) the bonus is

        alpha sqrt(z^T A_task^-1 z + 1 / (n_item + bias_ridge)),  A_task = penalties + sum z z^T.

    Args:
        num_tasks: M, the number of users.
        num_items: items are numbered 0 .. num_items - 1.
        rank: the length of factors.
        ridge: penalty on factors.
        bias_ridge: penalty on biases.
        alpha: multiplier of the bonus.
        sweeps: alternations of a refit, each from the factors of the last one.
        refit_growth: growth of the data until the next refit.
        seed: the initial factors derive from it.
    """

    def __init__(
        self,
        num_tasks: int,
        num_items: int,
        *,
        rank: int = 5,
        ridge: float = 1.0,
        bias_ridge: float = 5.0,
        alpha: float = 0.0,
        sweeps: int = 5,
        refit_growth: float = 1.1,
        seed: int = 0,
    ) -> None:
        self.num_tasks = validate_count(num_tasks, "num_tasks")
        self.num_items = validate_count(num_items, "num_items")
        self.rank = validate_count(rank, "rank")
        self.ridge = validate_ridge(ridge)
        self.bias_ridge = validate_ridge(bias_ridge, "bias_ridge")
        self.alpha = validate_not_negative(alpha, "alpha")
        self.sweeps = validate_count(sweeps, "sweeps")
        self.refit_growth = validate_number(refit_growth, "refit_growth", at_least=1.0)
        self.seed = validate_seed(seed)
        self._clear()

    def __repr__(self) -> str:
        return f"MatrixFactorisation(num_tasks={self.num_tasks}, samples={len(self.rewards)})"

    def _clear(self) -> None:
        generator = random_stream(self.seed, "item factors")
        shape = (self.num_items, self.rank)
        with self._memory():
            self.item_factors = 0.1 * torch.randn(shape, generator=generator, dtype=torch.float64)
            self.item_biases = torch.zeros(self.num_items, dtype=torch.float64)
        self.tasks = torch.zeros(0, dtype=torch.int64)
        self.items = torch.zeros(0, dtype=torch.int64)
        self.rewards = torch.zeros(0, dtype=torch.float64)
        self.num_fits, self.samples_at_fit = 0, 0
        self._posterior: tuple[Tensor, Tensor] | None = None
        self._bonus: float | None = None

    def _memory(self) -> AbstractContextManager[None]:
        return memory_for(
            f"Each of {self.num_tasks} tasks needs a matrix of rank {self.rank}, and each of "
            f"{self.num_items} items so many numbers: build the agent for those that exist"
        )

    def decide(
        self,
        candidates: ArrayLike,
        tasks: ArrayLike | None = None,
        available: ArrayLike | None = None,
    ) -> Decision:
        """Choose among item numbers [row, action]; see `GFUCB.decide` for the arguments."""
        action_sets = validate_action_sets(
            candidates, tasks, available, num_tasks=self.num_tasks, device="cpu"
        )
        items = item_numbers(action_sets.candidates.flatten(0, 1), self.num_items)
        items = items.view(action_sets.available.shape)
        weights, inverses = self._task_posterior()
        factors = _with_constant(self.item_factors)[items]
        means = self._mean() + self.item_biases[items]
        means = means + (factors * weights[action_sets.tasks][:, None]).sum(-1)
        counts = torch.bincount(self.items, minlength=self.num_items)
        projected = factors @ inverses[action_sets.tasks]
        variances = (projected * factors).sum(-1) + 1 / (counts[items] + self.bias_ridge)
        decision, self._bonus = action_sets.upper_bound_decision(means, variances, self.alpha)
        return decision

    def observe(self, decision: Decision, rewards: ArrayLike) -> None:
        """Learn from rewards [row] of a decision, which may be late and partial."""
        self._add(*validate_feedback(decision, rewards, num_tasks=self.num_tasks))

    def learn(self, tasks: ArrayLike, inputs: ArrayLike, rewards: ArrayLike) -> None:
        """Learn from samples that are no decision of this agent; see `GFUCB.learn`."""
        self._add(*validate_samples(tasks, inputs, rewards, num_tasks=self.num_tasks))

    def _add(self, tasks: Tensor, inputs: Tensor, rewards: Tensor) -> None:
        items = item_numbers(inputs, self.num_items)
        self.tasks = torch.cat([self.tasks, tasks])
        self.items = torch.cat([self.items, items])
        self.rewards = torch.cat([self.rewards, rewards])
        self._posterior = None
        if len(self.rewards) >= max(1.0, self.refit_growth * self.samples_at_fit):
            self._refit()

    def _refit(self) -> None:
        for _ in range(self.sweeps):
            weights, _ = self._task_posterior()
            factors, biases = weights[:, :-1], weights[:, -1]
            targets = self.rewards - self._mean() - biases[self.tasks]
            solved, _ = self._ridge(factors[self.tasks], targets, self.items, self.num_items)
            self.item_factors, self.item_biases = solved[:, :-1].contiguous(), solved[:, -1].clone()
            self._posterior = None
        self.num_fits += 1
        self.samples_at_fit = len(self.rewards)

    def _mean(self) -> float:
        return float(self.rewards.mean()) if len(self.rewards) else 0.0

    def _task_posterior(self) -> tuple[Tensor, Tensor]:
        """Factors and biases [task, rank + 1] of tasks, and the inverses of their Grams."""
        if self._posterior is None:
            residuals = self.rewards - self._mean() - self.item_biases[self.items]
            features = self.item_factors[self.items]
            self._posterior = self._ridge(features, residuals, self.tasks, self.num_tasks)
        return self._posterior

    def _ridge(
        self, factors: Tensor, targets: Tensor, groups: Tensor, num_groups: int
    ) -> tuple[Tensor, Tensor]:
        """Ridge regressions on (factor, 1): weights [group, rank + 1] and the inverse Grams."""
        with self._memory():
            return self._solved(factors, targets, groups, num_groups)

    def _solved(
        self, factors: Tensor, targets: Tensor, groups: Tensor, num_groups: int
    ) -> tuple[Tensor, Tensor]:
        features, width = _with_constant(factors), self.rank + 1
        outer = (features[:, :, None] * features[:, None, :]).flatten(1)
        grams = features.new_zeros(num_groups, width * width).index_add_(0, groups, outer)
        moments = features.new_zeros(num_groups, width)
        moments.index_add_(0, groups, features * targets[:, None])
        penalties = torch.tensor([self.ridge] * self.rank + [self.bias_ridge], dtype=torch.float64)
        grams = grams.unflatten(1, (width, width)) + torch.diag(penalties)
        inverses = torch.cholesky_inverse(torch.linalg.cholesky(grams))
        return (inverses @ moments[:, :, None]).squeeze(2), inverses

    def diagnostics(self) -> Row:
        """The number of refits, and the mean bonus of the last decision."""
        bonus = {} if self._bonus is None else {"bonus": self._bonus}
        return {"fits": self.num_fits, **bonus}

    def state(self) -> dict[str, Tensor]:
        """The data and the factors of items; empty before the first reward."""
        if not len(self.rewards):
            return {}
        counters = torch.tensor([self.num_fits, self.samples_at_fit])
        values = (self.tasks, self.items, self.rewards, self.item_factors, self.item_biases)
        return dict(zip(NAMES, [*(value.clone() for value in values), counters], strict=True))

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Continue from the state of an agent built with the same arguments."""
        validate_state(state)
        if not state:
            self._clear()
            return
        validate_state_names(state, NAMES)
        count = (len(validate_state_tensor(state, "rewards", (None,), dtype=torch.float64)),)
        for name, limit in {"tasks": self.num_tasks, "items": self.num_items}.items():
            validate_state_tensor(state, name, count, dtype=torch.int64, low=0, high=limit - 1)
        shape = (self.num_items, self.rank)
        validate_state_tensor(state, "item_factors", shape, dtype=torch.float64)
        validate_state_tensor(state, "item_biases", shape[:1], dtype=torch.float64)
        counters = validate_state_tensor(state, "counters", (2,), dtype=torch.int64, low=0)
        self._clear()
        for name in NAMES[:-1]:
            setattr(self, name, state[name].clone())
        self.num_fits, self.samples_at_fit = counters.tolist()

    def settings(self) -> dict[str, str]:
        """Everything an agent must be built with to continue from this one's state."""
        names = ("num_items", "rank", "ridge", "bias_ridge", "alpha", "sweeps", "refit_growth")
        return {name: str(getattr(self, name)) for name in (*names, "seed")}


def _with_constant(factors: Tensor) -> Tensor:
    """Factors [n, rank] and a constant: [n, rank + 1]."""
    return torch.cat([factors, factors.new_ones(len(factors), 1)], 1)
