"""Validation of the rounds of an environment, which users write."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from gfucb.core.errors import InvalidInputError
from gfucb.core.records import BanditRound

FIELDS = {
    "candidates": "[task, action, *input]",
    "mean_rewards": "[task, action]",
    "noise": "[task] or [task, action]",
}


def validate_round(found: Any, num_tasks: int) -> BanditRound:
    """Refuse what is no round of `num_tasks` tasks, with the field that is wrong."""
    if not isinstance(found, BanditRound):
        raise InvalidInputError(
            "the method round of an environment must return a gfucb.core.records.BanditRound, got "
            f"{type(found).__name__}"
        )
    for name, shape in FIELDS.items():
        value = getattr(found, name)
        if not isinstance(value, Tensor):
            raise InvalidInputError(
                f"{name} of a round must be a tensor {shape}, got {type(value).__name__}; "
                "torch.as_tensor converts arrays and lists"
            )
    _require_shapes(found, num_tasks)
    for name in ("mean_rewards", "noise"):
        if not bool(getattr(found, name).isfinite().all()):
            raise InvalidInputError(f"{name} must be finite in every round")
    return found


def _require_shapes(found: BanditRound, num_tasks: int) -> None:
    shapes = {name: list(getattr(found, name).shape) for name in FIELDS}
    by_action = shapes["candidates"][:2]
    expected = [num_tasks, *by_action[1:]]
    wrong = {
        "candidates": by_action != expected or len(by_action) < 2,
        "mean_rewards": shapes["mean_rewards"] != expected,
        "noise": shapes["noise"] not in ([num_tasks], expected),
    }
    for name, is_wrong in wrong.items():
        if is_wrong:
            sizes = f"{num_tasks} tasks"
            if name != "candidates":
                sizes += f" and the {by_action[1]} actions of the candidates"
            raise InvalidInputError(
                f"{name} of a round must have the shape {FIELDS[name]} with {sizes}, got "
                f"{shapes[name]}"
            )
