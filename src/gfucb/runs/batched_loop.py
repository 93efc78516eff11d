"""The loop of a batched: many runs at once, one row a run and round."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from gfucb.bandits.baselines import EpsilonGreedy
from gfucb.bandits.batched import BatchedAgents
from gfucb.core.errors import InvalidInputError
from gfucb.core.protocols import BanditEnvironment
from gfucb.core.records import Row


def run_batched(
    batched: BatchedAgents,
    environments: Sequence[BanditEnvironment],
    *,
    num_rounds: int,
    explorers: Sequence[EpsilonGreedy] = (),
) -> Iterator[list[Row]]:
    """Play rounds 1 .. `num_rounds` in every environment; yield the rows of all environments.

    The rows are those of `play` with an agent alone, up to rounding. Where there are more copies
    than environments, each environment's tasks are dealt out, in their order, to as many copies: the rows
    are then those of `Grouped`. With `explorers`, one a copy, actions are now and then drawn by
    lot as they would.
    """
    groups = _groups(batched, environments)
    totals = [0.0] * len(environments)
    for round_index in range(1, num_rounds + 1):
        rounds = [environment.round(round_index) for environment in environments]
        candidates = torch.stack([round_.candidates for round_ in rounds])
        by_copy = candidates.view(len(batched), batched.num_tasks, *candidates.shape[2:])
        decision = batched.decide(by_copy, _offered(by_copy, explorers))
        actions = decision.actions.cpu().view(len(environments), -1)
        rewards = torch.stack([r.rewards(a) for r, a in zip(rounds, actions, strict=True)])
        batched.observe(decision, rewards.view(len(batched), batched.num_tasks))
        rows: list[Row] = []
        for index, (round_, taken) in enumerate(zip(rounds, actions, strict=True)):
            regret = float(round_.regrets(taken).mean())
            totals[index] += regret
            rows.append(
                {
                    "round": round_index,
                    "reward": float(rewards[index].mean()),
                    "regret": regret,
                    "cumulative_regret": totals[index],
                    **_told(batched, range(index * groups, (index + 1) * groups)),
                }
            )
        yield rows


def _groups(batched: BatchedAgents, environments: Sequence[BanditEnvironment]) -> int:
    """How many copies share a environment."""
    tasks = {environment.num_tasks for environment in environments}
    if len(tasks) != 1 or len(batched) * batched.num_tasks != len(environments) * max(tasks):
        raise InvalidInputError(
            f"{len(batched)} copies of {batched.num_tasks} tasks cannot play {len(environments)} environments of "
            f"{sorted(tasks)} tasks: all environments need as many tasks, one copy for each"
        )
    return len(batched) // len(environments)


def _offered(candidates: Tensor, explorers: Sequence[EpsilonGreedy]) -> Tensor | None:
    """What explorers leave to choose from, [copy, task, action]; None without explorers."""
    if not explorers:
        return None
    everything = torch.ones(candidates.shape[1:3], dtype=torch.bool)
    offered = []
    for explorer in explorers:
        offered.append(explorer.offered(everything))
        explorer.num_decisions += 1
    return torch.stack(offered)


def _told(batched: BatchedAgents, copies: range) -> Row:
    """Means over copies of what they tell; of one copy, what it tells."""
    told = [batched.diagnostics(copy) for copy in copies]
    if len(told) == 1:
        return told[0]
    return {name: sum(float(row[name]) for row in told) / len(told) for name in told[0]}
