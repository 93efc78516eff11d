"""Problems of the benchmark suite as files of arrays, which need no package but numpy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from gfucb.core.random import random_stream
from gfucb.environments import ImageBandit

from ..suite.families import FAMILIES

Arrays = dict[str, Any]


@dataclass(frozen=True)
class ProblemSpec:
    """A problem of the comparison.

    Attributes:
        name: in commands, files and tables.
        family: the family of the suite.
        num_rounds: T; shorter than in the suite where a peer is slow.
        title: what the table calls it.
        arrays: from (environment, T) to the arrays that `players/problem.py` reads.
    """

    name: str
    family: str
    num_rounds: int
    title: str
    arrays: Callable[[Any, int], Arrays]


def digit_arrays(environment: ImageBandit, num_rounds: int) -> Arrays:
    """Images once, with pixels from 0 to 1, and which of them each task is offered."""
    rounds = [environment.round(index) for index in range(1, num_rounds + 1)]
    shown = torch.stack([round_.candidates for round_ in rounds]).numpy()
    flat = shown.reshape(-1, shown.shape[-2] * shown.shape[-1])
    inputs, numbers = np.unique(flat, axis=0, return_inverse=True)
    return _common(rounds, environment) | {
        "kind": "features",
        "input_shape": list(shown.shape[-2:]),
        "inputs": inputs / 255.0,
        "candidates": numbers.reshape(shown.shape[:3]).astype(np.int32),
    }


def arm_arrays(environment: Any, num_rounds: int) -> Arrays:
    """Contexts; the one-hot arm is left out."""
    rounds = [environment.round(index) for index in range(1, num_rounds + 1)]
    num_arms = environment.discrete_actions
    contexts = torch.stack([round_.candidates[:, 0, :-num_arms] for round_ in rounds])
    return _common(rounds, environment) | {
        "kind": "arms",
        "input_shape": [contexts.shape[2]],
        "contexts": contexts.numpy(),
    }


def joke_arrays(environment: Any, num_rounds: int) -> Arrays:
    """The order of jokes in every round; offered are the first that the user has not chosen."""
    orders = [
        torch.rand(
            environment.ratings.shape,
            generator=random_stream(environment.seed, "round", index),
            dtype=torch.float64,
        ).argsort(1)
        for index in range(1, num_rounds + 1)
    ]
    shape = (num_rounds, environment.num_tasks)
    return {
        "kind": "ids",
        "input_shape": [environment.num_items],
        "num_actions": environment.num_offered,
        "value_range": environment.value_range,
        "orders": torch.stack(orders).numpy().astype(np.uint8),
        "ratings": environment.ratings.numpy(),
        "noise": np.zeros(shape),
    }


def _common(rounds: list[Any], environment: Any) -> Arrays:
    means = torch.stack([round_.mean_rewards for round_ in rounds]).to(torch.float64)
    noise = torch.stack([round_.noise for round_ in rounds]).to(torch.float64)
    return {
        "means": means.numpy(),
        "noise": noise.numpy(),
        "num_actions": means.shape[2],
        "value_range": getattr(environment, "value_range", (0.0, 1.0)),
    }


def _digits(num_tasks: int, num_rounds: int) -> ProblemSpec:
    title = f"digits, {num_tasks} tasks"
    return ProblemSpec(
        f"digits-{num_tasks}", f"digits-{num_tasks}", num_rounds, title, digit_arrays
    )


PROBLEMS: Mapping[str, ProblemSpec] = {
    spec.name: spec
    for spec in (
        _digits(10, 100),
        _digits(30, 100),
        _digits(100, 60),
        ProblemSpec("jester", "jester-users-300", 30, "Jester, 300 users", joke_arrays),
        ProblemSpec("stores", "stores", 100, "stores, 50 tasks", arm_arrays),
        ProblemSpec("wheel", "wheel-0.7", 1000, "Wheel, delta 0.7, one task", arm_arrays),
    )
}


def write_problem(spec: ProblemSpec, seed: int, data_dir: str | None, path: Path) -> None:
    """Write the problem of a seed, unless the file exists."""
    if path.exists():
        return
    environment = FAMILIES[spec.family].make(seed, data_dir)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial_path = path.with_suffix(".part.npz")
    np.savez_compressed(partial_path, **spec.arrays(environment, spec.num_rounds))
    partial_path.replace(path)
