"""Validation of batches: agents that can be stacked, candidates and rewards of all replicas."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from gfucb.bandits.gfucb import GFUCB
from gfucb.core.action_sets import ActionSets
from gfucb.core.errors import InvalidInputError
from gfucb.core.protocols import BatchedActionSelector, BatchedLeastSquares
from gfucb.core.records import BatchedDecision
from gfucb.core.setting_descriptions import INITIAL_WEIGHTS, find_difference
from gfucb.core.validation.arrays import require_in_range, require_real, to_tensor
from gfucb.core.validation.bandits import (
    validate_action_sets,
    validate_offered,
    validate_prediction,
    validate_rewards,
)


def validate_replicas(agents: Sequence[GFUCB]) -> list[GFUCB]:
    """The agents, if they can be stacked: the same settings but for the seed, and no data."""
    if not isinstance(agents, Sequence):
        raise InvalidInputError(f"a batch takes a list of agents, got {type(agents).__name__}")
    replicas = list(agents)
    if not replicas:
        raise InvalidInputError("a batch needs at least one agent, got none")
    for agent in replicas:
        if not isinstance(agent, GFUCB):
            raise InvalidInputError(f"a batch takes GFUCB agents, got {type(agent).__name__}")
    first = replicas[0]
    for agent in replicas[1:]:
        difference = find_difference(_shared_settings(first), _shared_settings(agent))
        if difference is not None:
            name, one, other = difference
            raise InvalidInputError(
                "the agents of a batch must have the same settings but for their seeds; they "
                f"differ in {name}: {one} and {other}"
            )
    batched_fit(first)
    batched_selector(first)
    if any(agent.state() for agent in replicas):
        raise InvalidInputError("the agents of a batch must not have learned anything yet")
    if len({id(agent) for agent in replicas}) < len(replicas):
        raise InvalidInputError("the agents of a batch must be different objects")
    return replicas


def batched_fit(agent: GFUCB) -> BatchedLeastSquares:
    """The fit of an agent, if it can train the networks of many replicas at once."""
    fit = agent.network_learner.fit
    is_network = agent.representation_class.structure == "neural"
    is_bounded = agent.network_learner.penalty.norm_bound is not None
    if not isinstance(fit, BatchedLeastSquares) or not is_network or is_bounded:
        raise InvalidInputError(
            "agents can be batched if their representations are networks, without a norm bound of "
            "the heads, and their fit has the method fit_stack, as VariableProjection has, got "
            f"{type(fit).__name__}"
        )
    if not agent.network_learner.keeping.keeps_all:
        raise InvalidInputError(
            "agents in a batch keep all samples; pass neither forgetting nor max_samples_per_task"
        )
    return fit


def batched_selector(agent: GFUCB) -> BatchedActionSelector:
    """The action selector of an agent, if it can decide for many replicas at once."""
    selector = agent.action_selector
    if not isinstance(selector, BatchedActionSelector):
        raise InvalidInputError(
            "agents can be batched if their action selector has the method select_batched, as "
            f"LastLayer and Greedy have, got {type(selector).__name__}"
        )
    return selector


def _shared_settings(agent: GFUCB) -> dict[str, str]:
    settings = agent.settings() | {
        "num_tasks": str(agent.num_tasks),
        "device": str(agent.network_learner.device),
    }
    del settings["seed"], settings[INITIAL_WEIGHTS]
    return settings


def validate_batch_candidates(
    candidates: Any, available: Any, shape: tuple[int, int], device: torch.device
) -> ActionSets:
    """Action sets with the rows of all replicas in order: [replica * task, action, *input].

    Args:
        candidates: [replica, task, action, *input].
        available: [replica, task, action], or None.
        shape: the numbers of replicas and of tasks.
        device: where the action sets are put.
    """
    given = to_tensor(candidates, "candidates")
    if tuple(given.shape[:2]) != shape or given.ndim < 3:
        raise InvalidInputError(
            "candidates must have the shape [replica, task, action, *input] with "
            f"[{shape[0]}, {shape[1]}, ...], got {list(given.shape)}"
        )
    mask = None
    if available is not None:
        mask = to_tensor(available, "available")
        if tuple(mask.shape) != tuple(given.shape[:3]):
            raise InvalidInputError(
                "available must have the shape [replica, task, action] = "
                f"{list(given.shape[:3])}, got {list(mask.shape)}"
            )
        mask = mask.flatten(0, 1)
    rows = shape[0] * shape[1]
    return validate_action_sets(given.flatten(0, 1), None, mask, num_tasks=rows, device=device)


def validate_batch_feedback(decision: Any, rewards: Any, shape: tuple[int, int]) -> Tensor:
    """Check a decision and its rewards, all of it; return the rewards [replica, task]."""
    if not isinstance(decision, BatchedDecision):
        raise InvalidInputError(
            f"observe takes what decide returned, a BatchedDecision, got {type(decision).__name__}"
        )
    for name in ("actions", "optimistic_values", "inputs", "features"):
        part = getattr(decision, name)
        if not isinstance(part, Tensor) or tuple(part.shape[:2]) != shape:
            raise InvalidInputError(
                f"the {name} of the decision must have the shape [replica, task, ...] = "
                f"{list(shape)}; pass what decide returned"
            )
        require_real(part, f"the {name} of the decision")
        require_in_range(part, f"the {name} of the decision")
    validate_prediction(decision.prediction, shape)
    if decision.offered is not None:
        validate_offered(decision.offered, shape[0] * shape[1], decision.inputs.flatten(0, 1))
    given = to_tensor(rewards, "rewards")
    if tuple(given.shape) != shape:
        raise InvalidInputError(
            f"rewards must have the shape [replica, task] = {list(shape)}, got {list(given.shape)}"
        )
    return validate_rewards(given.flatten(), given.numel()).view(shape)
