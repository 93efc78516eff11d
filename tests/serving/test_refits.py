"""Fits apart from rewards: by hand, in the background, and replayed; threads; checkpoints."""

import gc
import threading
import time

import pytest
import torch
from serving_cases import assert_same, candidates, play, reward, state_of

from gfucb import GFUCB, Agent, InvalidInputError
from gfucb.core.errors import DecisionLogError, RefitError, SavedStateError
from gfucb.serving import refits


def until(condition) -> None:
    """Wait for the worker, for at most twenty seconds."""
    for _ in range(2000):
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError("the worker has not done it")


def fits_of(agent: Agent) -> int:
    return agent.model.learner.num_fits


class Gate:
    """Lets fits begin, and lets them end when the test says so."""

    def __init__(self, monkeypatch) -> None:
        self.began, self.may_end = threading.Event(), threading.Event()
        refit = GFUCB.refit

        def waiting(agent, **options) -> None:
            self.began.set()
            assert self.may_end.wait(20)
            refit(agent, **options)

        monkeypatch.setattr(GFUCB, "refit", waiting)


def rebuilt(path, **options) -> Agent:
    """From the log alone."""
    path.with_name(f"{path.name}.checkpoint").unlink(missing_ok=True)
    return Agent(log=path, **options)


def test_manual_fits_are_made_by_fit_only(tmp_path):
    with Agent(log=tmp_path / "log", refit="manual") as agent:
        agent.fit()  # without data nothing happens
        play(agent, range(6), ["a", "b"])
        assert fits_of(agent) == 1  # the first reward needs one
        agent.fit()
        assert fits_of(agent) == 2
        play(agent, range(6, 9), ["a", "b", "c"])
        agent.fit()
        play(agent, range(9, 10), ["d"])
        state = state_of(agent)
    with rebuilt(tmp_path / "log", refit="inline") as again:  # sessions differ in their way to fit
        assert_same(again, state)
        play(again, range(10, 20), ["a", "d"])
        assert fits_of(again) > 3
        later = state_of(again)
    with rebuilt(tmp_path / "log", refit="manual") as again:
        assert_same(again, later)


@pytest.mark.parametrize("kind", ["table", "catalogue"])
def test_the_first_reward_does_not_wait_for_a_fit(tmp_path, monkeypatch, kind):
    gate = Gate(monkeypatch)
    agent = Agent(log=tmp_path / "log", refit="background", tasks=["a", "b"])
    for index in range(4):
        if kind == "table":
            decision = agent.decide(candidates(2, index), tasks=["a", "b"])
        else:
            decision = agent.decide_from(["tea", "juice", "milk"], tasks=["a", "b"])
        agent.observe(decision, [250.0 + index, 300.0])
        assert fits_of(agent) == 0
    unfitted = GFUCB(2)
    unfitted.load_state(agent.state())  # can be saved and restored
    gate.may_end.set()
    until(lambda: fits_of(agent) >= 1)
    agent.close()
    state = state_of(agent)
    with rebuilt(tmp_path / "log", refit="background") as again:
        assert_same(again, state)


class TestBackground:
    def test_rewards_during_a_fit_are_in_it(self, tmp_path, monkeypatch):
        gate = Gate(monkeypatch)
        agent = Agent(log=tmp_path / "log", refit="background")
        play(agent, range(3), ["a", "b"])
        assert gate.began.wait(20)
        play(agent, range(3, 8), ["a", "c"])  # nothing waits for the fit
        agent.learn(["d"], candidates(1)[:, 0], [0.5])
        before = fits_of(agent)
        gate.may_end.set()
        until(lambda: fits_of(agent) > before)
        assert agent.model.learner.num_samples == 3 * 2 + 5 * 2 + 1
        until(lambda: not agent.model.learner.is_fit_due)
        play(agent, range(8, 9), ["a"])
        agent.close()
        with rebuilt(tmp_path / "log", refit="manual") as again:
            assert_same(again, state_of(agent))

    def test_many_threads_lose_nothing(self, tmp_path):
        agent, counted, errors = Agent(log=tmp_path / "log", refit="background"), [], []

        def serve(index: int) -> None:
            try:
                for turn in range(12):
                    decision = agent.decide(candidates(2, 100 * index + turn), tasks=["all", index])
                    counted.append(agent.observe(decision, reward(decision.inputs)))
                    counted.append(agent.observe(decision, reward(decision.inputs)))
            except Exception as error:
                errors.append(error)

        threads = [threading.Thread(target=serve, args=(index,)) for index in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not errors
        assert sum(counted) == agent.model.learner.num_samples == 4 * 12 * 2
        agent.close()
        assert fits_of(agent) > 1
        with rebuilt(tmp_path / "log", refit="manual") as again:
            assert_same(again, state_of(agent))
            assert set(again.tasks) == {"all", 0, 1, 2, 3}

    def test_errors_of_the_worker_surface_once(self, monkeypatch):
        agent = Agent(refit="background")
        with monkeypatch.context() as broken:
            failed = threading.Event()

            def fail(_, **options) -> None:
                failed.set()
                raise FloatingPointError("diverged")

            broken.setattr(GFUCB, "refit", fail)
            decision = agent.decide(candidates(2), tasks=["a", "b"])
            agent.observe(decision, [0.0, 1.0])
            assert failed.wait(20)
            until(lambda: agent._runtime._worker._error is not None)
            samples = agent.model.learner.num_samples
            with pytest.raises(RefitError, match="diverged"):
                agent.observe(decision, [0.0, 1.0])
        assert agent.model.learner.num_samples == samples
        play(agent, range(4), ["a", "b"])
        until(lambda: fits_of(agent) > 0)  # a second fit may have nothing left to do
        agent.close()

    def test_the_worker_ends_with_the_agent(self):
        def workers() -> int:
            return sum(thread.name == "gfucb-refits" for thread in threading.enumerate())

        before = workers()
        with Agent(refit="background"):
            assert workers() == before + 1
        assert workers() == before
        forgotten = Agent(refit="background")
        del forgotten
        gc.collect()
        until(lambda: workers() == before)

    def test_closing_waits_for_the_fit(self, monkeypatch, tmp_path):
        gate = Gate(monkeypatch)
        agent = Agent(log=tmp_path / "log", refit="background")
        play(agent, range(3), ["a", "b"])
        assert gate.began.wait(20)
        threading.Timer(0.05, gate.may_end.set).start()
        agent.close()
        with pytest.raises(DecisionLogError, match="closed"):
            agent.fit()
        with Agent(log=tmp_path / "log") as again:
            assert_same(again, state_of(agent))


def test_a_fit_that_fails_by_hand_changes_nothing(monkeypatch):
    agent = Agent(refit="manual")
    play(agent, range(4), ["a"])
    before, events = state_of(agent), agent.log.last_event()
    with monkeypatch.context() as broken:
        broken.setattr(GFUCB, "refit", lambda _, **options: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            agent.fit()
    assert_same(agent, before)
    assert agent.log.last_event() == events


class TestCheckpoints:
    def test_are_continued_exactly(self, tmp_path, monkeypatch):
        path = tmp_path / "log"
        agent = Agent(log=path)
        play(agent, range(5), ["a", "b"])
        assert agent.checkpoint().is_file()
        play(agent, range(5, 12), ["a", "c"])
        pending = agent.decide(candidates(1), tasks=["b"])
        state = state_of(agent)
        agent.log.close()  # as if it were killed
        replayed = []
        apply = refits.LiveModel.keep
        monkeypatch.setattr(refits.LiveModel, "keep", lambda *args: replayed.append(apply(*args)))
        with Agent(log=path) as again:
            assert 0 < len(replayed) <= 9  # only what came after the checkpoint
            assert_same(again, state)
            assert again.observe(pending, 0.5) == 1

    def test_are_written_after_fits_if_the_data_has_grown(self, tmp_path, monkeypatch):
        monkeypatch.setattr(refits, "FEWEST_SAMPLES", 8)
        for refit in ("inline", "manual"):
            path = tmp_path / refit
            with Agent(log=path, refit=refit) as agent:
                play(agent, range(8), ["a", "b"])
                if refit == "manual":
                    agent.fit()
                assert path.with_name(f"{refit}.checkpoint").is_file()

    def test_that_cannot_be_used_are_refused(self, tmp_path):
        path, other = tmp_path / "log", tmp_path / "other"
        for each in (path, other):
            with Agent(log=each) as agent:
                play(agent, range(3), ["a", "b"])
        checkpoint = path.with_name("log.checkpoint")
        content = checkpoint.read_bytes()
        foreign = other.with_name("other.checkpoint").read_bytes()
        for damaged in (content[:-100], content[:300], b"", content[:-9] + b"x" * 9, foreign):
            checkpoint.write_bytes(damaged)
            with pytest.raises(SavedStateError, match="delete it to rebuild the agent from the"):
                Agent(log=path)
        checkpoint.write_bytes(content)
        Agent(log=path).close()
        checkpoint.unlink()
        Agent(log=path).close()

    @pytest.mark.parametrize("refit", ["inline", "manual", "background"])
    def test_that_cannot_be_written_stop_nothing(self, tmp_path, monkeypatch, caplog, refit):
        monkeypatch.setattr(refits, "FEWEST_SAMPLES", 4)
        path = tmp_path / "log"
        with Agent(log=path, refit=refit) as agent:
            path.with_name("log.checkpoint").mkdir()  # it cannot be written, as on a full disk
            play(agent, range(4), ["a", "b"])
            if refit == "manual":
                agent.fit()
            with pytest.raises(SavedStateError):
                agent.checkpoint()
        assert agent.model.learner.num_samples == 8
        assert any("no checkpoint is written" in record.message for record in caplog.records)

    def test_of_a_log_that_failed_are_not_missed(self, tmp_path, caplog):
        with pytest.raises(ZeroDivisionError), Agent(log=tmp_path / "log") as agent:
            agent.log.close()  # as a full disk does
            raise ZeroDivisionError
        assert "no checkpoint is written" in caplog.text

    def test_half_written_by_a_killed_process_are_removed(self, tmp_path):
        half, others = tmp_path / f".log.checkpoint.{'0f' * 8}.tmp", tmp_path / ".log.tmp"
        for file in (half, others):
            file.touch()
        Agent(log=tmp_path / "log").close()
        assert others.exists() and not half.exists()

    def test_of_a_log_in_memory_are_refused(self):
        with pytest.raises(InvalidInputError, match="in memory"):
            Agent().checkpoint()


def test_deciding_uses_the_new_fit_at_once():
    agent = Agent(refit="manual")
    play(agent, range(10), ["a", "b"])
    before = agent.decide(candidates(2, 99), tasks=["a", "b"])
    agent.fit()
    after = agent.decide(candidates(2, 99), tasks=["a", "b"])
    assert not torch.equal(before.prediction.mean, after.prediction.mean)
