"""The loop of a fleet: many runs at once, one row a run and round."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from gfucb.agents.baselines import EpsilonGreedy
from gfucb.agents.fleet import Fleet
from gfucb.contracts import BanditEnvironment, Row
from gfucb.errors import InvalidInputError


def play_together(
    fleet: Fleet,
    worlds: Sequence[BanditEnvironment],
    *,
    num_rounds: int,
    explorers: Sequence[EpsilonGreedy] = (),
) -> Iterator[list[Row]]:
    """Play rounds 1 .. `num_rounds` in every world; yield the rows of all worlds.

    The rows are those of `play` with an agent alone, up to rounding. Where there are more copies
    than worlds, each world's tasks are dealt out, in their order, to as many copies: the rows
    are then those of `Grouped`. With `explorers`, one a copy, actions are now and then drawn by
    lot as they would.
    """
    groups = _groups(fleet, worlds)
    totals = [0.0] * len(worlds)
    for round_index in range(1, num_rounds + 1):
        rounds = [world.round(round_index) for world in worlds]
        candidates = torch.stack([round_.candidates for round_ in rounds])
        by_copy = candidates.view(len(fleet), fleet.num_tasks, *candidates.shape[2:])
        decision = fleet.decide(by_copy, _offered(by_copy, explorers))
        actions = decision.actions.cpu().view(len(worlds), -1)
        rewards = torch.stack([r.rewards(a) for r, a in zip(rounds, actions, strict=True)])
        fleet.observe(decision, rewards.view(len(fleet), fleet.num_tasks))
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
                    **_told(fleet, range(index * groups, (index + 1) * groups)),
                }
            )
        yield rows


def _groups(fleet: Fleet, worlds: Sequence[BanditEnvironment]) -> int:
    """How many copies share a world."""
    tasks = {world.num_tasks for world in worlds}
    if len(tasks) != 1 or len(fleet) * fleet.num_tasks != len(worlds) * max(tasks):
        raise InvalidInputError(
            f"{len(fleet)} copies of {fleet.num_tasks} tasks cannot play {len(worlds)} worlds of "
            f"{sorted(tasks)} tasks: all worlds need as many tasks, one copy for each"
        )
    return len(fleet) // len(worlds)


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


def _told(fleet: Fleet, copies: range) -> Row:
    """Means over copies of what they tell; of one copy, what it tells."""
    told = [fleet.diagnostics(copy) for copy in copies]
    if len(told) == 1:
        return told[0]
    return {name: sum(float(row[name]) for row in told) / len(told) for name in told[0]}
