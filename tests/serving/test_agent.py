"""Agents with names and ids: tasks, decisions, rewards that count once, time limits."""

import datetime
import pickle
from decimal import Decimal

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from serving_cases import assert_same, candidates, play, reward, state_of

import gfucb
from gfucb import GFUCB, Agent, DecisionLog, InvalidInputError
from gfucb.serving.names import decode_name, encode_name

NAMES = st.recursive(
    st.one_of(
        st.text(max_size=5),
        st.integers(),
        st.booleans(),
        st.none(),
        st.floats(allow_nan=False),
        st.binary(max_size=5),
        st.dates(),
        st.datetimes(timezones=st.none() | st.just(datetime.UTC)),
        st.times(),
        st.timedeltas(),
        st.uuids(),
        st.decimals(allow_nan=False, min_value=-10, max_value=10, places=3),
        st.fractions(),
        st.frozensets(st.integers(), max_size=3),
    ),
    lambda inner: st.lists(inner, max_size=3).map(tuple),
    max_leaves=5,
)


class TestNames:
    @given(NAMES)
    @settings(deadline=None, max_examples=30)
    def test_are_stored_exactly(self, name):
        again = decode_name(encode_name(name))
        assert again == name and hash(again) == hash(name)
        assert encode_name(again) == encode_name(name)

    def test_that_are_different_objects_are_different_tasks(self):
        agent = Agent(tasks=[1, "1", True, ("1",), (1,)])
        assert agent.tasks == (1, "1", True, ("1",), (1,))

    def test_of_numpy_and_pandas_are_those_of_python(self):
        agent = Agent()
        agent.decide(candidates(3), tasks=np.array([4, 5, 6]))
        agent.decide(candidates(2), tasks=[np.int64(4), np.str_("a")])
        assert agent.tasks == (4, 5, 6, "a")

    @pytest.mark.parametrize(
        "name",
        [
            float("nan"),
            np.float32("nan"),
            np.datetime64("NaT"),
            ["a"],
            {"a"},
            object(),
            "x" * 2000,
            "\ud800",
            10**5000,
            ("a", object()),
            range(3),
        ],
        ids=lambda name: type(name).__name__,
    )
    def test_that_cannot_be_stored_are_refused(self, name):
        agent = Agent()
        with pytest.raises(InvalidInputError, match="the name of a task"):
            agent.add_task(name)
        assert agent.tasks == ()

    @pytest.mark.parametrize(
        ("first", "second"), [(3, 3.0), (Decimal("1.50"), 1.5), (2, Decimal(2))]
    )
    def test_that_are_equal_numbers_are_one_task(self, first, second):
        assert encode_name(first) == encode_name(second)
        assert decode_name(encode_name(second)) == first

    @pytest.mark.parametrize(
        "tasks", ["ab", ("a", "b"), 7, {"a": 1}, {"a", "b"}, np.zeros((2, 1)), 1.5]
    )
    def test_come_in_a_list(self, tasks):
        with pytest.raises(InvalidInputError, match="list of names"):
            Agent().decide(candidates(2), tasks=tasks)


class TestTasks:
    def test_are_created_at_first_use_or_not(self):
        agent = Agent(create_tasks=False, tasks=["a"])
        with pytest.raises(InvalidInputError, match="no task 'b'"):
            agent.decide(candidates(2), tasks=["a", "b"])
        agent.add_task("b")
        agent.decide(candidates(2), tasks=["b", "a"])

    def test_by_default_are_all_active_ones_in_order(self):
        agent = Agent(tasks=["a", "b", "c"])
        agent.retire_task("b")
        assert agent.decide(candidates(2)).tasks == ("a", "c")
        with pytest.raises(InvalidInputError, match="each of the 2 active tasks"):
            agent.decide(candidates(3))

    def test_that_retire_are_refused_but_their_rewards_count(self):
        agent = Agent()
        decision = agent.decide(candidates(2), tasks=["a", "b"])
        agent.retire_task("a")
        assert agent.tasks == ("b",) and agent.retired_tasks == ("a",)
        with pytest.raises(InvalidInputError, match="retired"):
            agent.decide(candidates(1), tasks=["a"])
        with pytest.raises(InvalidInputError, match="not used twice"):
            agent.add_task("a")
        with pytest.raises(InvalidInputError, match="retired already"):
            agent.retire_task("a")
        assert agent.observe(decision, [0.0, 1.0]) == 2
        agent.add_task("c")
        assert agent.model.num_tasks == 2  # a task without data costs nothing
        agent.observe(agent.decide(candidates(1), tasks=["c"]), [0.5])
        assert agent.model.num_tasks == 3  # the number of a is not reused
        agent.reopen_task("a")
        agent.decide(candidates(1), tasks=["a"])

    def test_are_the_numbers_of_the_model(self):
        named, numbered = Agent(seed=1), GFUCB(3, seed=1)
        for index in range(8):
            offered = candidates(3, index)
            decision = named.decide(offered, tasks=["x", "y", "z"])
            other = numbered.decide(offered)
            assert torch.equal(decision.actions, other.actions)
            named.observe(decision, reward(decision.inputs))
            numbered.observe(other, reward(other.inputs))

    def test_of_a_refused_decision_are_not_created(self):
        agent = Agent()
        play(agent, range(2), ["a"])
        before = state_of(agent)
        with pytest.raises(InvalidInputError, match="shape"):
            agent.decide(torch.rand(2, 3, 9), tasks=["a", "b"])
        assert agent.tasks == ("a",)
        assert_same(agent, before)
        agent.decide(candidates(2), tasks=["c", "d"])
        assert agent.tasks == ("a", "c", "d")


class TestCatalogues:
    def test_of_names_alone(self):
        agent = Agent()
        first = agent.decide_from(["tea", "milk"], tasks=["a", "b"])
        assert set(first.action_names) <= {"tea", "milk"}
        agent.observe(first, [1.0, 0.0])
        second = agent.decide_from(["juice", "milk"], tasks=["c"])
        assert second.inputs.tolist() == [{"milk": 1, "juice": 2}[second.action_names[0]]]

    def test_of_names_with_inputs(self):
        agent = Agent()
        catalogue = {"tea": [0.0, 1.0], ("milk", 2): [1.0, 0.5]}
        decision = agent.decide_from(catalogue, tasks=["a"])
        assert decision.inputs[0].tolist() == catalogue[decision.action_names[0]]

    def test_of_numbers_have_no_names(self):
        decision = Agent().decide_from(candidates(1)[0], tasks=["a", "b", "a"])
        assert decision.action_names is None and len(decision) == 3

    @pytest.mark.parametrize("catalogue", [{}, [], ["a", "a"], ["a", 1], {"a": "b"}, None])
    def test_that_cannot_be_used_are_refused(self, catalogue):
        agent = Agent(tasks=["x"])
        with pytest.raises(InvalidInputError):
            agent.decide_from(catalogue)
        assert agent.log.last_decision() == 0


class TestRewards:
    @pytest.fixture
    def agent(self):
        agent = Agent()
        play(agent, range(3), ["a", "b"])
        return agent

    def test_count_once_in_any_form_and_order(self, agent):
        decision = agent.decide(candidates(4, 9), tasks=["a", "b", "c", "a"])
        assert agent.observe(decision.ids[2], 0.5) == 1
        assert agent.observe([decision.ids[3], decision.ids[0]], [0.1, 0.2]) == 2
        before = state_of(agent)
        assert agent.observe(decision.ids[2], 0.5) == 0
        assert agent.observe(decision[2:], [0.5, 0.1]) == 0
        assert_same(agent, before)
        assert agent.observe(decision.id, [0.2, 0.7, 0.5, 0.1]) == 1
        assert agent.model.learner.num_samples == 6 + 4

    def test_twice_in_one_call_count_once(self, agent):
        one, two = agent.decide(candidates(2), tasks=["a", "b"]).ids
        assert agent.observe([one, two, one], [1, 2, 1]) == 2

    def test_read_the_rows_of_a_decision_once(self, monkeypatch):
        """Once for each row would take a time that grows with the square of the rows."""
        agent, read = Agent(reward_limit=60.0, refit="manual"), []
        ids = []
        for index in range(3):
            ids += agent.decide(candidates(20, index), tasks=list(range(20))).ids
        for name in ("row_states", "decision"):
            own = getattr(agent.log, name)
            monkeypatch.setattr(
                agent.log, name, lambda number, n=name, f=own: read.append(n) or f(number)
            )
        assert agent.observe(ids[::3] + ids[1::3] + ids[2::3], range(60)) == 60
        assert read.count("row_states") <= 3 * 2 and read.count("decision") <= 3 * 4
        assert agent.deactivate(agent.decide(candidates(20), tasks=list(range(20)))) == 20
        assert read.count("row_states") <= 3 * 2 + 2

    def test_that_differ_are_refused_and_nothing_changes(self, agent):
        decision = agent.decide(candidates(2), tasks=["a", "b"])
        agent.observe(decision[0], 1.0)
        before = state_of(agent)
        for rewards in ([0.9, 0.0], [float("nan"), 0.0], [1.0], ["x", "y"]):
            with pytest.raises(InvalidInputError):
                agent.observe(decision, rewards)
        with pytest.raises(InvalidInputError, match="counted once"):
            agent.observe([decision.ids[1]] * 2, [0.0, 0.5])
        assert_same(agent, before)
        assert agent.observe(decision, [1.0, 0.0]) == 1

    def test_of_unknown_and_foreign_ids_are_refused(self, agent):
        decision = agent.decide(candidates(1), tasks=["a"])
        foreign = Agent().decide(candidates(1), tasks=["a"])
        token, _, rest = decision.id.partition("-")
        unknown = [f"{token}-99", f"{decision.id}.1", f"{token}-0.0", f"{token}-0{rest}.0", "", 7]
        for what in [
            *unknown,
            foreign,
            foreign.id,
            None,
            [None],
            agent.model.decide(candidates(2)),
        ]:
            with pytest.raises(InvalidInputError, match="id"):
                agent.observe(what, 1.0)

    def test_of_ids_without_an_order_are_refused(self, agent):
        decision = agent.decide(candidates(2), tasks=["a", "b"])
        for what in (set(decision.ids), dict.fromkeys(decision.ids, 1.0)):
            with pytest.raises(InvalidInputError, match="list of ids"):
                agent.observe(what, [1.0, 0.0])

    def test_of_a_decision_that_was_sent_elsewhere(self, agent):
        decision = agent.decide(candidates(1), tasks=["a"])
        assert agent.observe(pickle.loads(pickle.dumps(decision)), [1.0]) == 1

    def test_of_many_decisions_in_one_call(self, agent):
        ids = [agent.decide(candidates(1, i), tasks=["abc"[i % 3]]).ids[0] for i in range(9)]
        assert agent.observe(ids, range(9)) == 9

    def test_negative_zero_is_zero(self, agent):
        one = agent.decide(candidates(1), tasks=["a"]).id
        agent.observe(one, -0.0)
        assert agent.observe(one, 0.0) == 0

    def test_none_for_decisions_that_were_not_shown(self, agent):
        decision = agent.decide(candidates(2), tasks=["a", "b"])
        assert agent.deactivate(decision[0]) == 1
        assert agent.deactivate(decision[0]) == 0
        with pytest.raises(InvalidInputError, match="deactivated"):
            agent.observe(decision, [1.0, 0.0])
        agent.observe(decision[1], 0.0)
        with pytest.raises(InvalidInputError, match="has a reward already"):
            agent.deactivate(decision[1])


class TestTimeLimits:
    def test_learn_the_default_reward(self, clock):
        agent = Agent(log=DecisionLog(clock=clock), reward_limit=60, default_reward=-1)
        first = agent.decide(candidates(2), tasks=["a", "b"])
        agent.observe(first[0], 1.0)
        clock.now += 61
        second = agent.decide(candidates(1, 1), tasks=["a"])
        assert agent.model.learner.num_samples == 2
        with pytest.raises(InvalidInputError, match="the default reward was learned"):
            agent.observe(first[1], 1.0)
        clock.now += 61
        with pytest.raises(InvalidInputError, match="past its time limit"):
            agent.observe(second, 1.0)
        assert agent.state()["data.targets"].tolist() == [1.0, -1.0, -1.0]

    def test_or_nothing(self, clock):
        agent = Agent(log=DecisionLog(clock=clock), reward_limit=60)
        decision = agent.decide(candidates(3), tasks=["a", "b", "c"])
        clock.now += 59
        assert agent.expire() == 0 and agent.observe(decision[0], 1.0) == 1
        clock.now += 1
        assert agent.expire() == 2 and agent.expire() == 0
        with pytest.raises(InvalidInputError, match="nothing can be learned"):
            agent.observe(decision[1], 1.0)
        assert agent.observe(decision[0], 1.0) == 0

    def test_that_make_no_sense_are_refused(self):
        for arguments in ({"default_reward": 1.0}, {"reward_limit": 0}, {"reward_limit": "1s"}):
            with pytest.raises(InvalidInputError, match="reward"):
                Agent(**arguments)
        with pytest.raises(InvalidInputError, match="reward_limit, in seconds, must be"):
            Agent(reward_limit=datetime.timedelta(hours=1))


class TestConstruction:
    @pytest.mark.parametrize(
        "arguments",
        [
            {"num_tasks": 3},
            {"model": "gfucb"},
            {"model": GFUCB(1), "seed": 3},
            {"refit": "sometimes"},
            {"create_tasks": 1},
            {"log": 7},
            {"tasks": "abc"},
        ],
    )
    def test_of_what_cannot_work_is_refused(self, arguments):
        with pytest.raises(InvalidInputError):
            Agent(**arguments)

    def test_with_a_model_of_its_own(self):
        model = GFUCB(2, gfucb.LinearClass(3, 2), seed=4)
        agent = Agent(model)
        play(agent, range(3), ["a", "b", "c"])
        assert agent.model.num_tasks == 3 and model.num_tasks == 2
        with pytest.raises(InvalidInputError, match="no log holds"):
            Agent(agent.model)

    def test_ids_differ_between_agents_of_one_seed(self):
        ids = {Agent(seed=0).decide(candidates(1), tasks=["a"]).id for _ in range(3)}
        assert len(ids) == 3
