"""Any sequence of calls, right or wrong: success or a sentence, and a log that gives the agent."""

from datetime import date

import pytest
import torch
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from serving_cases import ARMS, COLUMNS, assert_same, candidates, state_of

from gfucb import Agent, DecisionLog, InvalidInputError
from gfucb.bandits import SlidingWindow
from gfucb.models import table_sizes

NAMES = st.sampled_from(["a", "b", 1, True, ("a", 1), "", "né", None, 1.5, date(2026, 3, 1)])
WRONG_NAMES = st.sampled_from(
    [float("nan"), [], object(), ("a", object()), "x" * 2000, "\ud800", {}]
)
REWARDS = st.sampled_from([0.0, 1.0, -0.0, 0.5, -3, 1e9])
WRONG_REWARDS = st.sampled_from([float("nan"), float("inf"), 1e300, "one", None, [], 1j])
SETTINGS = st.sampled_from(
    [
        {},
        {"refit": "manual"},
        {"forgetting": SlidingWindow(2)},
        {"forgetting": "auto", "max_samples_per_task": 3},
    ]
)
LIMIT = 60
INPUTS = st.sampled_from([None, [], 3, "abc", torch.zeros(2, 0, COLUMNS), torch.zeros(1, 2, 99)])


class AnyCalls(RuleBasedStateMachine):
    """One agent on a log in memory, and what a client knows of its decisions."""

    @initialize(limited=st.booleans(), settings=SETTINGS)
    def start(self, limited, settings):
        self.now = 1000.0
        self.log = DecisionLog(clock=lambda: self.now)
        limits = {"reward_limit": LIMIT, "default_reward": 0.25} if limited else {}
        self.limited, self.options = limited, {**limits, **settings}
        self.agent = Agent(log=self.log, **self.options)
        self.decisions, self.rewards, self.round = [], {}, 0
        self.times, self.inactive, self.num_learned = {}, set(), 0

    def refused(self, call) -> None:
        """The call is refused with a sentence, and nothing changes."""
        before = (state_of(self.agent), self.agent.tasks, self.log.last_event())
        with pytest.raises(InvalidInputError) as error:
            call()
        assert len(str(error.value)) > 20
        assert (self.agent.tasks, self.log.last_event()) == before[1:]
        assert_same(self.agent, before[0])

    @rule(names=st.lists(NAMES, min_size=1, max_size=3))
    def decide(self, names):
        if any(name in self.agent.retired_tasks and name != 1 for name in names):
            return
        self.round += 1
        decision = self.agent.decide(candidates(len(names), self.round), tasks=names)
        assert [repr(name) for name in decision.tasks] == [repr(name) for name in names]
        self.decisions.append(decision)
        self.times |= dict.fromkeys(decision.ids, self.now)

    @rule(name=WRONG_NAMES)
    def use_a_wrong_name(self, name):
        self.refused(lambda: self.agent.decide(candidates(1), tasks=[name]))
        self.refused(lambda: self.agent.add_task(name))
        self.refused(lambda: self.agent.retire_task(name))

    @rule(inputs=INPUTS)
    def decide_on_nothing(self, inputs):
        if isinstance(inputs, torch.Tensor) and not self.rewards and inputs.numel():
            return  # before the first reward inputs of any size will do
        self.refused(lambda: self.agent.decide(inputs, tasks=["new"]))
        mask = torch.zeros(1, ARMS, dtype=torch.bool)
        self.refused(lambda: self.agent.decide(candidates(1), tasks=["new"], available=mask))

    @rule(which=st.integers(0, 50), rows=st.lists(st.integers(0, 2), max_size=4), reward=REWARDS)
    def observe(self, which, rows, reward):
        if not self.decisions:
            return
        ids = self.decisions[which % len(self.decisions)].ids
        chosen = [ids[row % len(ids)] for row in rows]
        known = [self.rewards.get(each) for each in chosen]
        is_closed = any(each in self.inactive or self.is_late(each) for each in chosen)
        if is_closed or any(each is not None and each != reward for each in known):
            self.refused(lambda: self.agent.observe(chosen, [reward] * len(chosen)))
            return
        new = {each for each, before in zip(chosen, known, strict=True) if before is None}
        assert self.agent.observe(chosen, [reward] * len(chosen)) == len(new)
        self.rewards |= dict.fromkeys(new, reward)

    @rule(which=st.integers(0, 50), reward=WRONG_REWARDS)
    def observe_a_wrong_reward(self, which, reward):
        if self.decisions:
            decision = self.decisions[which % len(self.decisions)]
            self.refused(lambda: self.agent.observe(decision, [reward] * len(decision)))
            self.refused(lambda: self.agent.observe(decision.id + "0", 1.0))

    def is_late(self, row_id) -> bool:
        has_passed = self.now - self.times[row_id] >= LIMIT
        return self.limited and has_passed and row_id not in self.rewards

    @rule(which=st.integers(0, 50))
    def deactivate(self, which):
        if self.decisions:
            ids = self.decisions[which % len(self.decisions)].ids
            if any(each in self.rewards or self.is_late(each) for each in ids):
                self.refused(lambda: self.agent.deactivate(list(ids)))
            else:
                self.agent.deactivate(list(ids))
                self.inactive |= set(ids)
        self.refused(lambda: self.agent.deactivate("no id"))

    @rule(name=NAMES, reward=REWARDS)
    def learn(self, name, reward):
        if repr(name) not in map(repr, self.agent.retired_tasks):
            self.agent.learn([name], candidates(1)[:, 0], [reward])
            self.num_learned += 1

    @rule(name=WRONG_NAMES, reward=WRONG_REWARDS)
    def learn_nonsense(self, name, reward):
        self.refused(lambda: self.agent.learn([name], candidates(1)[:, 0], [0.5]))
        self.refused(lambda: self.agent.learn(["a"], candidates(1)[:, 0], [reward]))
        self.refused(lambda: self.agent.learn(["a", "b"], candidates(1)[:, 0], [0.5]))

    @rule(which=st.integers(0, 50))
    def look(self, which):
        before = (state_of(self.agent), self.log.last_event())
        assert len(self.agent.predict(candidates(2), tasks=["a", "nobody"]).rows()) == 2 * ARMS
        if self.decisions:
            decision = self.decisions[which % len(self.decisions)]
            assert len(self.agent.explain(decision.ids[0]).rows()) == ARMS
        self.refused(lambda: self.agent.explain("no id"))
        self.agent.diagnostics()
        assert self.log.last_event() == before[1]
        assert_same(self.agent, before[0])

    @rule()
    def fit(self):
        self.agent.fit()

    @rule(seconds=st.sampled_from([1, 59, 61]))
    def wait(self, seconds):
        self.now += seconds
        self.agent.expire()

    @rule(name=NAMES)
    def retire_or_reopen(self, name):
        known = {repr(each): each for each in (*self.agent.tasks, *self.agent.retired_tasks)}
        if repr(name) not in known:
            self.refused(lambda: self.agent.retire_task(name))
        elif repr(name) in map(repr, self.agent.retired_tasks):
            self.refused(lambda: self.agent.retire_task(name))
            self.agent.reopen_task(name)
        else:
            self.agent.retire_task(name)
            self.refused(lambda: self.agent.decide(candidates(1), tasks=[name]))
            self.agent.reopen_task(name)

    @rule()
    def restart(self):
        state, tasks = state_of(self.agent), self.agent.tasks
        self.agent.close()
        self.agent = Agent(log=self.log, **self.options)
        assert_same(self.agent, state)
        assert self.agent.tasks == tasks

    @invariant()
    def every_reward_counts_once(self):
        if hasattr(self, "agent"):
            closed = [each for each in self.times if each not in self.inactive | set(self.rewards)]
            defaults = sum(map(self.is_late, closed)) if self.limited else 0
            expected = len(self.rewards) + self.num_learned + defaults
            assert self.agent.model.learner.num_samples == expected


@pytest.mark.slow
def test_any_calls(monkeypatch):
    monkeypatch.setattr(table_sizes, "MOST_FREQUENCIES", table_sizes.FEWEST_FREQUENCIES)
    machine = AnyCalls.TestCase
    machine.settings = settings(
        max_examples=12,
        stateful_step_count=15,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    machine("runTest").runTest()
