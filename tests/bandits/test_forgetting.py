"""Agents that forget: windows, discounting, changes of the rewards, a bounded number of samples."""

import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from gfucb import GFUCB, Agent, BatchedAgents, InvalidInputError, NeuralClass, VariableProjection
from gfucb.bandits.forgetting import Discounting, DriftDetection, Reservoir, SlidingWindow
from gfucb.core.features import features_of
from gfucb.core.random import global_randomness_from, random_stream
from gfucb.models import HeadStatistics

TASKS, ACTIONS, COLUMNS = 4, 3, 3
with global_randomness_from(random_stream(0, "network")):
    NETWORK = torch.nn.Sequential(torch.nn.Linear(COLUMNS, 4), torch.nn.Tanh())
WHICH = ("table", "catalogue", "network")
SETTINGS = {
    "window": {"forgetting": SlidingWindow(4)},
    "discounting": {"forgetting": Discounting(4)},
    "both": {"forgetting": DriftDetection(20), "max_samples_per_task": 4},
}


def build(which: str, seed: int = 0, **settings: object) -> GFUCB:
    representation = NeuralClass(NETWORK) if which == "network" else None
    settings.setdefault("refit_growth", 2.0)
    if which == "network":
        settings.setdefault("fit", VariableProjection(steps=2, max_steps=2))
    return GFUCB(TASKS, representation, seed=seed, **settings)


def offered(which: str, index: int) -> Tensor:
    draws = random_stream(index, "forgetting")
    if which == "catalogue":
        return torch.stack([torch.randperm(6, generator=draws)[:ACTIONS] for _ in range(TASKS)])
    return torch.rand(TASKS, ACTIONS, COLUMNS, generator=draws, dtype=torch.float64)


def reward(inputs: Tensor, *, later: bool = False) -> Tensor:
    """Of chosen inputs; `later` rewards are the opposite ones."""
    value = inputs.double() / 5 if inputs.ndim == 1 else inputs[:, 0].clone()
    return 1 - value if later else value


def play(agent: GFUCB, which: str, rounds: range, change: float = math.inf) -> list[int]:
    actions: list[int] = []
    for index in rounds:
        decision = agent.decide(offered(which, index))
        noise = torch.randn(TASKS, generator=random_stream(index, "noise"), dtype=torch.float64)
        agent.observe(decision, reward(decision.inputs, later=index > change) + 0.01 * noise)
        actions += decision.actions.tolist()
    return actions


def samples(agent: GFUCB) -> int:
    return len(agent.state()["data.tasks"])


class TestRules:
    """All samples of two tasks have come, one after the other."""

    def kept(self, rule, count=4000, seed=3):
        tasks, arrivals = torch.arange(2 * count) % 2, torch.arange(2 * count) // 2
        found = rule.kept(tasks, arrivals, torch.tensor([count, count]), seed)
        return None if found is None else arrivals[found]

    def test_a_window_keeps_the_last(self):
        assert self.kept(SlidingWindow(100)).tolist() == [3900 + i // 2 for i in range(200)]
        assert self.kept(SlidingWindow(3900)) is None  # less than an eighth too many

    def test_discounting_keeps_a_sample_with_a_probability_that_falls_with_its_age(self):
        ages = 3999 - self.kept(Discounting(500))
        for low in (0, 500, 1000):
            expected = 2 * 500 * (math.exp(-low / 500) - math.exp(-low / 500 - 1))
            assert int(((ages >= low) & (ages < low + 500)).sum()) == pytest.approx(expected, 0.15)

    def test_a_reservoir_is_a_random_part(self):
        arrivals = self.kept(Reservoir(400)).double()
        assert len(arrivals) == 800
        assert float(arrivals.mean()) == pytest.approx(2000, abs=150)
        assert float(arrivals.std()) == pytest.approx(4000 / math.sqrt(12), rel=0.1)

    def test_a_kept_sample_of_a_reservoir_was_always_kept(self):
        early = set(self.kept(Reservoir(50), count=400).tolist())
        late = {int(i) for i in self.kept(Reservoir(50), count=800) if i < 400}
        assert late <= early

    @pytest.mark.parametrize("rule", [SlidingWindow, Discounting, Reservoir])
    @pytest.mark.parametrize("number", [0, -1, math.nan, "many"])
    def test_absurd_numbers_are_refused(self, rule, number):
        with pytest.raises(InvalidInputError, match="samples must be"):
            rule(number)


@pytest.mark.parametrize("which", WHICH)
class TestAgents:
    @pytest.mark.parametrize("name", SETTINGS)
    def test_a_restored_agent_continues_to_the_last_bit(self, which, name):
        agent, other = (build(which, **SETTINGS[name]) for _ in range(2))
        # The first reward, which is dropped later, is the smallest.
        decision = agent.decide(offered(which, 99))
        agent.observe(decision, [-0.5] * TASKS)
        play(agent, which, range(7))
        other.load_state(agent.state())
        for one in (agent, other):
            play(one, which, range(7, 11))
        assert agent.state().keys() == other.state().keys()
        for key, tensor in agent.state().items():
            assert torch.equal(tensor, other.state()[key]), key

    def test_samples_are_bounded(self, which):
        for name in ("window", "both"):
            agent = build(which, **SETTINGS[name])
            play(agent, which, range(7))
            assert samples(agent) == 4 * TASKS
            assert agent.learner.num_samples == 7 * TASKS

    def test_heads_are_those_of_the_kept_samples(self, which):
        agent = build(which, refit_growth=100.0, forgetting=SlidingWindow(4))
        play(agent, which, range(10))
        learner = agent.learner if which == "network" else agent.learner.chosen
        center, data, found = learner.fit_state(offered(which, 0).flatten(0, 1))
        features = features_of(center.representation, data.inputs)
        targets = data.targets - center.offset
        if which == "network":
            expected = HeadStatistics.of(features, data.tasks, targets, TASKS)
            assert torch.allclose(found.grams, expected.grams)
            assert torch.allclose(found.moments, expected.moments)
            return
        none = found.tries.where(found.tries.isinf(), 0.0)
        expected = replace(found, tries=none).given(features, data.tasks, targets)
        assert torch.allclose(found.covariances.whole, expected.covariances.whole)
        assert torch.allclose(found.heads, expected.heads)
        assert torch.equal(found.tries, expected.tries)

    def test_fits_go_on_when_the_number_of_samples_does_not_grow(self, which):
        agent = build(which, forgetting=SlidingWindow(2))
        play(agent, which, range(5))
        before = agent.learner.num_fits
        play(agent, which, range(5, 12))
        assert agent.learner.num_fits >= before + 2

    def test_without_an_alarm_nothing_changes(self, which):
        one, other = build(which), build(which, forgetting="auto")
        assert play(one, which, range(8)) == play(other, which, range(8))
        assert samples(one) == samples(other)
        for key, tensor in one.state().items():
            assert torch.equal(tensor, other.state()[key]), key

    @pytest.mark.slow
    def test_a_change_is_found_and_the_past_is_forgotten(self, which):
        settings = {"fit": VariableProjection(steps=10)} if which == "network" else {}
        agent = build(which, forgetting="auto", refit_growth=1.3, **settings)
        play(agent, which, range(60), change=30)
        data = (agent.learner if which == "network" else agent.learner.chosen).data
        is_old = (data.targets - reward(data.inputs, later=True)).abs() > 0.1
        assert int(is_old.sum()) <= TASKS  # the round before the change
        assert len(data) <= 30 * TASKS

    def test_added_tasks_have_a_memory(self, which):
        agent = build(which, **SETTINGS["both"])
        play(agent, which, range(3))
        agent.add_tasks(2)
        for index in range(3):
            decision = agent.decide(offered(which, index)[:2], tasks=[4, 5])
            agent.observe(decision, reward(decision.inputs))
        assert agent.state()["memory.seen"].tolist() == [3] * 6

    @pytest.mark.parametrize(
        ("key", "change", "message"),
        [
            ("memory.arrivals", lambda t: t + 100, "arrivals.* do not number"),
            ("memory.arrivals", lambda t: torch.zeros_like(t), "arrivals.* do not number"),
            ("memory.arrivals", lambda t: t[:-1], "shape"),
            ("memory.seen", lambda t: t * 0, "do not number"),
            ("memory.dropped", lambda t: t + 10_000, "dropped samples"),
            ("memory.drift.tasks", lambda t: t - 1, "between 0"),
            ("memory.drift.starts", lambda t: t + 10_000, "more samples than tasks"),
            ("memory.drift.ratios", lambda t: t / 0, "finite"),
        ],
    )
    def test_changed_states_are_refused(self, which, key, change, message):
        agent, other = (build(which, **SETTINGS["both"]) for _ in range(2))
        play(agent, which, range(2))
        with pytest.raises(InvalidInputError, match=message):
            other.load_state(agent.state() | {key: change(agent.state()[key])})
        assert other.learner.num_samples == 0

    def test_the_state_of_an_agent_that_forgets_otherwise_is_refused(self, which):
        agent = build(which, **SETTINGS["window"])
        play(agent, which, range(3))
        with pytest.raises(InvalidInputError, match="memory"):
            build(which).load_state(agent.state())

    def test_an_agent_with_a_log_is_rebuilt(self, which, tmp_path):
        settings = SETTINGS["both"] | {"value_range": (0.0, 1.0)}
        if which == "network":
            settings["representation"] = build(which).representation_class
        with Agent(log=tmp_path / "log", **settings) as agent:
            for index in range(6):
                decision = agent.decide(offered(which, index), tasks=list("abcd"))
                agent.observe(decision, reward(decision.inputs).tolist())
            state = {key: tensor.clone() for key, tensor in agent.state().items()}
        (tmp_path / "log.checkpoint").unlink()
        with Agent.from_log(tmp_path / "log", **settings) as rebuilt:
            assert rebuilt.state().keys() == state.keys()
            assert all(torch.equal(tensor, state[key]) for key, tensor in rebuilt.state().items())


def test_logs_are_learned_in_order():
    inputs = torch.rand(400, COLUMNS, generator=random_stream(0, "log"), dtype=torch.float64)
    for which in ("table", "network"):
        agent = build(which, forgetting=SlidingWindow(10))
        agent.learn(torch.arange(400) % TASKS, inputs, inputs[:, 0])
        kept = agent.state()["data.inputs"]
        assert 40 <= len(kept) <= 44
        assert torch.equal(kept, inputs[-len(kept) :])


@pytest.mark.slow
def test_one_task_that_changes_does_not_reset_the_others():
    agent = build("table", forgetting="auto")
    for index in range(90):
        decision = agent.decide(offered("table", index))
        rewards = reward(decision.inputs)
        if index >= 40:
            rewards[2] = 1 - rewards[2]
        agent.observe(decision, rewards + 0.01 * math.sin(37 * index))
    counts = torch.bincount(agent.state()["data.tasks"])
    assert counts.tolist()[:2] == [90, 90]
    assert counts[2] <= 51
    assert counts[3] == 90


def test_the_setting_is_part_of_the_description():
    assert "forgetting" not in GFUCB(1).settings()
    settings = GFUCB(1, forgetting="auto", max_samples_per_task=9).settings()
    assert settings["forgetting"] == "DriftDetection(rewards_per_alarm=10000.0)"
    assert settings["max_samples_per_task"] == "9"


@pytest.mark.parametrize("value", ["always", 5, SlidingWindow, Reservoir(3)])
def test_other_kinds_of_forgetting_are_refused(value):
    with pytest.raises(InvalidInputError, match="forgetting must be SlidingWindow"):
        GFUCB(1, forgetting=value)


def test_replicas_in_a_batch_keep_all_samples():
    with pytest.raises(InvalidInputError, match="keep all samples"):
        BatchedAgents([build("network", forgetting="auto")])
