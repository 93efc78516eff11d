"""Logs in tables and files, saved agents as policies, and `gfucb evaluate`."""

import json

import numpy as np
import pandas as pd
import pytest
import torch

import gfucb
from gfucb.cli.main import main
from gfucb.core.errors import DataFileError, GFUCBError, InvalidInputError, SavedStateError
from gfucb.evaluation import LogColumns, UniformPolicy, evaluate, log_of_decisions, log_of_table
from gfucb.evaluation.agent_files import agent_policy, restored_agent
from gfucb.evaluation.table_logs import NamedLog
from gfucb.runs.log_files import read_log
from gfucb.runs.policy_registry import named_policy
from gfucb.tables import Schema

PROBABILITIES = {"none": 0.5, "coupon": 0.3, "bundle": 0.2}
COLUMNS = LogColumns(action="promotion", task="store")


def make_table(rows: int = 150) -> pd.DataFrame:
    draws = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "store": draws.choice(["Oslo", "Lima"], rows),
            "visitors": draws.integers(100, 999, rows),
            "weather": draws.choice(["sun", "rain"], rows),
            "promotion": draws.choice(list(PROBABILITIES), rows, p=list(PROBABILITIES.values())),
        }
    )
    table["probability"] = table["promotion"].map(PROBABILITIES)
    is_rewarded = draws.random(rows) < np.where(table["promotion"] == "coupon", 0.7, 0.3)
    return table.assign(reward=is_rewarded.astype(float))


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return make_table()


@pytest.fixture(scope="module")
def saved_agent(table, tmp_path_factory):
    path = tmp_path_factory.mktemp("agents") / "agent.safetensors"
    roles = {"task": "store", "action": "promotion", "reward": "reward"}
    schema = Schema.of(table, **roles, ignore=["probability"])
    agent = gfucb.GFUCB(schema.num_tasks, seed=3, value_range=(0.0, 1.0))
    agent.learn(*schema.samples(table))
    gfucb.save(agent, path, notes={"schema": schema.to_json()})
    return path, agent, schema


def test_a_table_becomes_a_log_with_names(table):
    named = log_of_table(table, COLUMNS)
    assert named.action_names == ("bundle", "coupon", "none")
    assert named.task_names == ("Lima", "Oslo")
    names = [named.action_names[action] for action in named.log.actions.tolist()]
    assert names == table["promotion"].tolist()
    assert named.log.tasks.tolist() == (table["store"] == "Oslo").astype(int).tolist()
    assert named.log.rewards.tolist() == table["reward"].tolist()
    # visitors, weather (two kinds and others), three actions; probabilities are no context
    assert named.log.candidates.shape == (150, 3, 7)
    assert named.action("coupon") == 1
    with pytest.raises(InvalidInputError, match="no action 'free'"):
        named.action("free")
    assert NamedLog(named.log).action("2") == 2


def test_probabilities_of_all_actions_and_available_actions():
    table = {
        "action": ["a", "b", "a"],
        "probability": [0.25, 0.5, 1.0],
        "reward": [True, False, True],
        "p:a": [0.25, 0.5, 1.0],
        "p:b": [0.75, 0.5, None],
        "offered": ["a|b", "b | a", "a"],
        "note": ["x", "y", "z"],
    }
    columns = LogColumns(available="offered", prefix="p:", ignore=("note",))
    log = log_of_table(table, columns).log
    assert log.action_probabilities.tolist() == [[0.25, 0.75], [0.5, 0.5], [1.0, 0.0]]
    assert log.available.tolist() == [[True, True], [True, True], [True, False]]
    assert log.candidates.shape == (3, 2, 2)  # one-hot actions only
    more = log_of_table(
        table, LogColumns(ignore=("p:a", "p:b", "offered", "note")), actions=list("cab")
    )
    assert more.action_names == ("c", "a", "b") and more.log.actions.tolist() == [1, 2, 1]


@pytest.mark.parametrize(
    ("changes", "columns", "message"),
    [
        ({}, LogColumns(action="choice"), "no column 'choice'; it has 'action'"),
        ({}, LogColumns(reward="sold"), r"LogColumns\(reward=...\), on .* --columns.reward NAME"),
        ({"reward": ["$3", "$4"]}, None, r"the column 'reward' is a reward .* table\['reward'\]"),
        ({}, LogColumns(task="store"), "no column 'store'"),
        ({}, LogColumns(prefix="p:"), "starts with 'p:'"),
        ({"probability": [0.5, None]}, None, "in row 1: it is missing"),
        ({"probability": [0.5, "x"]}, None, "probability"),
        ({"probability": ["50%", "20%"]}, None, r"got text \(50%\) .* numbers from 0 to 1 before"),
        ({"probability": [50, 20]}, None, "got 50 in row 0"),
        ({"reward": [1.0, None]}, None, "got nan in row 1"),
        ({"action": ["a", None]}, None, "row 1 is missing"),
        ({"offered": ["b", "b"]}, LogColumns(available="offered"), "in row 0 action 0 was chosen"),
        ({"offered": ["a", None]}, LogColumns(available="offered"), "row 1 is empty"),
        ({}, LogColumns(ignore=("day",)), r"no column 'day'; .* correct LogColumns\(ignore=...\)"),
        ({}, LogColumns(ignore="reward"), "ignore must be a tuple such as .* got 'reward'"),
        ({"action": [], "probability": [], "reward": []}, None, "no rows"),
    ],
)
def test_wrong_tables_are_refused(changes, columns, message):
    table = {"action": ["a", "b"], "probability": [0.5, 0.5], "reward": [1.0, 0.0]}
    with pytest.raises(InvalidInputError, match=message):
        log_of_table(table | changes, columns)


def test_what_cannot_be_a_log_names_what_can(table):
    ids = table.assign(id=[f"u{index}" for index in range(len(table))])
    for wrong, columns, message in (
        (ids, COLUMNS, r"LogColumns\(ignore=\(NAME,\)\), on the command line --columns.ignore"),
        (table, ["action"], r"columns must be LogColumns\(...\), got \['action'\]"),
        (table, LogColumns(action="reward"), "'reward' can be one part of the log only"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            log_of_table(wrong, columns)
    agent = gfucb.Agent()
    with pytest.raises(InvalidInputError, match="store must be a DecisionLog, got Agent; pass the"):
        log_of_decisions(agent)
    with pytest.raises(InvalidInputError, match=r"pass agent.model, whose tasks have the numbers"):
        evaluate(log_of_table(table, COLUMNS).log, agent)


def test_numbers_are_names_of_actions_too():
    table = {"action": [7, 10**18 + 1] * 3, "probability": [0.5] * 6, "reward": [0, 1] * 3}
    named = log_of_table(table)
    assert [named.action(name) for name in ("7", 7, 7.0, 10**18 + 1)] == [1, 1, 1, 0]


def test_a_saved_agent_reads_the_table_by_its_own_schema(table, saved_agent):
    path, agent, schema = saved_agent
    assert restored_agent(path).decide(*schema.offers(table[:2])).actions.tolist() == (
        agent.decide(*schema.offers(table[:2])).actions.tolist()
    )
    # The log has other columns, another order of rows, and only some of the actions.
    part = table[table["promotion"] != "bundle"][::-1].head(40)
    part = part.assign(weather="sun", probability=part["probability"] / 0.8)
    named = log_of_table(part, COLUMNS)
    found = agent_policy(path, named).on(named.log).action_probabilities
    for row in range(5):
        offers = schema.offers(part[row : row + 1], [["none", "coupon"]])
        (name,) = offers.chosen(agent.decide(*offers))
        assert float(found[row, named.action(str(name))]) == 1


def test_agents_that_cannot_be_built_are_refused(table, saved_agent, tmp_path):
    named = log_of_table(table, COLUMNS)
    gfucb.save(gfucb.Uniform(2), tmp_path / "uniform")
    with pytest.raises(SavedStateError, match="type Uniform"):
        agent_policy(tmp_path / "uniform", named)
    gfucb.save(saved_agent[1], tmp_path / "bare")
    with pytest.raises(SavedStateError, match="has no schema"):
        agent_policy(tmp_path / "bare", named)
    other = gfucb.GFUCB(2, action_selector=gfucb.Greedy())
    gfucb.save(other, tmp_path / "greedy")
    with pytest.raises(SavedStateError, match="action_selector"):
        restored_agent(tmp_path / "greedy")
    with pytest.raises(SavedStateError, match="no saved state"):
        restored_agent(tmp_path / "nothing")


def test_policies_are_found_by_name(table, saved_agent, restored_registries):
    named = log_of_table(table, COLUMNS)
    same = evaluate(named.log, named_policy("uniform", named), estimators=["ips"])
    assert same["ips"] == evaluate(named.log, UniformPolicy(), estimators=["ips"])["ips"]

    @gfucb.runs.register_policy("first", description="The first action.")
    def first(argument, named):
        return lambda log: np.eye(log.num_actions)[[int(argument or 0)] * len(log)]

    for words in (("first", "action=bundle"), ("first=2", "action=none")):
        one, other = (named_policy(word, named).on(named.log).weights for word in words)
        assert one.tolist() == other.tolist()
    for word in ("action", "agent=", "uniform=3", "logged=", "best", "action=free"):
        with pytest.raises(GFUCBError):
            named_policy(word, named)


def test_files_are_read_by_the_ending_of_their_name(table, tmp_path):
    for name in ("log.csv", "log.csv.gz"):
        table.to_csv(tmp_path / name, index=False)
        assert len(read_log(tmp_path / name, COLUMNS).log) == 150
    schema = Schema.of(table, action="promotion")
    for name, given in (("schema", schema), ("missing_reward", 0.0)):
        with pytest.raises(InvalidInputError, match=f"is a table: {name} are of decision logs"):
            read_log(tmp_path / "log.csv", COLUMNS, **{name: given})
    (tmp_path / "none.csv").write_text("action,probability,reward\nNone,1,2\ntea,1,3\n")
    assert read_log(tmp_path / "none.csv").action_names == ("None", "tea")  # no gap
    (tmp_path / "cut.csv.gz").write_bytes((tmp_path / "log.csv.gz").read_bytes()[:99])
    (tmp_path / "log.txt").write_text("action\n")
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "log.parquet").write_text("no parquet")
    for name, message in {
        "log.txt": "does not end with .csv",
        "empty.csv": "has no rows",
        "cut.csv.gz": "cannot be read as CSV",
        "log.parquet": "install pyarrow or polars|cannot be read as Parquet",
        "missing.csv": "there is no log",
    }.items():
        with pytest.raises(DataFileError, match=message):
            read_log(tmp_path / name, COLUMNS)


def test_parquet_is_read_without_pyarrow(table, tmp_path):
    polars = pytest.importorskip("polars")
    polars.DataFrame(table.to_dict("list")).write_parquet(tmp_path / "log.parquet")
    table.to_csv(tmp_path / "log.csv", index=False)
    one, other = (read_log(tmp_path / f"log.{kind}", COLUMNS).log for kind in ("parquet", "csv"))
    assert torch.equal(one.candidates, other.candidates) and torch.equal(one.rewards, other.rewards)


def test_the_command_prints_a_table_and_writes_json(table, saved_agent, tmp_path, capsys):
    table.to_csv(tmp_path / "log.csv", index=False)
    policies = ["logged", "uniform", "action=coupon", f"agent={saved_agent[0]}"]
    words = ["evaluate", str(tmp_path / "log.csv"), "--estimators", "ips", "snips"]
    words += ["--columns.action", "promotion", "--columns.task", "store", "--policy", *policies]
    main([*words, "--json", str(tmp_path / "out.json"), "--sequence", "betting"])
    text = capsys.readouterr().out
    assert "95% interval" in text and "coupon" in text and "at all times" in text
    content = json.loads((tmp_path / "out.json").read_text())
    assert list(content) == policies
    value = content["logged"]["estimates"][0]["value"]
    assert value == pytest.approx(table["reward"].mean())
    assert content["action=coupon"]["estimates"][1]["value"] > 0.5


def test_the_command_explains_what_is_wrong(table, tmp_path, capsys):
    table.assign(probability=0.0).to_csv(tmp_path / "log.csv", index=False)
    words = ["evaluate", str(tmp_path / "log.csv"), "--columns.action", "promotion"]
    with pytest.raises(SystemExit) as stop:
        main(words)
    assert stop.value.code == 2
    assert "above 0 and at most 1, got 0 in row 0" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main([*words, "--policy"])
    assert "--policy needs a name, such as uniform" in capsys.readouterr().err
    table.head(3).assign(reward=[0, 1, 0]).to_csv(tmp_path / "log.csv", index=False)
    main([*words, "--estimators", "ips", "snips", "--policy", "uniform"])
    assert "uniform: the effective sample size is" in " ".join(capsys.readouterr().out.split())
