"""Decision logs: what they hold, agents rebuilt from them, and files that are refused."""

import gc
import shutil
import sqlite3

import numpy as np
import pytest
import torch
from serving_cases import ARMS, COLUMNS, assert_same, candidates, play, reward, state_of

from gfucb import (
    GFUCB,
    Agent,
    DecisionLog,
    LinearClass,
    NeuralClass,
    Randomised,
    VariableProjection,
)
from gfucb.core.errors import DecisionLogError, GFUCBError
from gfucb.core.log_records import RowStatus
from gfucb.estimation import Contrastive
from gfucb.models.table_sizes import FEWEST_FREQUENCIES
from gfucb.serving.stored_arrays import DTYPES, StoredArray


def network() -> NeuralClass:
    layers = torch.nn.Sequential(torch.nn.Linear(COLUMNS, 4), torch.nn.Tanh())
    for parameter in layers.parameters():
        torch.nn.init.constant_(parameter, 0.1)
    return NeuralClass(layers)


def play_all(agent: Agent, first: int = 0) -> None:
    """Everything that changes an agent: tasks, late and partial rewards, samples, closed rows."""
    play(agent, range(first, first + 6), ["a", "b"])
    pending = [agent.decide(candidates(3, 50 + i), tasks=["a", "b", "c"]) for i in range(3)]
    agent.observe(pending[2][[2, 0]], [0.3, 0.1])
    if "d" not in (*agent.tasks, *agent.retired_tasks):
        agent.learn(["d", "a", "d"], candidates(3, 60)[:, 0], [0.1, 0.2, 0.3])
        agent.retire_task("b")
        agent.reopen_task("b")
        agent.retire_task("d")
    agent.deactivate(pending[0])
    agent.observe([pending[1].ids[0], pending[2].ids[1]], [0.5, 0.6])
    shared = agent.decide_from(candidates(1, 70)[0], tasks=["c", "a"])
    agent.observe(shared, reward(shared.inputs))
    masked = agent.decide(candidates(1, 71), tasks=["c"], available=[[False] * (ARMS - 1) + [True]])
    agent.observe(masked, reward(masked.inputs))
    play(agent, range(first + 6, first + 12), ["c", "e"])


AGENTS = {
    "table": {},
    "linear": {"representation": LinearClass(COLUMNS, 2)},
    "network": {
        "representation": network(),
        "fit": VariableProjection(steps=3, max_steps=3),
        "self_supervision": Contrastive(steps=2),
    },
}
PARAMS = [
    pytest.param(options, id=name, marks=[pytest.mark.slow] if "representation" in options else [])
    for name, options in AGENTS.items()
]


@pytest.mark.parametrize("options", PARAMS)
class TestRebuilding:
    def test_gives_the_lost_agent_bit_for_bit(self, options, tmp_path):
        path = tmp_path / "log"
        with Agent(log=path, **options) as agent:
            play_all(agent)
            state, tasks = state_of(agent), (agent.tasks, agent.retired_tasks)
        path.with_name("log.checkpoint").unlink()  # from the log alone
        with Agent.from_log(path, **options) as again:
            assert_same(again, state)
            assert (again.tasks, again.retired_tasks) == tasks
            play_all(again, first=20)
            later = state_of(again)
        with Agent(**options) as uninterrupted:
            play_all(uninterrupted)
            play_all(uninterrupted, first=20)
            assert_same(uninterrupted, later)


def test_items_are_rebuilt(tmp_path):
    catalogue = ["tea", "milk", "juice", "water"]

    def play_items(agent: Agent, rounds: range) -> None:
        for index in rounds:
            decision = agent.decide_from(catalogue[: 2 + index % 3], tasks=["a", "b"])
            agent.observe(decision, [len(name) / 5 for name in decision.action_names])

    with Agent(log=tmp_path / "log") as agent:
        play_items(agent, range(4))
    with Agent(log=tmp_path / "log") as again, Agent() as uninterrupted:
        play_items(again, range(4, 7))
        play_items(uninterrupted, range(7))
        assert_same(again, state_of(uninterrupted))


def test_rewards_count_once_after_a_restart(tmp_path):
    with Agent(log=tmp_path / "log") as agent:
        decision = agent.decide(candidates(2), tasks=["a", "b"])
        agent.observe(decision[0], 1.0)
    with Agent(log=tmp_path / "log") as again:
        assert again.observe(decision, [1.0, 0.5]) == 1
        assert again.model.learner.num_samples == 2
        assert again.decide(candidates(1), tasks=["a"]).id.split("-")[0] not in decision.id


def test_a_log_holds_what_was_offered_chosen_and_predicted(tmp_path):
    agent = Agent(log=tmp_path / "log")
    play(agent, range(3), ["a", "b"])
    offered = candidates(2, 9).float()
    mask = torch.tensor([[True, True, False, True], [True] * 4])
    decision = agent.decide(offered, tasks=["a", "b"], available=mask)
    with DecisionLog(tmp_path / "log", read_only=True) as log:
        found = log.decision(4)
        assert torch.equal(found.offered, offered) and found.offered.dtype == torch.float32
        assert torch.equal(found.available, mask)
        assert [row.action for row in found.rows] == decision.actions.tolist()
        assert [row.mean for row in found.rows] == decision.prediction.mean.tolist()
        assert all(row.low <= row.mean <= row.high for row in found.rows)
        assert {row.probability for row in found.rows} == {1.0}
        assert log.row_states(4) == [(RowStatus.OPEN, None)] * 2
        assert log.decision(5) is None
        assert found.event == log.last_event()[0]
        with pytest.raises(DecisionLogError, match="readonly"), log.transaction():
            log.add_event("observe", {})
    agent.close()


def test_random_decisions_are_logged_with_their_probabilities(tmp_path):
    def make(path) -> Agent:
        return Agent(Randomised(GFUCB(1, seed=2), epsilon=0.4, seed=3), log=path)

    actions = []
    for first in (0, 4):  # the second session continues the draws of the first
        with make(tmp_path / "log") as agent:
            for index in range(first, first + 4):
                decision = agent.decide(candidates(2, index), tasks=["a", "b"])
                agent.observe(decision, reward(decision.inputs))
                actions += decision.actions.tolist()
            state = state_of(agent)
    with make(None) as other:
        for index in range(8):
            decision = other.decide(candidates(2, index), tasks=["a", "b"])
            other.observe(decision, reward(decision.inputs))
            assert decision.actions.tolist() == actions[2 * index : 2 * index + 2]
            logged = other.log.decision(index + 1)
            assert torch.equal(logged.action_probabilities, decision.action_probabilities)
            assert [row.probability for row in logged.rows] == decision.probabilities.tolist()
        assert {round(p, 6) for p in decision.action_probabilities[0].tolist()} == {0.7, 0.1}
        assert_same(other, state)


def test_equal_catalogues_are_stored_once():
    agent = Agent()
    catalogue = candidates(1)[0]
    for _ in range(5):
        agent.decide_from(catalogue, tasks=["a", "b"])
    assert agent.log._query("SELECT count(*) FROM arrays") == [(1,)]


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=DTYPES)
def test_arrays_are_stored_exactly(dtype):
    tensor = (torch.arange(-6, 6) * 1.1).reshape(2, 3, 2).to(dtype)
    for given in (tensor, tensor.mT, tensor[:0], tensor[0, 0, 0], tensor[:1].expand(4, 3, 2)):
        again = StoredArray.of_tensor(given).tensor()
        assert torch.equal(again, given) and again.dtype == dtype


class TestFailures:
    """A transaction that fails leaves agent and log as they were."""

    def test_of_the_model(self, tmp_path, monkeypatch):
        agent = Agent(log=tmp_path / "log")
        play(agent, range(2), ["a", "b"])
        before, events = state_of(agent), agent.log.last_event()
        decision = agent.decide(candidates(2, 7), tasks=["a", "b"])
        with monkeypatch.context() as broken:
            broken.setattr("gfucb.bandits.gfucb.validate_feedback", lambda *_, **__: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                agent.observe(decision, [1.0, 2.0])
        assert_same(agent, before)
        assert agent.log.last_event() == events
        assert agent.observe(decision, [1.0, 2.0]) == 2
        agent.close()

    def test_of_the_disk(self, tmp_path):
        agent = Agent(log=tmp_path / "log")
        play(agent, range(2), ["a"])
        before = state_of(agent)
        pages = agent.log._query("PRAGMA page_count")[0][0]
        agent.log._connection.execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(DecisionLogError, match="full"):
            agent.decide(torch.rand(50, 9, COLUMNS, dtype=torch.float64), tasks=["b"] * 50)
        assert agent.tasks == ("a",)
        assert_same(agent, before)
        agent.close()
        with Agent(log=tmp_path / "log") as again:
            assert_same(again, before)

    def test_a_closed_agent_refuses_calls(self, tmp_path):
        agent = Agent(log=tmp_path / "log")
        agent.close()
        agent.close()
        with pytest.raises(DecisionLogError, match="closed"):
            agent.decide(candidates(1), tasks=["a"])

    def test_a_log_has_one_writer(self, tmp_path):
        with Agent(log=tmp_path / "log") as agent:
            with pytest.raises(DecisionLogError, match="in use"):
                Agent(log=tmp_path / "log")
            with pytest.raises(DecisionLogError, match="in use"):
                Agent(log=agent.log)
            agent.decide(candidates(1), tasks=["a"])
        Agent(log=tmp_path / "log").close()


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A log, and the state of the agent that wrote it."""
    path = tmp_path_factory.mktemp("logs") / "log"
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("gfucb.models.table_sizes.MOST_FREQUENCIES", FEWEST_FREQUENCIES)
        with Agent(log=path) as agent:
            play_all(agent)
            state = state_of(agent)
    return path, state


def test_a_log_that_nobody_closes_is_closed_with_its_last_reference(tmp_path, recwarn):
    for _ in range(2):  # the second would be refused if the first still held the lock
        log = DecisionLog(tmp_path / "log")
        del log
        gc.collect()
    assert not recwarn.list


class TestRefusedFiles:
    @pytest.fixture
    def path(self, written, tmp_path):
        return shutil.copy(written[0], tmp_path / "log")

    def test_that_do_not_exist(self, tmp_path):
        with pytest.raises(DecisionLogError, match="no decision log"):
            Agent.from_log(tmp_path / "log")
        with pytest.raises(DecisionLogError, match="no directory"):
            Agent(log=tmp_path / "missing" / "log")
        with pytest.raises(DecisionLogError, match="no decision log"):
            DecisionLog(tmp_path / "log", read_only=True)

    def test_of_other_kinds(self, tmp_path):
        path = tmp_path / "log"
        path.write_text("store,reward\n" * 1000)
        with pytest.raises(DecisionLogError, match="not a decision log"):
            Agent(log=path)
        path.unlink()
        with sqlite3.connect(path) as other:
            other.execute("CREATE TABLE events (event INTEGER)")
        other.close()
        with pytest.raises(DecisionLogError, match="not a decision log"):
            Agent(log=path)

    def test_of_a_newer_version(self, path):
        with sqlite3.connect(path) as other:
            other.execute("PRAGMA user_version = 99")
        other.close()
        with pytest.raises(DecisionLogError, match="version 99"):
            Agent(log=path)

    def test_with_other_tables(self, path):
        with sqlite3.connect(path) as other:
            other.execute("ALTER TABLE rows ADD COLUMN more INTEGER")
        other.close()
        with pytest.raises(DecisionLogError, match=r"'rows' .* has other columns"):
            Agent(log=path)

    def test_of_an_agent_with_other_settings(self, path):
        with pytest.raises(DecisionLogError, match="its seed is 0, this agent's is 5"):
            Agent(log=path, seed=5)

    @pytest.mark.parametrize(
        "statement",
        [
            "UPDATE rows SET reward = reward + 1 WHERE decision = 1 AND row = 0",
            "UPDATE rows SET mean = 0.5 WHERE decision = 4 AND row = 1",
            "UPDATE rows SET change_position = 1 - change_position WHERE decision = 2",
            "UPDATE rows SET change_event = NULL WHERE decision = 3",
            "UPDATE events SET detail = '{}' WHERE kind = 'observe'",
            "UPDATE events SET kind = 'learn' WHERE event = 3",
            "UPDATE decisions SET event = 0 WHERE decision = 5",
            "DELETE FROM events WHERE event = 4",
            "DELETE FROM arrays",
            "UPDATE arrays SET content = zeroblob(length(content))",
        ],
    )
    def test_in_which_something_was_changed(self, path, statement):
        with sqlite3.connect(path) as other:
            other.execute(statement)
        other.close()
        with pytest.raises(DecisionLogError, match=r"damaged|missing"):
            Agent(log=path)

    @pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 0.99])
    def test_that_are_truncated(self, path, written, share):
        content = written[0].read_bytes()
        with open(path, "wb") as file:
            file.write(content[: int(share * len(content))])
        with pytest.raises(GFUCBError, match=r"damaged|empty log"):
            Agent.from_log(path)

    @pytest.mark.slow
    def test_with_a_flipped_bit(self, path, written):
        """A flip is refused, or it is in bytes that nothing depends on."""
        content, draws = bytearray(written[0].read_bytes()), np.random.default_rng(0)
        refused = 0
        for position in draws.integers(100, len(content), size=15).tolist():
            flipped = bytearray(content)
            flipped[position] ^= 1 << int(draws.integers(8))
            with open(path, "wb") as file:
                file.write(flipped)
            path.with_name("log.checkpoint").unlink(missing_ok=True)
            try:
                with Agent(log=path) as agent:
                    assert_same(agent, written[1])
            except GFUCBError as error:
                refused += 1
                assert "damaged" in str(error) or "columns" in str(error), error
        assert refused > 3
