"""The loop of a fleet: many runs at once, one row a run and round."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch

from gfucb.agents.fleet import Fleet
from gfucb.contracts import BanditEnvironment, Row


def play_together(
    fleet: Fleet, worlds: Sequence[BanditEnvironment], *, num_rounds: int
) -> Iterator[list[Row]]:
    """Play rounds 1 .. `num_rounds` in every copy's world; yield the rows of all copies.

    The rows are those of `play` with an agent alone, up to rounding.
    """
    totals = [0.0] * len(worlds)
    for round_index in range(1, num_rounds + 1):
        rounds = [world.round(round_index) for world in worlds]
        decision = fleet.decide(torch.stack([round_.candidates for round_ in rounds]))
        actions = decision.actions.cpu()
        rewards = torch.stack([r.rewards(a) for r, a in zip(rounds, actions, strict=True)])
        fleet.observe(decision, rewards)
        rows: list[Row] = []
        for copy, (round_, taken) in enumerate(zip(rounds, actions, strict=True)):
            regret = float(round_.regrets(taken).mean())
            totals[copy] += regret
            rows.append(
                {
                    "round": round_index,
                    "reward": float(rewards[copy].mean()),
                    "regret": regret,
                    "cumulative_regret": totals[copy],
                    **fleet.diagnostics(copy),
                }
            )
        yield rows
