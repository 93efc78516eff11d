"""The loop: a generator of rows, one a round."""

from __future__ import annotations

from collections.abc import Iterator

from gfucb.core.protocols import BanditAgent, BanditEnvironment
from gfucb.core.records import Row


def play(
    agent: BanditAgent,
    environment: BanditEnvironment,
    *,
    num_rounds: int,
    reads_truth: bool = False,
    rounds_done: int = 0,
    cumulative_regret: float = 0.0,
) -> Iterator[Row]:
    """Play rounds `rounds_done` + 1 .. `num_rounds` and yield a row after each.

    Rewards and regrets are means over the tasks, so `cumulative_regret` is the regret of one
    task on average. Regret never reaches the agent.
    """
    for round_index in range(rounds_done + 1, num_rounds + 1):
        round_ = environment.round(round_index)
        decision = agent.decide(round_.true_features if reads_truth else round_.candidates)
        rewards = round_.rewards(decision.actions)
        agent.observe(decision, rewards)
        regret = float(round_.regrets(decision.actions).mean())
        cumulative_regret += regret
        yield {
            "round": round_index,
            "reward": float(rewards.mean()),
            "regret": regret,
            "cumulative_regret": cumulative_regret,
            **agent.diagnostics(),
        }
