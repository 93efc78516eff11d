"""An agent that runs for months: named tasks, decision ids, a durable log."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal, NoReturn, Self

from torch import Tensor

from gfucb.bandits import GFUCB, Randomised
from gfucb.core.closing import ClosedAtExit
from gfucb.core.errors import DecisionLogError, InvalidInputError
from gfucb.core.log_protocol import DecisionStore
from gfucb.core.log_records import RowStatus
from gfucb.core.offered_candidates import is_repeated
from gfucb.core.records import Row
from gfucb.core.validation.arrays import ArrayLike, validate_rewards
from gfucb.core.validation.bandits import validate_samples
from gfucb.core.validation.settings import validate_choice, validate_flag
from gfucb.serving.catalogues import Catalogue, offered_rows
from gfucb.serving.decision_records import logged_decision, named_decision
from gfucb.serving.explained_decisions import ExplainedDecisions
from gfucb.serving.log_replay import GROW, LEARN, is_learned
from gfucb.serving.named_decision import NamedDecision
from gfucb.serving.named_tasks import NamedTasks
from gfucb.serving.names import Name, encode_name, name_list
from gfucb.serving.opening import as_log, build_model
from gfucb.serving.rewards import new_rewards, new_states, rows_of
from gfucb.serving.roster import ITEMS, SCHEMA, TASKS
from gfucb.serving.runtime import REFITS, Runtime
from gfucb.serving.table_calls import TableCalls
from gfucb.serving.time_limits import TimeLimit


class Agent(NamedTasks, TableCalls, ExplainedDecisions, ClosedAtExit):
    """A `GFUCB` agent with named tasks, ids for decisions and rewards, and a log of all of it.

    >>> import torch, gfucb
    >>> agent = gfucb.Agent(seed=0)
    >>> decision = agent.decide(torch.linspace(0, 1, 24).reshape(2, 3, 4), tasks=["oslo", "bergen"])
    >>> agent.observe(decision.ids[1], 0.7)  # rewards come in any order, or never
    1
    >>> agent.observe(decision, [0.2, 0.7])  # that of bergen is known: it counts once
    1
    >>> agent
    Agent(2 tasks, 2 rewards, DecisionLog(':memory:'))

    An agent that is built with the path of a log continues where the last one that wrote to it has
    ended, however that ended. A call that returns has stored what it did; a call that raises an
    error has changed nothing. Several threads may use one agent.

    Args:
        model: a new `GFUCB`, or a `Randomised` one, whose draws the log stores with their
            probabilities; by default a `GFUCB` that is built with `options`.
        log: a `DecisionLog`, or the path of one; by default it is in memory.
        tasks: names of tasks to add, if the log does not have them.
        create_tasks: whether a task is added when its name is used for the first time.
        refit: "inline": `observe` fits the model when a fit is due, and runs are reproducible.
            "background": a thread fits a copy; calls never wait for it. "manual": `fit` does.
        reward_limit: after so many seconds without a reward a decision is closed.
        default_reward: the reward that is then learned; None learns nothing.
        options: the arguments of `GFUCB`, without `num_tasks`, and `epsilon`, `holdback` and the
            others of `Randomised`.
    """

    def __init__(
        self,
        model: GFUCB | Randomised | None = None,
        *,
        log: DecisionStore | str | os.PathLike[str] | None = None,
        tasks: Iterable[Name] | None = None,
        create_tasks: bool = True,
        refit: Literal["inline", "manual", "background"] = "inline",
        reward_limit: float | None = None,
        default_reward: float | None = None,
        **options: Any,
    ) -> None:
        validate_choice(refit, "refit", REFITS)
        self.create_tasks = validate_flag(create_tasks, "create_tasks")
        time_limit = TimeLimit(reward_limit, default_reward)
        agent, self._decider = build_model(model, options, _OWN_ARGUMENTS)
        names = name_list([] if tasks is None else tasks)
        self._owns_log = not isinstance(log, DecisionStore)
        self.log = as_log(log)
        try:
            decider = self._decider.description()
            self._runtime = Runtime(self.log, agent, refit, time_limit, decider=decider)
            self._add_tasks(self._runtime.roster.missing_tasks(names))
        except BaseException:
            if self._owns_log:
                self.log.close()
            raise

    @classmethod
    def from_log(cls, log: str | os.PathLike[str], **arguments: Any) -> Self:
        """The agent that wrote a log, built with the same arguments; the file must exist."""
        if not os.path.isfile(log):
            raise DecisionLogError(f"there is no decision log at {log}")
        agent = cls(log=log, **arguments)
        if agent.log.last_event()[0] == 1:  # the session that has just begun
            agent.close()
            raise DecisionLogError(f"{log} is an empty log; no agent has written to it")
        return agent

    def __repr__(self) -> str:
        with self._runtime.reading() as agent:
            tasks, samples = self._runtime.roster.num_active, agent.learner.num_samples
        return f"Agent({tasks} tasks, {samples} rewards, {self.log!r})"

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "an Agent cannot be copied or sent to another process; pass the path of its log, and "
            "close this agent before another one opens it"
        )

    def close(self) -> None:
        """End the worker, write a checkpoint, and close the log if the agent has opened it.

        A fit that is under way is finished first. A closed agent refuses calls; closing twice is
        allowed.
        """
        self._runtime.close(closes_log=self._owns_log)

    # Decisions

    def decide(
        self,
        candidates: ArrayLike,
        tasks: Iterable[Name] | None = None,
        available: ArrayLike | None = None,
    ) -> NamedDecision:
        """Choose an action in every row of candidates [row, action, *input], see `GFUCB.decide`.

        Args:
            candidates: the inputs of all actions.
            tasks: the name of the task of each row; by default all active tasks, in order.
            available: which actions exist, [row, action] of booleans; by default all.
        """
        given = offered_rows(candidates)
        with self._runtime.call() as roster:
            self._runtime.expire_some()
            texts = roster.encode_tasks(tasks, len(given))
            is_shared = is_repeated(given)
            offered = Catalogue(given[0] if is_shared else given, None)
            return self._decide(offered, is_shared, texts, available)

    def decide_from(
        self,
        catalogue: Any,
        tasks: Iterable[Name] | None = None,
        available: ArrayLike | None = None,
    ) -> NamedDecision:
        """Choose for every row from one catalogue that all rows share, see `GFUCB.decide_from`.

        The catalogue is an array [action, *input], a mapping from names of actions to inputs, a
        data frame whose index are names, or a list of names: of items that have no inputs. Where
        actions have names, `available` may list those of each row.
        """
        given = Catalogue.of(catalogue)
        with self._runtime.call() as roster:
            self._runtime.expire_some()
            texts = roster.encode_tasks(tasks, None)
            return self._decide(given, True, texts, given.mask(available))

    def _decide(
        self,
        offered: Catalogue,
        is_shared: bool,
        texts: list[str],
        available: ArrayLike | None,
        schema: str | None = None,
    ) -> NamedDecision:
        roster, session = self._runtime.roster, self._runtime.session
        new = roster.new_tasks(texts, create=self.create_tasks)
        tasks = roster.task_numbers(texts, new)
        numbers = roster.numbers.of(tasks)
        with self._runtime.changing() as change:
            agent = self._runtime.model.agent
            if schema is not None:
                change.add(SCHEMA, {"schema": schema})
            if new:
                change.add(TASKS, {"names": new})
            if max(numbers) >= agent.num_tasks:
                change.add(GROW, {"num_tasks": max(numbers) + 1})
            if offered.inputs is None and (items := roster.new_items(offered.names)):
                change.add(ITEMS, {"names": items})
            inputs = roster.inputs_of(offered)
            decider = self._decider.of(agent, self.log.last_decision(), tasks)
            decide = decider.decide_from if is_shared else decider.decide
            decision = decide(inputs, numbers, available)
            logged = logged_decision(
                self.log,
                session,
                agent,
                decision,
                tasks,
                offered.names,
                inputs,
                is_shared,
                available,
            )
            self.log.add_decision(logged)
        return named_decision(session.token, logged, decision, texts)

    # Rewards

    def observe(self, what: NamedDecision | str | Iterable[str], rewards: ArrayLike) -> int:
        """Learn from rewards of a decision, of an id, or of a list of ids; return how many are new.

        Rewards may come late, in any order, and more than once: a reward that is known already is
        not counted again, also after a restart. Another reward for the same row is refused, and
        so are unknown ids and ids of other agents.
        """
        with self._runtime.call() as roster:
            rows = rows_of(what, self.log, roster)
            values = (validate_rewards(rewards, len(rows)) + 0.0).tolist()  # -0.0 becomes 0.0
            self._runtime.expire_some(rows)
            return self._runtime.change_rows(new_rewards(rows, values, self.log))

    def deactivate(self, what: NamedDecision | str | Iterable[str]) -> int:
        """Mark a decision, or rows of decisions, as never shown; return how many were open.

        Rewards for them are refused, and the time limit does not apply to them.
        """
        with self._runtime.call() as roster:
            rows = rows_of(what, self.log, roster)
            return self._runtime.change_rows(new_states(rows, RowStatus.INACTIVE, self.log))

    def expire(self) -> int:
        """Close all decisions that are past their time limit; return how many rows.

        Every call of `decide` and `observe` does this too, for a limited number of rows.
        """
        with self._runtime.call():
            return self._runtime.expire_all()

    def learn(
        self,
        tasks: Iterable[Name],
        inputs: ArrayLike,
        rewards: ArrayLike,
        *,
        source: Name | None = None,
    ) -> int:
        """Learn from samples of another source, such as a log of the past; return how many.

        Shapes: tasks, a list of names, [sample], inputs [sample, *input], rewards [sample]. See
        `GFUCB.learn`. Tasks may be retired.

        Args:
            tasks: the name of the task of each sample.
            inputs: of the actions that were chosen.
            rewards: of these actions.
            source: a name of these samples, such as that of a file. Samples of a name that was
                learned before, also before a restart, are not learned again, and other samples of
                this name are refused. By default all samples are new.
        """
        return self._learn(name_list(tasks), inputs, rewards, source)

    def _learn(
        self,
        names: list[Name],
        inputs: ArrayLike,
        rewards: ArrayLike,
        source: Name | None,
        schema: str | None = None,
    ) -> int:
        with self._runtime.call() as roster:
            texts = roster.encode_tasks(names, len(names))
            new = roster.new_tasks(texts, create=self.create_tasks, accepts_retired=True)
            numbers = roster.task_numbers(texts, new)
            samples = validate_samples(
                numbers,
                inputs,
                rewards,
                num_tasks=max(1, roster.num_tasks + len(new)),
            )
            if not texts:
                return 0
            with self._runtime.changing() as change:
                parts = zip(("tasks", "inputs", "rewards"), samples, strict=True)
                detail = {name: self.log.put_tensor(values) for name, values in parts}
                if source is not None:
                    detail["source"] = encode_name(source, "source")
                    if is_learned(detail, self.log):
                        return 0
                if schema is not None:
                    change.add(SCHEMA, {"schema": schema})
                if new:
                    change.add(TASKS, {"names": new})
                self._runtime.give_numbers(change, numbers)
                change.add(LEARN, detail)
            return len(texts)

    # Fits and state

    def fit(self) -> None:
        """Fit all data now, whatever `refit` is. Other threads decide and observe meanwhile."""
        self._runtime.fit()

    @property
    def is_fitting(self) -> bool:
        """Whether a fit is under way apart from rewards."""
        return self._runtime.model.is_fitting

    def checkpoint(self) -> Path:
        """Write the state of now beside the log, so that a restart is fast; return the path.

        Checkpoints are also written by `close`, and after fits if the data has grown by half.
        """
        path = self._runtime.checkpoint()
        if path is None:
            raise InvalidInputError("a log in memory has no checkpoint; pass the path of a log")
        return path

    @property
    def model(self) -> GFUCB:
        """The model as it is now; what it learns elsewhere does not change this agent.

        Its tasks are those with rewards, in the order of their first ones, and a few without.
        """
        with self._runtime.reading() as agent:
            return agent.snapshot()

    def diagnostics(self) -> Row:
        """Numbers about the state and the last decision, see `GFUCB.diagnostics`."""
        with self._runtime.reading() as agent:
            return agent.diagnostics()

    def state(self) -> dict[str, Tensor]:
        """All that the model has learned, as named tensors."""
        with self._runtime.reading() as agent:
            return agent.state()


# Not those of GFUCB, which an agent accepts too.
_OWN_ARGUMENTS = tuple(Agent.__init__.__kwdefaults__ or ())
