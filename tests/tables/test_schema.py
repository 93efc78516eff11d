"""Schemas: every kind of decision problem, names, JSON, refusals, and a file of ten lines."""

import csv
import json

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.compose import make_column_transformer
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from store_log import PROMOTIONS, log, write_csv

import gfucb
from gfucb.core.errors import InvalidInputError, SavedStateError
from gfucb.models.table_layout import TableLayout
from gfucb.tables import Category, Columns, Hashed, Number, Schema

ROLES = {"task": "store", "action": "promotion", "reward": "revenue"}
OFFERED = [
    {"promotion": "none", "discount": 0.0, "gift": False},
    {"promotion": "coupon", "discount": 10.0, "gift": False},
    {"promotion": "bundle", "discount": 5.0, "gift": True},
]


def stores() -> Schema:
    return Schema.of(log(), **ROLES)


def test_a_file_reaches_a_running_agent_in_ten_lines(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_csv(tmp_path / "history.csv", log())
    write_csv(tmp_path / "today.csv", log(3, seed=1).drop(columns=["promotion", "revenue"]))
    lines = """
        import pandas as pd
        import gfucb
        history = pd.read_csv("history.csv")
        schema = gfucb.tables.Schema.of(history, task="store", action="promotion", reward="revenue")
        agent = gfucb.GFUCB(schema.num_tasks)
        agent.learn(*schema.samples(history))
        today = pd.read_csv("today.csv")
        offers = schema.offers(today)
        decision = agent.decide(*offers)
        today["promotion"] = offers.chosen(decision)
    """.strip().splitlines()
    names: dict = {}
    assert len(lines) == 10
    exec("\n".join(line.strip() for line in lines), names)
    assert set(names["today"]["promotion"]) <= set(PROMOTIONS)
    assert {"weather missing", "visitors missing", "date Mon"} <= set(names["schema"].feature_names)
    names["agent"].observe(names["decision"], [100.0, 110.0, 120.0])


def test_a_file_read_without_pandas_has_the_same_schema(tmp_path):
    path = write_csv(tmp_path / "history.csv", log())
    with path.open() as file:
        rows = list(csv.DictReader(file))
    assert Schema.of(rows, **ROLES) == Schema.of(pd.read_csv(path), **ROLES)


def test_the_agent_finds_the_actions_after_the_context():
    schema, table = stores(), log()
    width = len(schema.feature_names)
    layout = TableLayout(width + 3, width, 3)
    assert TableLayout.of_candidates(schema.offers(table).candidates) == layout
    assert TableLayout.of_samples(schema.samples(table)[1]) == layout


def test_actions_that_the_log_does_not_have_are_found_too():
    schema = Schema.of(log(), **ROLES, actions=["gift", *PROMOTIONS, "loan"])
    assert schema.actions.labels.names == (*PROMOTIONS, "gift", "loan")
    width = len(schema.feature_names)
    layout = TableLayout.of_samples(schema.samples(log())[1])
    assert layout == TableLayout(width + 5, width, 5)


def test_candidates_and_samples_agree():
    for schema in (stores(), Schema.of(log(), **ROLES, actions=OFFERED)):
        table = log()
        offers, (tasks, inputs, rewards) = schema.offers(table), schema.samples(table)
        chosen = [offers.names[0].index(name) for name in table["promotion"]]
        assert torch.equal(offers.candidates[torch.arange(len(table)), chosen], inputs)
        assert torch.equal(offers.tasks, tasks)
        assert rewards.tolist() == table["revenue"].tolist()


def test_names_of_tasks_and_actions_keep_their_type():
    table = {"arm": [3, 1, 3], "user": [True, False, True], "x": [1.0, 2.0, 4.0]}
    schema = Schema.of(table, action="arm", task="user")
    assert schema.actions.labels.names == (1, 3) and schema.task.names == (False, True)
    offers = schema.offers({"user": ["True"], "x": [0.0]}, available=[[3]])
    assert offers.chosen(gfucb.GFUCB(2).decide(*offers)) == [3]
    assert offers.tasks.tolist() == [1]
    assert schema.tasks({"user": ["false", "TRUE"]}).tolist() == [0, 1]


def test_available_actions_are_masks_or_names():
    schema, table = stores(), log(2)
    mask = [[True, False, True], [False, True, False]]
    expected = torch.tensor(mask)
    names = [["bundle", "none"], ["coupon"]]
    for available in (mask, expected, expected.numpy(), pd.DataFrame(mask), names):
        assert torch.equal(schema.offers(table, available).available, expected)


def test_features_of_actions_are_crossed_with_the_context():
    table = {"age": [1.0, 3.0], "promotion": ["none", "bundle"]}
    schema = Schema.of(table, action="promotion", actions=OFFERED)
    age, discount = torch.tensor([-1.0, 1.0]), torch.tensor([-1.0, 1.0, 0.0]) / (2 / 3) ** 0.5
    gift = torch.tensor([0.0, 0.0, 1.0])
    candidates = schema.offers(table).candidates
    expected = torch.stack(
        torch.broadcast_tensors(
            age[:, None], gift, discount, age[:, None] * gift, age[:, None] * discount
        ),
        2,
    )
    torch.testing.assert_close(candidates, expected.double(), atol=1e-6, rtol=0)
    plain = Schema.of(table, action="promotion", actions=OFFERED, crossed=False)
    assert plain.offers(table).candidates.shape == (2, 3, 3)
    new = schema.with_actions([{"promotion": "gift", "discount": 10.0, "gift": True}])
    assert new.offers(table).names[0] == ("gift",)
    assert new.offers(table).candidates[0, 0, 2] == candidates[0, 1, 2]


def test_rows_of_a_group_are_its_candidates():
    table = {
        "request": ["r", "s", "r", "r", "s"],
        "user": [7, 8, 7, 7, 8],
        "price": [1.0, 2.0, 3.0, 4.0, 5.0],
        "clicked": [0, 1, 1, 0, 0],
    }
    schema = Schema.of(table, group="request", task="user", reward="clicked")
    offers = schema.offers(table)
    assert offers.candidates.shape == (2, 3, 1) and offers.tasks.tolist() == [0, 1]
    assert offers.available.tolist() == [[True, True, True], [True, True, False]]
    decision = gfucb.GFUCB(2).decide(*offers)
    rows = offers.chosen(decision)
    assert [table["request"][row] for row in rows] == ["r", "s"]
    _, inputs, rewards = schema.samples(table)
    assert inputs.shape == (5, 1) and rewards.tolist() == table["clicked"]
    with pytest.raises(InvalidInputError, match=r"group .r. must have one value .* .user."):
        schema.offers(table | {"user": [7, 8, 8, 7, 8]})


def test_items_are_offered_by_name():
    ratings = {"user": list("aab"), "joke": ["x", "y", "x"], "stars": [1, 2, 3]}
    schema = Schema.of(ratings, task="user", item="joke", reward="stars")
    agent = gfucb.GFUCB(2)
    agent.learn(*schema.samples(ratings))
    offers = schema.offers({"user": ["b", "a"]})
    assert offers.names[0] == ("x", "y") and offers.candidates.shape == (2, 2)
    assert set(offers.chosen(agent.decide(*offers))) <= {"x", "y"}
    grouped = Schema.of(ratings, task="user", item="joke", group="user", reward="stars")
    offers = grouped.offers({"user": list("aaab"), "joke": ["x", "y", "new", "y"]})
    assert offers.names == [["x", "y", "new"], ["y"]]
    assert offers.chosen(agent.decide(*offers))[1] == "y"
    assert len(set(offers.candidates[0].tolist())) == 3


def test_new_tasks_keep_the_numbers_of_the_others():
    schema = stores()
    table = log(3).assign(store=["Paris", "Oslo", "Lima"])
    with pytest.raises(InvalidInputError, match=r"'Paris' in the column 'store' \(row 0\).*with_t"):
        schema.offers(table)
    extended = schema.with_tasks(["Paris"])
    assert extended.offers(table).tasks.tolist() == [3, 2, 1] and extended.num_tasks == 4


def test_a_transformer_of_scikit_learn_encodes_the_context():
    table = log().fillna({"visitors": 0.0, "weather": "sun"})
    transformer = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["weather"]),
        (StandardScaler(), ["visitors"]),
        sparse_threshold=1.0,
    )
    with pytest.raises(InvalidInputError, match=r"transformer.fit\(table\)"):
        Schema.of(table, **ROLES, transformer=transformer)
    transformer.fit(table[["weather", "visitors"]])
    with pytest.raises(InvalidInputError, match="columns or a transformer"):
        Schema.of(table, **ROLES, transformer=transformer, columns={"visitors": Number()})
    schema = Schema.of(table, **ROLES, transformer=transformer)
    assert schema.offers(table).candidates.shape == (60, 3, 4 + 3)
    restored = Schema.from_json(schema.to_json(), transformer)
    assert torch.equal(restored.samples(table)[1], schema.samples(table)[1])
    with pytest.raises(InvalidInputError, match="pass it as transformer="):
        Schema.from_json(schema.to_json())
    other = StandardScaler().fit(table[["visitors"]])
    with pytest.raises(InvalidInputError, match="other features"):
        Schema.from_json(schema.to_json(), other)
    with pytest.raises(InvalidInputError, match="cannot encode the table: columns are missing"):
        schema.offers(table.drop(columns="weather"))
    with pytest.raises(InvalidInputError, match="fitted to a data frame and needs one, got dict"):
        schema.offers(table.to_dict("list"))
    transformer.fit(table)  # also to action and reward, which it does not use
    today = table.drop(columns=[ROLES["action"], ROLES["reward"]])
    assert torch.equal(schema.offers(today).candidates, schema.offers(table).candidates)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "one of action, item or group"),
        ({"action": "promotion", "item": "store"}, "one of action, item or group"),
        ({"action": "promo"}, "no column 'promo'; it has 'store'"),
        ({"action": "promotion", "task": "promotion"}, "must be different columns"),
        ({"action": "promotion", "task": "shop"}, "no column 'shop'"),
        (
            {"action": "promotion", "reward": "Revenue"},
            r"no column 'Revenue', but 'revenue'.*ignore",
        ),
        ({"action": "promotions", "actions": ["none"]}, "no column 'promotions', but 'promotion'"),
        ({"action": "promotion", "task": 3}, "no column 3 .names of columns are text"),
        ({"action": "promotion", "ignore": ["gone"]}, "no column 'gone'"),
        ({"action": "promotion", "ignore": "date"}, "a list of names, such as"),
        ({"action": "promotion", "ignore": None}, "a list of names, such as"),
        ({"action": "promotion", "columns": ["date"]}, "a dict from names to kinds"),
        ({"action": "promotion", "columns": {"promotion": Category()}}, "not part of the context"),
        ({"action": "promotion", "tasks": ["a"]}, "task, the column of their names"),
        ({"action": "weather"}, "'weather' must hold a name in every row"),
        ({"action": "promotion", "actions": []}, "at least one"),
        ({"action": "promotion", "actions": ["a", "a"]}, "must differ"),
        ({"action": "promotion", "actions": "abc"}, "must be a list, got 'abc'"),
        ({"action": "promotion", "task": "store", "tasks": 5}, "must be a list, got 5"),
        ({"action": "promotion", "actions": {"promotion": ["a", None]}}, "row 1 is missing"),
        ({"action": "promotion", "actions": {"name": ["a"]}}, "no column 'promotion'"),
        ({"item": "promotion"}, "items have ids and no columns.*ignore="),
    ],
)
def test_schemas_that_make_no_sense_are_refused(arguments, message):
    with pytest.raises(InvalidInputError, match=message):
        Schema.of(log(), **arguments)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.assign(promotion="gift"), "'gift' in the column 'promotion'.*new schema"),
        (lambda t: t.assign(revenue=[None, *t["revenue"][1:]]), "no reward in row 0"),
        (lambda t: t.assign(revenue="much"), "'revenue' is a reward and must hold numbers"),
        (lambda t: t.drop(columns="revenue"), "no column 'revenue'"),
        (lambda t: t.assign(store=[None, *t["store"][1:]]), "row 0 is missing"),
    ],
)
def test_logs_that_do_not_fit_the_schema_are_refused(change, message):
    with pytest.raises(InvalidInputError, match=message):
        stores().samples(change(log()))


@pytest.mark.parametrize(
    ("available", "message"),
    [
        ([["none"], ["gift"]], "'gift' in row 1, which is none of 'bundle', 'coupon', 'none'"),
        ([["none"]], "for each of the 2 rows, got 1"),
        (["none", "coupon"], "for a row"),
        ("none", "for a row"),
        (np.ones((2, 2), dtype=bool), r"\[2, 3\]"),
        (np.ones((2, 3)), "booleans"),
        (5, "for a row"),
    ],
)
def test_wrong_available_actions_are_refused(available, message):
    with pytest.raises(InvalidInputError, match=message):
        stores().offers(log(2), available)


def test_an_empty_table_and_a_decision_of_other_rows_are_refused():
    schema, agent = stores(), gfucb.GFUCB(3)
    with pytest.raises(InvalidInputError, match="no rows"):
        schema.offers(log().iloc[:0])
    offers = schema.offers(log(4))
    with pytest.raises(InvalidInputError, match="4 rows"):
        offers.chosen(agent.decide(*offers)[[0, 1]])
    agent.learn(*schema.samples(log().iloc[:0]))
    assert agent.learner.num_samples == 0


def all_schemas() -> list[Schema]:
    kinds = {"weather": Hashed(4), "visitors": Number(0, 1000)}
    ratings = {"user": list("aab"), "joke": ["x", "y", "x"]}
    return [
        stores(),
        Schema.of(log(), **ROLES, columns=kinds, actions=PROMOTIONS),
        Schema.of(log(), **ROLES, actions=OFFERED),
        Schema.of(log(), group="store", ignore=["promotion"]),
        Schema.of(ratings, task="user", item="joke"),
    ]


def test_schemas_are_saved_as_json_and_with_the_agent(tmp_path):
    for schema in all_schemas():
        schema.save(tmp_path / "schema.json")
        assert Schema.load(tmp_path / "schema.json") == schema
    schema, agent = stores(), gfucb.GFUCB(3)
    agent.learn(*schema.samples(log()))
    path = tmp_path / "agent.safetensors"
    gfucb.save(agent, path, notes={"schema": schema.to_json()})
    assert Schema.load(path) == schema
    restored = gfucb.GFUCB(3)
    gfucb.restore(restored, path)
    offers = Schema.load(path).offers(log(5, seed=3))
    assert torch.equal(restored.decide(*offers).actions, agent.decide(*offers).actions)
    gfucb.save(agent, path)
    with pytest.raises(SavedStateError, match="without a schema"):
        Schema.load(path)
    (tmp_path / "table.csv").write_text("a,b")
    with pytest.raises(SavedStateError, match=r"table.csv is neither a schema.* nor an agent"):
        Schema.load(tmp_path / "table.csv")
    with pytest.raises(SavedStateError, match="no schema at"):
        Schema.load(tmp_path / "gone.json")
    with pytest.raises(InvalidInputError, match="notes must be texts"):
        gfucb.save(agent, path, notes={"schema": schema})


def damaged(change) -> str:
    content = json.loads(stores().to_json())
    change(content)
    return json.dumps(content)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "no JSON"),
        ("[]", "no schema"),
        (damaged(lambda c: c.update(format="gfucb schema 9")), "format 'gfucb schema 9'"),
        (damaged(lambda c: c.pop("actions")), "'actions' is missing"),
        (damaged(lambda c: c.update(actions=3)), "damaged"),
        (damaged(lambda c: c.update(reward=3)), "must be text"),
        (damaged(lambda c: c["actions"].update(kind="free")), "unknown kind of actions"),
        (damaged(lambda c: c["task"].update(names=["a", "a"])), "must differ"),
        (damaged(lambda c: c["task"].update(names="ab")), "must be a list"),
        (damaged(lambda c: c.update(actions={"kind": "rows", "group": 3})), "name of a column"),
        (damaged(lambda c: c["context"]["columns"]["date"].update(kind="time")), "unknown kind"),
        (damaged(lambda c: c["context"]["columns"]["date"].update(zone="x")), "must have the fie"),
        (damaged(lambda c: c["context"]["columns"]["visitors"].update(scale=-1)), "scale"),
        (damaged(lambda c: c["context"]["columns"]["visitors"].update(scale=None)), "fields"),
        (damaged(lambda c: c["context"]["columns"]["weather"].update(levels=[1])), "texts"),
    ],
)
def test_damaged_json_is_refused_with_the_reason(text, message):
    with pytest.raises(InvalidInputError, match=message):
        Schema.from_json(text)


def test_columns_can_be_used_without_a_schema():
    columns = Columns.of(log()[["weather", "visitors"]])
    candidates = gfucb.with_actions(columns.encode(log(4)), 3)
    assert candidates.shape == (4, 3, len(columns.feature_names) + 3)
