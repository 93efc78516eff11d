"""Tables in both directions: history that is learned, decisions by name, and logs as tables."""

import csv

import pytest
from serving_cases import assert_same, candidates, play, state_of

from gfucb import Agent, DecisionLog, InvalidInputError
from gfucb.cli.main import main
from gfucb.core.errors import DataFileError
from gfucb.serving.log_tables import COLUMNS, RowFilter, log_rows
from gfucb.tables import Schema

HISTORY = """\
store,weather,visitors,promotion,revenue
Oslo,rain,910,none,120
Bergen,rain,430,coupon,260
Oslo,sun,870,coupon,300
"""


@pytest.fixture
def history(tmp_path):
    path = tmp_path / "history.csv"
    path.write_text(HISTORY)
    with open(path) as file:
        rows = list(csv.DictReader(file))
    return path, Schema.of(rows, task="store", action="promotion", reward="revenue"), rows


def test_a_table_and_its_file_are_learned_in_one_call(history, tmp_path):
    path, schema, rows = history
    one, other = Agent(), Agent(log=tmp_path / "log")
    assert one.learn_table(path, schema) == other.learn_table(rows, schema) == 3
    assert one.tasks == ("Oslo", "Bergen")
    assert_same(one, state_of(other))
    other.close()
    with Agent(log=tmp_path / "log") as again:
        assert_same(again, state_of(one))


def test_a_source_is_learned_once_also_after_a_restart(history, tmp_path):
    path, schema, rows = history
    for _ in range(2):  # a program that imports its history whenever it starts
        with Agent(log=tmp_path / "log") as agent:
            agent.learn_table(path, schema, source="history.csv")
            assert agent.model.learner.num_samples == 3
    with Agent(log=tmp_path / "log") as agent:
        agent.retire_task("Oslo")
        assert agent.learn_table(rows, schema, source="history.csv") == 0
        before = state_of(agent)
        with pytest.raises(InvalidInputError, match="was learned before, with other samples"):
            agent.learn_table(rows[:2], schema, source="history.csv")
        with pytest.raises(InvalidInputError, match="the name of a source"):
            agent.learn_table(rows[:2], schema, source=[])
        assert_same(agent, before)
        assert agent.learn_table(rows[:2], schema, source="april.csv") == 2
        assert agent.learn_table(rows[:2], schema) == 2


def test_a_schema_that_encodes_otherwise_is_refused_after_a_restart(history, tmp_path):
    path, schema, rows = history
    today = [{"store": "Oslo", "weather": "rain", "visitors": 900}]
    with Agent(log=tmp_path / "log") as agent:
        with pytest.raises(InvalidInputError, match="no table was learned"):
            agent.logged_schema()
        agent.learn_table(path, schema)
        agent.decide_table(today, schema)
    others = [
        ("the column 'visitors'", [*rows, rows[0] | {"visitors": "5000"}]),
        ("the column 'weather'", [row | {"weather": row["weather"].upper()} for row in rows]),
        ("the actions", [row | {"promotion": row["promotion"].upper()} for row in rows]),
    ]
    with Agent(log=tmp_path / "log") as agent:
        before = state_of(agent)
        for what, table in others:
            other = Schema.of(table, task="store", action="promotion", reward="revenue")
            for call in (agent.learn_table, agent.decide_table, agent.predict_table):
                with pytest.raises(InvalidInputError, match=f"encodes {what} otherwise"):
                    call(table, other)
        assert_same(agent, before)
        again = agent.logged_schema()
        assert agent.decide_table([today[0] | {"store": "Bodo"}], again).tasks == ("Bodo",)
        same = Schema.of(rows, task="store", action="promotion", reward="revenue")
        agent.decide_table(today, same.with_tasks(["Bodo", "Lima"]))
        assert len(list(agent.log.events(0, ["schema"]))) == 1


def test_decisions_for_a_table_have_names(history):
    _, schema, rows = history
    agent, closed = Agent(), Agent(create_tasks=False, tasks=["Oslo", "Bergen"])
    agent.learn_table(rows, schema)
    today = {"store": ["Bodo", "Oslo"], "weather": ["sun", "rain"], "visitors": [100, 900]}
    for call in (closed.decide_table, closed.predict_table):
        with pytest.raises(InvalidInputError, match="Bodo"):
            call(today, schema)
    assert agent.predict_table(today, schema).tasks == ("Bodo", "Oslo")
    decision = agent.decide_table(today, schema)  # Bodo is new, as in `decide`
    assert decision.tasks == ("Bodo", "Oslo") and agent.tasks == ("Oslo", "Bergen", "Bodo")
    assert set(decision.action_names) <= {"none", "coupon"}
    assert agent.log.decision(1).action_names == ('"coupon"', '"none"')


@pytest.mark.parametrize("table", ["missing.csv", 7, None, {"store": ["Oslo"]}])
def test_tables_that_cannot_be_read_are_refused(history, table):
    agent = Agent()
    with pytest.raises((DataFileError, InvalidInputError)):
        agent.learn_table(table, history[1])
    with pytest.raises(InvalidInputError, match="Schema"):
        agent.learn_table(history[2], None)
    assert agent.tasks == ()


@pytest.fixture
def log_path(tmp_path, clock):
    with DecisionLog(tmp_path / "log", clock=clock) as log, Agent(log=log) as agent:
        play(agent, range(3), ["oslo", ("bergen", 2)])
        clock.now += 86400
        agent.decide_from({"tea": [0.0, 1.0, 0.5], "milk": [1.0, 0.5, 0.5]}, tasks=["oslo"])
        agent.deactivate(agent.decide(candidates(1), tasks=["oslo"]))
    return tmp_path / "log"


def test_a_log_is_a_table(log_path):
    with DecisionLog(log_path, read_only=True) as log:
        rows = list(log_rows(log, inputs=True))
        assert [row["task"] for row in rows[:2]] == ["oslo", '["bergen", 2]']
        assert [row["status"] for row in rows] == ["rewarded"] * 6 + ["open", "inactive"]
        assert rows[6]["action_name"] in ("tea", "milk") and rows[0]["action_name"] is None
        assert rows[0]["reward"] is not None and "input 2" in rows[0]
        assert rows[0]["time"].startswith("1970-01-12T13:46:40")
        newest = list(log_rows(log, RowFilter(["oslo"], ["rewarded"]), newest_first=True))
        assert [row["id"].split("-")[1] for row in newest] == ["3.0", "2.0", "1.0"]
        assert len(list(log_rows(log, RowFilter(since=1_000_001.0)))) == 2
        with pytest.raises(InvalidInputError, match="status"):
            RowFilter(statuses=["lost"])


def test_the_command_shows_filters_and_exports(log_path, tmp_path, capsys):
    main(["log", str(log_path), "--verify", "--last", "3"])
    shown = capsys.readouterr().out
    assert "5 decisions" in shown and "inactive" in shown
    out = tmp_path / "rows.csv"
    main(["log", str(log_path), "--status", "rewarded", "open", "--out", str(out), "--inputs"])
    with open(out) as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 7 and set(COLUMNS) < set(rows[0])
    with DecisionLog(log_path, read_only=True) as log:
        assert float(rows[0]["reward"]) == log.row_states(1)[0][1]
    main(["log", str(log_path), "--until", "1970-01-02", "--out", str(out)])
    assert out.read_text().strip() == ",".join(COLUMNS)


def test_the_command_shows_whole_ids_and_names_as_they_are(tmp_path, capsys):
    names = ["[/red]", "[bold]north", "\x1b[31mx", "a\nb"]
    with Agent(log=tmp_path / "log") as agent:
        ids = agent.decide(candidates(4), tasks=names).ids
    main(["log", str(tmp_path / "log")])
    shown = capsys.readouterr().out
    assert all(text in shown for text in ids)
    assert all(name in shown for name in ["[/red]", "[bold]north", r"\x1b[31mx", r"a\nb"])


def test_the_command_writes_parquet(log_path, tmp_path):
    polars = pytest.importorskip("polars")
    out = tmp_path / "rows.parquet"
    main(["log", str(log_path), "--out", str(out), "--inputs"])
    table = polars.read_parquet(out)
    with DecisionLog(log_path, read_only=True) as log:
        assert table.to_dicts() == list(log_rows(log, inputs=True))


def test_the_command_refuses_what_it_cannot_do(log_path, tmp_path, capsys):
    for words in (
        [str(tmp_path / "missing")],
        [str(log_path), "--since", "yesterday"],
        [str(log_path), "--out", str(tmp_path / "rows.txt")],
        [str(log_path), "--out", str(log_path)],
        [str(log_path), "--task", "paris"],
        [str(log_path), "--last", "0"],
        [str(log_path), "--inputs"],
    ):
        with pytest.raises(SystemExit):
            main(["log", *words])
        assert "gfucb: " in capsys.readouterr().err
