"""The check of episodic environments."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from gfucb.checks.assertions import CheckError, is_equal, require, require_function, uniform
from gfucb.core.errors import InvalidInputError
from gfucb.core.protocols import Episode, EpisodicEnvironment
from gfucb.core.records import Outcome

NUM_EPISODES = 4


def check_episodic_environment(
    make_environment: Callable[[int], EpisodicEnvironment], *, depends_on_seed: bool = True
) -> None:
    """Check the properties of `EpisodicEnvironment` on environments built from a seed.

    Episodes are the same at every call and in every order, and depend on the seed. No episode is
    longer than the horizon. The tasks that continue are offered the candidates that the last
    stage returned. Rewards and inputs are finite. Actions that do not exist are refused.

    Args:
        make_environment: builds an environment from a seed.
        depends_on_seed: False for an environment without randomness.
    """
    require_function(make_environment, "from the seed to an environment")
    environment = make_environment(0)
    traces = [_trace(environment, index) for index in range(1, NUM_EPISODES + 1)]
    require(
        is_equal(traces[0], _trace(environment, 1)), "episode 1 is different after other episodes"
    )
    twin = make_environment(0)
    require(
        is_equal(traces[-1], _trace(twin, NUM_EPISODES)),
        "two environments of one seed have different episodes",
    )
    if depends_on_seed:
        other = make_environment(1)
        others = [_trace(other, index) for index in range(1, NUM_EPISODES + 1)]
        pairs = zip(traces, others, strict=True)
        require(
            not all(is_equal(*pair) for pair in pairs),
            "the seed has no effect; for an environment without randomness, pass "
            "depends_on_seed=False",
        )
    _check_refused_actions(environment)
    require(isinstance(dict(environment.describe()), dict), "describe must return a mapping")


def _trace(environment: EpisodicEnvironment, index: int) -> dict[str, Tensor]:
    """Play an episode with fixed actions and record what it returns, stage by stage."""
    episode = environment.episode(index)
    tasks, candidates = episode.offered()
    require(
        tasks.tolist() == list(range(environment.num_tasks)),
        "the first stage must offer candidates to all tasks, in order",
    )
    trace: dict[str, Tensor] = {}
    for stage in range(environment.horizon):
        _check_offer(environment, tasks, candidates)
        draws = uniform(f"actions {index}", stage, environment.num_tasks)
        actions = (draws * environment.num_actions).long()[tasks]
        outcome = episode.play(actions)
        _check_outcome(outcome, candidates)
        trace |= {
            f"{stage} candidates": candidates.clone(),
            f"{stage} rewards": outcome.rewards.clone(),
            f"{stage} ended": outcome.ended.clone(),
        }
        if bool(outcome.ended.all()):
            return trace
        tasks, candidates = _check_continuation(episode, tasks, outcome)
    raise CheckError(f"an episode continues after {environment.horizon} stages, the horizon")


def _check_offer(environment: EpisodicEnvironment, tasks: Tensor, candidates: Tensor) -> None:
    require(
        tuple(candidates.shape[:2]) == (len(tasks), environment.num_actions),
        f"candidates must have the shape [{len(tasks)}, {environment.num_actions}, *input], got "
        f"{list(candidates.shape)}",
    )
    require(bool(candidates.isfinite().all()), "candidates must be finite")


def _check_outcome(outcome: Outcome, candidates: Tensor) -> None:
    rows = len(candidates)
    require(
        tuple(outcome.rewards.shape) == (rows,) and bool(outcome.rewards.isfinite().all()),
        f"rewards must be {rows} finite numbers",
    )
    require(
        tuple(outcome.ended.shape) == (rows,) and outcome.ended.dtype == torch.bool,
        f"ended must be {rows} booleans",
    )
    require(
        outcome.next_candidates.shape == candidates.shape,
        f"next candidates must have the shape {list(candidates.shape)}, got "
        f"{list(outcome.next_candidates.shape)}",
    )


def _check_continuation(episode: Episode, tasks: Tensor, outcome: Outcome) -> tuple[Tensor, Tensor]:
    """Require that the next stage offers what the outcome returned, to the same tasks."""
    continues = ~outcome.ended
    next_tasks, candidates = episode.offered()
    require(
        torch.equal(next_tasks, tasks[continues]),
        "the tasks of the next stage are not those that have not ended",
    )
    require(
        torch.equal(candidates, outcome.next_candidates[continues]),
        "the candidates of the next stage are not those that the outcome returned",
    )
    return next_tasks, candidates


def _check_refused_actions(environment: EpisodicEnvironment) -> None:
    good = torch.zeros(environment.num_tasks, dtype=torch.int64)
    for wrong, what in [
        (good + environment.num_actions, "actions that do not exist"),
        (good - 1, "negative actions"),
        (torch.cat([good, good]), "two actions for each task"),
    ]:
        try:
            environment.episode(1).play(wrong)
        except InvalidInputError:
            continue
        raise CheckError(f"{what} were accepted")
