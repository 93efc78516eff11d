"""What happens around an agent: forks, interrupts, moved files, clocks, threads of torch."""

import copy
import os
import pickle
import threading

import pytest
import torch
from serving_cases import assert_same, candidates, play, reward, state_of

from gfucb import Agent, DecisionLog
from gfucb.core.errors import DecisionLogError, InvalidInputError, RefitError
from gfucb.core.threads import limit_this_thread
from gfucb.serving import connections
from gfucb.serving.log_replay import THREADS


def answer_of_a_fork(function) -> str:
    """What a function returns in a fork of this process, or its error; it gets ten seconds."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            answer = str(function())
        except BaseException as error:
            answer = f"{type(error).__name__}: {error}"
        os.write(writing, answer.encode())
        os._exit(0)
    os.close(writing)
    killer = threading.Timer(10, os.kill, (child, 9))
    killer.start()
    with os.fdopen(reading) as file:
        answer = file.read()
    killer.cancel()
    os.waitpid(child, 0)
    return answer


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no forks")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_fork_cannot_use_the_agent_it_inherits(tmp_path):
    with Agent(log=tmp_path / "log", refit="background") as agent:
        play(agent, range(2), ["a"])
        held, done = threading.Event(), threading.Event()

        def hold() -> None:
            with agent._runtime.reading():
                held.set()
                done.wait(20)

        thread = threading.Thread(target=hold)
        thread.start()
        held.wait(20)
        # In the fork nobody will ever release the lock that this thread holds.
        calls = {
            "decide": lambda: agent.decide(candidates(1), tasks=["a"]),
            "read": lambda: agent.state(),
            "log": lambda: agent.log.last_event(),
        }
        for call in calls.values():
            assert "is a fork of it; build agents" in answer_of_a_fork(call)
        assert answer_of_a_fork(agent.close) == "None"
        done.set()
        thread.join()
        play(agent, range(2, 4), ["a"])
    state = state_of(agent)  # after the fit for which closing has waited
    with Agent.from_log(tmp_path / "log", refit="manual") as again:
        assert_same(again, state)


@pytest.mark.parametrize("copying", [copy.copy, copy.deepcopy, pickle.dumps])
def test_an_agent_cannot_be_copied(copying):
    with pytest.raises(TypeError, match="pass the path of its log"):
        copying(Agent())


class TestInterrupts:
    """Ctrl-C at a bad moment: what the log has, the agent has."""

    @pytest.fixture
    def interrupted(self, monkeypatch):
        """Interrupts the next commit: before it, or after it."""

        def interrupt(*, after: bool) -> None:
            commit = DecisionLog._commit

            def interrupting(log) -> None:
                monkeypatch.setattr(DecisionLog, "_commit", commit)
                if after:
                    commit(log)
                raise KeyboardInterrupt

            monkeypatch.setattr(DecisionLog, "_commit", interrupting)

        return interrupt

    @pytest.mark.parametrize("after", [False, True])
    def test_of_rewards(self, tmp_path, interrupted, after):
        agent = Agent(log=tmp_path / "log", refit="manual")
        play(agent, range(2), ["a"])
        decision = agent.decide(candidates(2, 9), tasks=["a", "new"])
        interrupted(after=after)
        with pytest.raises(KeyboardInterrupt):
            agent.observe(decision, reward(decision.inputs))
        assert agent.observe(decision, reward(decision.inputs)) == (0 if after else 2)
        interrupted(after=after)
        with pytest.raises(KeyboardInterrupt):
            agent.add_task("b")
        assert ("b" in agent.tasks) == after
        play(agent, range(2, 4), ["a", "b", "c"])
        self.assert_rebuilt(agent, tmp_path / "log")

    @pytest.mark.parametrize("after", [False, True])
    def test_of_fits(self, tmp_path, interrupted, after):
        agent = Agent(log=tmp_path / "log", refit="manual")
        play(agent, range(3), ["a", "b"])
        interrupted(after=after)
        with pytest.raises(KeyboardInterrupt):
            agent.fit()
        assert agent.model.learner.num_fits == (2 if after else 1)
        play(agent, range(3, 5), ["a", "b"])
        self.assert_rebuilt(agent, tmp_path / "log")

    @staticmethod
    def assert_rebuilt(agent: Agent, path) -> None:
        tasks, state = agent.tasks, state_of(agent)
        agent.log.close()  # as if it were killed: there is no checkpoint
        with Agent(log=path, refit="manual") as again:
            assert again.tasks == tasks
            assert_same(again, state)


class TestFiles:
    def test_links_have_the_lock_and_the_checkpoint_of_the_log(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        os.symlink("log", "link")
        with Agent(log="log") as agent:
            play(agent, range(1), ["a"])
            with pytest.raises(DecisionLogError, match="in use"):
                Agent(log="link")
            (tmp_path / "elsewhere").mkdir()
            monkeypatch.chdir("elsewhere")
            assert agent.checkpoint() == tmp_path / "log.checkpoint"

    @pytest.mark.parametrize("replaced", [False, True])
    def test_that_are_moved_are_not_written(self, tmp_path, replaced):
        path = tmp_path / "log"
        with Agent(log=path) as agent:
            play(agent, range(1), ["a"])
            before = state_of(agent)
            path.rename(tmp_path / "moved")
            if replaced:
                path.touch()
            with pytest.raises(DecisionLogError, match="moved, deleted or replaced"):
                agent.decide(candidates(1), tasks=["b"])
            assert agent.tasks == ("a",)
            assert_same(agent, before)
            (tmp_path / "moved").rename(path)
            play(agent, range(1, 2), ["a"])

    @pytest.mark.parametrize(
        ("name", "why"), [("", "is a directory"), ("a\0b", "null"), ("a/b", "no directory")]
    )
    def test_in_places_without_files_are_refused(self, tmp_path, name, why):
        with pytest.raises(DecisionLogError, match=why):
            Agent(log=f"{tmp_path}/{name}")

    def test_in_memory_have_the_name_of_sqlite(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        with Agent(log=":memory:") as agent:
            assert agent.log.path is None
        assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("time", [None, float("nan"), 1e12, -1.0, "noon"])
def test_a_clock_without_a_time_is_refused(time):
    with pytest.raises(DecisionLogError, match="the clock of a log must return seconds"):
        Agent(log=DecisionLog(clock=lambda: time))


def test_a_clock_of_whole_seconds_leaves_a_readable_log(tmp_path):
    with DecisionLog(tmp_path / "log", clock=lambda: 1000) as log, Agent(log=log, seed=0) as agent:
        decision = agent.decide(candidates(1), tasks=["a"])
    with Agent(log=tmp_path / "log", seed=0) as again:
        assert again.observe(decision.ids, [0.5]) == 1


def test_a_clock_that_goes_back_closes_nothing_early():
    now = [1000.0]
    agent = Agent(log=DecisionLog(clock=lambda: now[0]), reward_limit=60.0)
    decision = agent.decide(candidates(1), tasks=["a"])
    now[0] = 10.0
    other = agent.decide(candidates(1), tasks=["a"])
    now[0] = 100.0  # the limit of the second is over, and that of the first is not
    assert agent.expire() == 0
    assert agent.observe(decision, 0.5) == 1
    assert agent.expire() == 1
    with pytest.raises(InvalidInputError, match="past its time limit"):
        agent.observe(other, 0.5)


def test_a_worker_that_exits_is_reported(monkeypatch):
    def exiting(*_, **__) -> None:
        raise SystemExit("bye")

    with Agent(refit="background") as agent, monkeypatch.context() as broken:
        broken.setattr("gfucb.serving.live_model.Refit.run", exiting)
        failed = threading.Event()
        broken.setattr("gfucb.serving.refits.LOGGER.warning", lambda *_, **__: failed.set())
        agent.observe(agent.decide(candidates(1), tasks=["a"]), 0.5)
        assert failed.wait(20)
        with pytest.raises(RefitError, match="bye"):
            agent.decide(candidates(1), tasks=["a"])


class TestThreadsOfTorch:
    """With fits in the background, one for calls and one for fits."""

    @pytest.fixture
    def two_threads(self):
        before = torch.get_num_threads()
        torch.set_num_threads(2)
        yield
        torch.set_num_threads(before)

    @pytest.mark.parametrize(("refit", "expected"), [("background", 1), ("inline", 2)])
    def test_in_calls_and_in_a_rebuilt_agent(
        self, tmp_path, monkeypatch, two_threads, refit, expected
    ):
        found = []
        learn = "gfucb.bandits.gfucb.GFUCB.observe"
        monkeypatch.setattr(learn, lambda *_: found.append(torch.get_num_threads()))
        with Agent(log=tmp_path / "log", refit=refit) as agent:
            agent.observe(agent.decide(candidates(1), tasks=["a"]), 0.5)
            assert torch.get_num_threads() == 2
        tmp_path.joinpath("log.checkpoint").unlink()
        Agent(log=tmp_path / "log", refit="manual").close()
        assert found == [expected] * 2
        assert torch.get_num_threads() == 2

    def test_of_one_thread_leave_others_alone(self, two_threads):
        found = []

        def limited() -> None:
            limit_this_thread(1)
            torch.rand(9) @ torch.rand(9)
            found.append(torch.get_num_threads())

        for function in (limited, lambda: found.append(torch.get_num_threads())):
            thread = threading.Thread(target=function)
            thread.start()
            thread.join()
        assert [*found, torch.get_num_threads()] == [1, 2, 2]

    def test_are_a_fact_of_the_session(self):
        for refit, expected in (("background", 1), ("manual", None)):
            with Agent(refit=refit) as agent:
                assert next(agent.log.events(0)).detail.get(THREADS) == expected


def test_a_closed_log_is_read_where_nothing_can_be_written(tmp_path, monkeypatch):
    with Agent(log=tmp_path / "log", seed=0) as agent:
        agent.observe(agent.decide(candidates(1), tasks=["a"]), [0.5])
    files = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with DecisionLog(tmp_path / "log", read_only=True) as log:
        assert log.last_decision() == 1
        assert {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == files
    (tmp_path / "log-wal").touch()  # an agent is using the log: it changes while it is read
    assert connections._reading(tmp_path / "log") == "?mode=ro"


def test_what_is_no_decision_of_an_agent_is_named():
    with Agent(seed=0) as agent:
        decision = agent.decide(candidates(1), tasks=["a"])
        for what in (agent.model.decide(candidates(1)), decision.ids[0].encode()):
            with pytest.raises(InvalidInputError, match="pass a decision of this agent, with ids"):
                agent.observe(what, [0.5])


def test_a_second_agent_in_one_process_is_told_to_close_the_first(tmp_path):
    with Agent(log=tmp_path / "log"), pytest.raises(DecisionLogError, match=r"its close\(\) first"):
        Agent(log=tmp_path / "log")
