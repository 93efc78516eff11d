"""Logs as Arrow tables and Parquet files: nothing is lost, and estimates are the same."""

import pandas as pd
import pyarrow as pa
import pytest
import torch
from pyarrow import parquet

import gfucb
from gfucb.cli.main import main
from gfucb.core.errors import InvalidInputError
from gfucb.core.random import random_stream
from gfucb.evaluation import (
    FixedActionPolicy,
    LogColumns,
    LoggedDecisions,
    NamedLog,
    evaluate,
    log_of_decisions,
    log_of_table,
)
from gfucb.evaluation.arrow_logs import KEY, arrow_table, decision_table, log_of_arrow
from gfucb.models import IdentityRepresentation
from gfucb.runs.log_files import read_log

TASKS = ["oslo", ("bergen", 2)]
CATALOGUES = [{"tea": [0.1, 1.0], "juice": [0.7, 0.2]}, {"juice": [0.7, 0.2], "milk": [0.4, 0.3]}]


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """A decision log with named tasks and actions; the last decision has no reward."""
    path = tmp_path_factory.mktemp("logs") / "agent.log"
    known = gfucb.FiniteClass([IdentityRepresentation()])
    made = gfucb.Randomised(gfucb.GFUCB(1, known, seed=0), epsilon=0.6)
    with gfucb.Agent(made, log=path) as agent:
        for index in range(21):
            offered = CATALOGUES[index % 2]
            decision = agent.decide_from(offered, tasks=TASKS)
            if index < 20:
                agent.observe(decision, decision.inputs[:, 0])
    return path


@pytest.fixture(scope="module")
def named(path):
    with gfucb.DecisionLog(path, read_only=True) as store, pytest.warns(match="2 rows without"):
        return log_of_decisions(store)


def assert_same_log(one, other):
    assert one.task_names == other.task_names and one.action_names == other.action_names
    for name in ("actions", "probabilities", "rewards", "candidates", "tasks", "available"):
        left, right = getattr(one.log, name), getattr(other.log, name)
        assert torch.equal(left, right) and left.dtype == right.dtype, name
    assert torch.equal(one.log.action_probabilities, other.log.action_probabilities)
    assert one.log.num_tasks == other.log.num_tasks


def test_a_decision_log_passes_through_arrow_and_parquet_unchanged(named, tmp_path):
    table = arrow_table(named)
    assert table["action"].to_pylist()[0] in ("tea", "juice")
    assert set(table["task"].to_pylist()) == {"oslo", '["bergen", 2]'}
    assert_same_log(log_of_arrow(table), named)
    file = tmp_path / "log.parquet"
    parquet.write_table(table, file)
    assert_same_log(log_of_arrow(parquet.read_table(file)), named)
    assert_same_log(read_log(file), named)


def test_the_command_evaluates_such_a_file_like_the_log(path, named, tmp_path, capsys):
    file = tmp_path / "log.parquet"
    parquet.write_table(arrow_table(named), file)
    printed = []
    for log in (path, file):
        words = ["--policy", "uniform", "action=juice", "--estimators", "ips", "snips"]
        main(["evaluate", str(log), *words])
        printed.append([line for line in capsys.readouterr().out.splitlines() if "juice" in line])
    assert printed[0] == printed[1] and printed[0]


def test_an_agent_learns_from_some_rows_of_a_table(named):
    table = arrow_table(named)
    some = log_of_arrow(table.slice(0, 10)).log
    assert torch.equal(some.rewards, named.log.rewards[:10])
    agent = gfucb.linucb(some.num_tasks)
    agent.learn(some.tasks, some.chosen_inputs, some.rewards)
    assert agent.diagnostics()


def test_shapes_and_types_of_inputs_are_kept(tmp_path):
    draws = random_stream(0, "images")
    images = torch.randint(0, 255, (6, 3, 2, 2), generator=draws).to(torch.uint8)
    log = LoggedDecisions([0, 1, 2] * 2, [0.5] * 6, range(6), images)
    parquet.write_table(arrow_table(log), tmp_path / "log.parquet")
    found = log_of_arrow(parquet.read_table(tmp_path / "log.parquet"))
    assert torch.equal(found.log.candidates, images) and found.log.candidates.dtype == torch.uint8
    assert found.action_names == () and found.log.action_probabilities is None


def test_names_that_look_alike_stay_different():
    log = LoggedDecisions([0, 1, 1], [0.5] * 3, [1.0, 0.0, 0.0])
    named = NamedLog(log, ("1", 1))
    assert log_of_arrow(arrow_table(named)).action_names == ("1", 1)
    assert torch.equal(log_of_arrow(arrow_table(named)).log.actions, log.actions)


def test_a_plain_arrow_table_is_a_log():
    draws = random_stream(0, "plain")
    frame = pd.DataFrame(
        {
            "weather": ["sun", "rain", "sun", None] * 50,
            "visitors": torch.rand(200, generator=draws).tolist(),
            "promotion": ["none", "coupon"] * 100,
            "probability": [0.5] * 200,
            "revenue": [0.2, 0.9] * 100,
        }
    )
    columns = LogColumns(action="promotion", reward="revenue")
    own = log_of_table(pa.Table.from_pandas(frame), columns)
    assert torch.equal(own.log.candidates, log_of_table(frame, columns).log.candidates)
    value = evaluate(own.log, FixedActionPolicy(own.action("coupon")), estimators=["ips"])["ips"]
    assert value.value == pytest.approx(0.9)


def test_rows_of_a_decision_log_have_types(path):
    with gfucb.DecisionLog(path, read_only=True) as store:
        table = decision_table(store, inputs=True)
        assert decision_table(store).column_names == table.column_names[:13]
    assert table.schema.field("time").type == pa.timestamp("ms", "UTC")
    assert table.schema.field("reward").type == pa.float64()
    assert table["reward"].null_count == 2 and table.num_rows == 42
    chosen = table["input 0"].to_pylist()[:40]
    assert chosen == table["reward"].to_pylist()[:40]


@pytest.mark.parametrize("command", ["csv", "parquet"])
def test_the_command_exports_with_pyarrow(command, path, tmp_path, capsys):
    out = tmp_path / f"rows.{command}"
    main(["log", str(path), "--out", str(out), "--inputs"])
    assert "wrote 42 rows" in capsys.readouterr().out
    read = pd.read_csv if command == "csv" else pd.read_parquet
    assert read(out)["reward"].notna().sum() == 40


def test_incomplete_tables_are_refused(named):
    table = arrow_table(named)
    plain = table.replace_schema_metadata(None)
    with pytest.raises(InvalidInputError, match=r"not made by arrow_table.*log_of_table"):
        log_of_arrow(plain)
    with pytest.raises(InvalidInputError, match=r"not a complete log.*reward"):
        log_of_arrow(table.drop_columns(["reward"]))
    renamed = table.set_column(1, "action", pa.array(["wine"] * table.num_rows))
    with pytest.raises(InvalidInputError, match="'action' has an unknown name 'wine', row 0"):
        log_of_arrow(renamed)
    later = table.replace_schema_metadata(
        {KEY: table.schema.metadata[KEY].replace(b": 1,", b": 9,", 1)}
    )
    with pytest.raises(InvalidInputError, match="version 9"):
        log_of_arrow(later)
