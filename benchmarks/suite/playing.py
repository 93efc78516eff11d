"""The loop of the suite: rounds, logs, catalogues without repetition, stuck tasks, latencies."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor

from gfucb.core.nested import below, with_prefix
from gfucb.core.records import BanditRound, Decision, Row
from gfucb.runs.text_files import write_json
from gfucb.runs.work import WorkState, number

# A task is stuck if it has not chosen a best action in this many rounds.
STUCK_AFTER = 50
TIMING_FILE = "timing.json"
Result = TypeVar("Result")


@dataclass
class Latencies:
    """The longest call of each method in CPU seconds, which other processes do not change."""

    worst: dict[str, float] = field(
        default_factory=lambda: {"decide": 0.0, "observe": 0.0, "learn": 0.0}
    )

    def timed(self, method: str, call: Callable[[], Result]) -> Result:
        """The result of a call, whose time is noted."""
        start = time.process_time()
        result = call()
        self.worst[method] = max(self.worst[method], time.process_time() - start)
        return result


class ProblemRun:
    """An agent in an environment of the suite: a `Work`, which can be saved and continued.

    Beyond `BanditEnvironment` an environment may have

    * `log()`: tasks, inputs and rewards that `agent.learn` receives in one call before round 1;
      agents without this method start without the log;
    * `tasks`: the tasks of the rows of a round, if these are not all tasks;
    * `round_after(index, chosen)` and `num_items`: rounds that depend on the items chosen before,
      [task, item];
    * `evaluated_tasks`: the rows whose regret counts.

    Args:
        agent: the agent.
        environment: the environment.
        num_rounds: T.
        uses_true_features: whether the agent receives the true features, for oracles.
        reports_stuck: whether rows have the share of tasks stuck on a wrong action.
        directory: where the latencies are written at the end; None for nowhere.
    """

    def __init__(
        self,
        agent: Any,
        environment: Any,
        num_rounds: int,
        *,
        uses_true_features: bool = False,
        reports_stuck: bool = False,
        directory: Path | None = None,
    ) -> None:
        self.agent, self.environment, self.num_rounds = agent, environment, num_rounds
        self.uses_true_features, self.reports_stuck = uses_true_features, reports_stuck
        self.directory = directory
        self.rounds_done, self.cumulative_regret = 0, 0.0
        self.latencies = Latencies()
        tasks = environment.num_tasks
        self.since_best = torch.zeros(tasks, dtype=torch.int64)
        items = environment.num_items if hasattr(environment, "round_after") else 0
        self.chosen = torch.zeros(tasks, items, dtype=torch.bool)

    def rows(self) -> Iterator[Row]:
        """Play the remaining rounds."""
        if self.rounds_done == 0 and hasattr(self.environment, "log"):
            self._learn_log()
        for index in range(self.rounds_done + 1, self.num_rounds + 1):
            row = self._play(index)
            self.rounds_done = index
            yield row
        if self.directory is not None:
            write_json(self.directory / TIMING_FILE, self.latencies.worst)

    def _learn_log(self) -> None:
        if hasattr(self.agent, "learn"):
            log = self.environment.log()
            self.latencies.timed("learn", lambda: self.agent.learn(*log))

    def _play(self, index: int) -> Row:
        round_ = self._round(index)
        shown = round_.shown(uses_true_features=self.uses_true_features)
        tasks = getattr(self.environment, "tasks", None)
        decision: Decision = self.latencies.timed("decide", lambda: self.agent.decide(shown, tasks))
        actions = decision.actions.cpu()
        rewards = round_.rewards(actions)
        self.latencies.timed("observe", lambda: self.agent.observe(decision, rewards))
        regrets = round_.regrets(actions)
        self._note(round_, actions, regrets)
        evaluated = getattr(self.environment, "evaluated_tasks", slice(None))
        regret = float(regrets[evaluated].mean())
        self.cumulative_regret += regret
        stuck = float((self.since_best >= STUCK_AFTER).double().mean())
        return {
            "round": index,
            "reward": float(rewards.mean()),
            "regret": regret,
            "cumulative_regret": self.cumulative_regret,
            **({"stuck": stuck} if self.reports_stuck else {}),
        }

    def _round(self, index: int) -> BanditRound:
        if self.chosen.shape[1]:
            found: BanditRound = self.environment.round_after(index, self.chosen)
            return found
        plain: BanditRound = self.environment.round(index)
        return plain

    def _note(self, round_: BanditRound, actions: Tensor, regrets: Tensor) -> None:
        rows = torch.arange(len(actions))
        tasks = getattr(self.environment, "tasks", rows)
        self.since_best[tasks] = torch.where(regrets > 0, self.since_best[tasks] + 1, 0)
        if self.chosen.shape[1]:
            self.chosen[tasks, round_.candidates[rows, actions]] = True

    def state(self) -> WorkState:
        """The agent, the rounds done, the regret, and what rounds and rows depend on."""
        tensors = with_prefix("agent/", self.agent.state())
        tensors |= {"since_best": self.since_best.clone(), "chosen": self.chosen.clone()}
        facts = {"round": str(self.rounds_done), "regret": repr(self.cumulative_regret)}
        return WorkState(
            tensors, facts | {name: repr(value) for name, value in self.latencies.worst.items()}
        )

    def load_state(self, state: WorkState) -> None:
        """Continue after the rounds of `state`."""
        self.agent.load_state(below("agent/", state.tensors))
        self.since_best = state.tensors["since_best"].clone()
        self.chosen = state.tensors["chosen"].clone()
        self.rounds_done = number(state.facts, "round", int)
        self.cumulative_regret = number(state.facts, "regret", float)
        for name in self.latencies.worst:
            self.latencies.worst[name] = number(state.facts, name, float)


def play_problem(agent: Any, environment: Any, num_rounds: int, **options: Any) -> Iterator[Row]:
    """Rows of an agent in an environment of the suite; options are those of `ProblemRun`."""
    return ProblemRun(agent, environment, num_rounds, **options).rows()
