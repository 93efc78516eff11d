"""Logs of older versions of the format."""

import gzip
from pathlib import Path

import pytest
import torch
from serving_cases import assert_same, play, state_of

from gfucb import GFUCB, Agent, DecisionLog
from gfucb.core.errors import DecisionLogError
from gfucb.serving import log_schema as schema
from gfucb.serving.opening import rebuild


class TestVersion1:
    """A log that the library wrote before version 2 of the format, with fits in the background."""

    @pytest.fixture
    def path(self, tmp_path):
        content = gzip.decompress((Path(__file__).parent / "data/log_version_1.gz").read_bytes())
        (tmp_path / "log").write_bytes(content)
        return tmp_path / "log"

    def test_can_be_read_as_it_is(self, path):
        with DecisionLog(path, read_only=True) as log:
            assert log._query("PRAGMA user_version") == [(1,)]
            assert log.last_decision() == 5
            first = next(log.events(0, ["observe"]))
            assert "defers_first_fit" not in first.detail

    def test_is_migrated_and_continues(self, path):
        with Agent.from_log(path, refit="background", seed=0) as agent:
            assert agent.log._query("PRAGMA user_version") == [(schema.VERSION,)]
            assert agent.tasks == ("oslo", ("bergen", 2), "bodo")
            assert agent.model.learner.num_samples == 8
            assert agent.model.learner.num_fits >= 4  # the first one at once, as then
            known, late = (agent.log.decision(5).rows[row] for row in (0, 1))
            ids = [f"8d52ce9dbc29ce84-5.{row.row}" for row in (known, late)]
            reward = agent.log.row_states(5)[0][1]
            assert agent.observe(ids, [reward, 0.5]) == 1
            play(agent, range(2), ["oslo", "bodo"])
            agent.fit()
            state = state_of(agent)
        path.with_name("log.checkpoint").unlink()
        with Agent.from_log(path, refit="background", seed=0) as again:
            assert again.model.learner.num_samples >= 9
            assert_same(again, state)


class TestVersion2:
    """A log of version 2 of a wide table, whose background fits are of table and network."""

    @pytest.fixture
    def path(self, tmp_path):
        content = gzip.decompress((Path(__file__).parent / "data/log_version_2.gz").read_bytes())
        (tmp_path / "log").write_bytes(content)
        return tmp_path / "log"

    def test_is_migrated_and_continues(self, path):
        with Agent.from_log(path, refit="background", seed=0) as agent:
            assert agent.log._query("PRAGMA user_version") == [(schema.VERSION,)]
            assert agent.tasks == ("oslo", "bergen")
            assert agent.model.learner.num_samples == 48
            assert agent.model.learner.num_fits == 9  # both models in every fit, as then
            assert agent.observe("aad3243752e3746d-25.1", 0.5) == 1
            offered = torch.zeros(2, 2, 16).bernoulli(generator=torch.Generator().manual_seed(0))
            agent.observe(agent.decide(offered, tasks=["bodo", "oslo"]), [0.5, 0.6])
            state = state_of(agent)
            assert agent.model.num_tasks == 3
        path.with_name("log.checkpoint").unlink()
        with Agent.from_log(path, refit="manual", seed=0) as again:
            assert_same(again, state)


def test_a_log_of_an_older_version_is_migrated(tmp_path, monkeypatch):
    with Agent(log=tmp_path / "log") as agent:
        play(agent, range(3), ["a"])
        state = state_of(agent)
    columns = schema.TABLES["events"] + ", remark TEXT"
    monkeypatch.setattr(schema, "VERSION", schema.VERSION + 1)
    monkeypatch.setitem(schema.TABLES, "events", columns)
    migration = ("ALTER TABLE events ADD COLUMN remark TEXT",)
    monkeypatch.setitem(schema.MIGRATIONS, schema.VERSION - 1, migration)
    with pytest.raises(DecisionLogError, match="older version"):
        DecisionLog(tmp_path / "log", read_only=True)
    DecisionLog(tmp_path / "log").close()
    monkeypatch.setattr(DecisionLog, "add_event", None)  # it writes the columns of this version
    with DecisionLog(tmp_path / "log") as log:
        assert log._query("PRAGMA user_version") == [(schema.VERSION,)]
        model, _ = rebuild(log, GFUCB(1))
        assert_same(model.agent, state)
