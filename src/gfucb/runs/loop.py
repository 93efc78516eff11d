"""The loop: agents play rounds or episodes, and every one gives a row.

A row has the columns `round`, `reward`, `regret` and `cumulative_regret`, all means over the tasks,
and the diagnostics of the agent. In episodic environments a round is an episode. Regret never
reaches the agent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeGuard, cast, overload

import torch
from torch import Tensor

from gfucb.bandits.baselines import EpsilonGreedy
from gfucb.bandits.batched import BatchedAgents
from gfucb.core.errors import InvalidInputError
from gfucb.core.protocols import (
    BanditAgent,
    BanditEnvironment,
    EpisodicAgent,
    EpisodicEnvironment,
)
from gfucb.core.records import BanditRound, Row
from gfucb.core.validation.rounds import validate_round
from gfucb.environments import RichObservationMDPs, TabularMDPs
from gfucb.runs.episode_loop import play_episode as play_episode
from gfucb.runs.episode_loop import play_with_gaps
from gfucb.runs.policy_evaluator import PolicyEvaluator, with_true_features

AnyAgent = BanditAgent | EpisodicAgent
AnyEnvironment = BanditEnvironment | EpisodicEnvironment


@overload
def play(
    agent: BanditAgent,
    environment: BanditEnvironment,
    *,
    num_rounds: int,
    uses_true_features: bool = ...,
    rounds_done: int = ...,
    cumulative_regret: float = ...,
) -> Iterator[Row]: ...


@overload
def play(
    agent: EpisodicAgent,
    environment: EpisodicEnvironment,
    *,
    num_rounds: int,
    uses_true_features: bool = ...,
    rounds_done: int = ...,
    cumulative_regret: float = ...,
) -> Iterator[Row]: ...


def play(
    agent: AnyAgent,
    environment: AnyEnvironment,
    *,
    num_rounds: int,
    uses_true_features: bool = False,
    rounds_done: int = 0,
    cumulative_regret: float = 0.0,
) -> Iterator[Row]:
    """Play rounds `rounds_done` + 1 .. `num_rounds` and yield a row after each.

    An agent of the bandits needs a `BanditEnvironment`, an episodic agent an
    `EpisodicEnvironment`. In finite MDPs the regret is exact, see `PolicyEvaluator`; an episodic
    environment without optimal values gives rows without regret. With `uses_true_features` the
    agent receives the true features instead of the inputs.
    """
    play_round = _round_player(agent, environment, uses_true_features)
    for round_index in range(rounds_done + 1, num_rounds + 1):
        outcome = play_round(round_index)
        if "regret" in outcome:
            cumulative_regret += float(outcome["regret"])
            outcome = {**outcome, "cumulative_regret": cumulative_regret}
        yield {"round": round_index, **outcome, **agent.diagnostics()}


def play_batched(
    batch: BatchedAgents,
    environments: Sequence[BanditEnvironment],
    *,
    num_rounds: int,
    explorers: Sequence[EpsilonGreedy] = (),
) -> Iterator[list[Row]]:
    """Play rounds 1 .. `num_rounds` in all environments at once; yield a row for each.

    The rows equal those of `play` with one agent for each environment, up to rounding. With more
    replicas than environments, the tasks of an environment are divided, in their order, among
    equally many replicas; the rows then equal those of `Grouped`. With `explorers`, one for each
    replica, some actions are drawn at random as the explorers would.
    """
    replicas = _replicas_per_environment(batch, environments)
    totals = [0.0] * len(environments)
    for round_index in range(1, num_rounds + 1):
        rounds = [environment.round(round_index) for environment in environments]
        candidates = torch.stack([round_.candidates for round_ in rounds])
        by_replica = candidates.view(len(batch), batch.num_tasks, *candidates.shape[2:])
        decision = batch.decide(by_replica, _available(by_replica, explorers))
        actions = decision.actions.cpu().view(len(environments), -1)
        rewards = torch.stack([r.rewards(a) for r, a in zip(rounds, actions, strict=True)])
        batch.observe(decision, rewards.view(len(batch), batch.num_tasks))
        for explorer in explorers:
            explorer.num_updates += 1
        rows: list[Row] = []
        for index, round_ in enumerate(rounds):
            outcome = _bandit_outcome(round_, actions[index], rewards[index])
            totals[index] += outcome["regret"]
            own = range(index * replicas, (index + 1) * replicas)
            rows.append(
                {
                    "round": round_index,
                    **outcome,
                    "cumulative_regret": totals[index],
                    **_mean_diagnostics(batch, own),
                }
            )
        yield rows


def _round_player(
    agent: AnyAgent, environment: AnyEnvironment, uses_true_features: bool
) -> Callable[[int], Row]:
    """A function that plays one round, and returns its reward, regret and other columns."""
    if _is_episodic(agent) and _has_episodes(environment):
        _require_same_horizon(agent, environment)
        shown = with_true_features(environment) if uses_true_features else environment
        if isinstance(shown, TabularMDPs):
            return PolicyEvaluator(agent, shown).play
        if isinstance(shown, RichObservationMDPs):
            return lambda index: play_with_gaps(agent, shown, index)
        return lambda index: _play_unevaluated_episode(agent, shown, index)
    if _has_rounds(environment) and not _is_episodic(agent):
        bandit = cast(BanditAgent, agent)
        return lambda index: _play_bandit_round(
            bandit,
            validate_round(environment.round(index), environment.num_tasks),
            uses_true_features,
        )
    if not _has_rounds(environment) and not _has_episodes(environment):
        raise InvalidInputError(
            "an environment has a method round or episode, see gfucb.core.protocols; got "
            f"{type(environment).__name__}{gymnasium_cure(environment)}"
        )
    raise InvalidInputError(
        f"{type(agent).__name__} cannot play in {type(environment).__name__}: one is for "
        "bandits, the other for episodic MDPs"
    )


def gymnasium_cure(environment: object) -> str:
    """What to do with an environment of Gymnasium, for messages."""
    if hasattr(environment, "step") and hasattr(environment, "action_space"):
        return "; pass environments of Gymnasium as GymnasiumMDPs([...], horizon)"
    return ""


def _require_same_horizon(agent: EpisodicAgent, environment: EpisodicEnvironment) -> None:
    """Refuse an agent that plans fewer stages than an episode has, before it learns anything."""
    planned = getattr(agent, "horizon", None)
    if isinstance(planned, int) and planned < environment.horizon:
        raise InvalidInputError(
            f"episodes have up to {environment.horizon} stages, but the agent plans {planned}; "
            f"build it with horizon={environment.horizon}"
        )


def _is_episodic(agent: AnyAgent) -> TypeGuard[EpisodicAgent]:
    return hasattr(agent, "plan")


def _has_episodes(environment: AnyEnvironment) -> TypeGuard[EpisodicEnvironment]:
    return hasattr(environment, "episode")


def _has_rounds(environment: AnyEnvironment) -> TypeGuard[BanditEnvironment]:
    return hasattr(environment, "round")


def _play_bandit_round(agent: BanditAgent, round_: BanditRound, uses_true_features: bool) -> Row:
    decision = agent.decide(round_.shown(uses_true_features=uses_true_features))
    rewards = round_.rewards(decision.actions)
    agent.observe(decision, rewards)
    return _bandit_outcome(round_, decision.actions, rewards)


def _bandit_outcome(round_: BanditRound, actions: Tensor, rewards: Tensor) -> dict[str, float]:
    return {
        "reward": float(rewards.mean()),
        "regret": float(round_.regrets(actions).mean()),
    }


def _play_unevaluated_episode(
    agent: EpisodicAgent, environment: EpisodicEnvironment, index: int
) -> Row:
    returns = play_episode(
        agent, environment.episode(index), environment.horizon, environment.num_tasks
    )
    return {"reward": float(returns.mean())}


def _replicas_per_environment(
    batch: BatchedAgents, environments: Sequence[BanditEnvironment]
) -> int:
    tasks = {environment.num_tasks for environment in environments}
    if len(tasks) != 1 or len(batch) * batch.num_tasks != len(environments) * max(tasks):
        raise InvalidInputError(
            f"{len(batch)} replicas of {batch.num_tasks} tasks cannot play {len(environments)} "
            f"environments of {sorted(tasks)} tasks: all environments need the same number of "
            "tasks, and every task needs one replica"
        )
    return len(batch) // len(environments)


def _available(candidates: Tensor, explorers: Sequence[EpsilonGreedy]) -> Tensor | None:
    """The actions that the explorers leave available, [replica, task, action]."""
    if not explorers:
        return None
    everything = torch.ones(candidates.shape[1:3], dtype=torch.bool)
    return torch.stack([explorer.restrict(everything) for explorer in explorers])


def _mean_diagnostics(batch: BatchedAgents, replicas: range) -> Row:
    """Means over the replicas of an environment; of a single one, its own values and types."""
    rows = [batch.diagnostics(replica) for replica in replicas]
    if len(rows) == 1:
        return rows[0]
    return {name: sum(float(row[name]) for row in rows) / len(rows) for name in rows[0]}
