"""Predictions and explanations with names and ids."""

import pytest
import torch
from serving_cases import assert_same, candidates, play, state_of

from gfucb import Agent, InvalidInputError
from gfucb.core.errors import DecisionLogError
from gfucb.tables import Schema

NAMES = ["oslo", ("north", 7)]


@pytest.fixture
def agent() -> Agent:
    agent = Agent(seed=0, tasks=NAMES)
    play(agent, range(6), NAMES)
    return agent


def test_explanations_have_names_and_ids_and_change_nothing(agent):
    decision = agent.decide(candidates(2, 50))
    state, event, number = state_of(agent), agent.log.last_event(), agent.log.last_decision()
    explanation = agent.explain(decision)
    assert explanation.ids == decision.ids and explanation.predictions.tasks == tuple(NAMES)
    samples = explanation.sample_rows()
    assert {found["task"] for found in samples} == set(NAMES)
    data = agent.model.learner.chosen.data
    assert all(found["input"] == data.inputs[found["sample"]].tolist() for found in samples)
    chosen = [row for row in explanation.rows() if row["is_chosen"]]
    assert [row["action"] for row in chosen] == decision.actions.tolist()
    means = torch.tensor([row["mean"] for row in chosen], dtype=torch.float64)
    torch.testing.assert_close(means, decision.prediction.mean)
    found = agent.predict(candidates(2, 50))
    assert found.tasks == tuple(NAMES)
    assert torch.equal(found.mean, explanation.predictions.mean)
    assert_same(agent, state)
    assert (agent.log.last_event(), agent.log.last_decision()) == (event, number)


def test_an_old_decision_is_explained_with_the_model_of_now(agent):
    decision = agent.decide(candidates(2, 50))
    before = agent.explain(decision.ids[1])
    play(agent, range(6, 9), NAMES)
    after = agent.explain([decision.ids[1]])
    assert before.ids == after.ids == decision.ids[1:]
    assert (before.num_samples, after.num_samples) == (12, 18)
    assert not torch.equal(before.predictions.mean, after.predictions.mean)
    assert torch.equal(before.mean_at_decision, after.mean_at_decision)
    assert torch.equal(before.mean_at_decision, decision.prediction.mean[1:])


def test_items_have_names_also_new_ones():
    agent = Agent(seed=0, value_range=(0, 1))
    decision = agent.decide_from(["tea", "milk"], tasks=["oslo"])
    agent.observe(decision, [1.0])
    found = agent.predict_from(["milk", "juice"], tasks=["rome"])
    assert [row["action_name"] for row in found.rows()] == ["milk", "juice"]
    explanation = agent.explain(decision.id)
    assert [row["action_name"] for row in explanation.rows()] == ["tea", "milk"]
    assert {row["input"] for row in explanation.sample_rows()} == set(decision.action_names)
    assert agent.tasks == ("oslo",)


def test_rows_of_tables_are_predicted():
    table = {
        "store": ["oslo", "rome"],
        "promotion": ["tea", "milk"],
        "sold": [1.0, 2.0],
        "x": [0, 1],
    }
    schema = Schema.of(table, task="store", action="promotion", reward="sold")
    agent = Agent(seed=0)
    agent.learn_table(table, schema)
    found = agent.predict_table(table, schema)
    assert found.tasks == ("oslo", "rome") and found.action_names == ("milk", "tea")
    decision = agent.decide_table(table, schema)
    means = found.mean[torch.arange(2), decision.actions]
    torch.testing.assert_close(means, decision.prediction.mean)


def test_a_new_task_is_predicted_as_decide_would_add_it(agent):
    found = agent.predict(candidates(1, 50), tasks=["rome"])
    assert agent.tasks == tuple(NAMES)
    decision = agent.decide(candidates(1, 50), tasks=["rome"])
    torch.testing.assert_close(found.mean[0, decision.actions], decision.prediction.mean)
    agent.create_tasks = False
    with pytest.raises(InvalidInputError, match="no task 'bergen'"):
        agent.predict(candidates(1), tasks=["bergen"])


def test_retired_tasks_are_not_predicted_but_their_decisions_are_explained(agent):
    decision = agent.decide(candidates(2, 50))
    agent.retire_task("oslo")
    with pytest.raises(InvalidInputError, match="retired"):
        agent.predict(candidates(1), tasks=["oslo"])
    assert agent.explain(decision).predictions.tasks[0] == "oslo"


def test_unknown_ids_and_other_decisions_are_refused(agent):
    decision, other = agent.decide(candidates(2, 50)), Agent(seed=0)
    foreign = other.decide(candidates(1), tasks=["oslo"])
    later = agent.decide(candidates(2, 51))
    for what, message in [
        (foreign, "another agent"),
        (f"{decision.id}99", "unknown"),
        ("no id", "an id must be text"),
        (7, "a decision of this agent"),
        ([], "0 decisions"),
        ([decision.id, later.id], "2 decisions"),
        (agent.model.decide(candidates(2), tasks=[0, 1]), "pass a decision of this agent"),
    ]:
        with pytest.raises(InvalidInputError, match=message):
            agent.explain(what)
    with pytest.raises(InvalidInputError, match="shape"):
        agent.predict(torch.zeros(3))
    agent.close()
    for call in (lambda: agent.explain(decision), lambda: agent.predict(candidates(2))):
        with pytest.raises(DecisionLogError, match="closed"):
            call()


def test_a_restarted_agent_explains_the_same(tmp_path):
    with Agent(seed=0, log=tmp_path / "log") as agent:
        play(agent, range(4), NAMES)
        decision = agent.decide(candidates(2, 50), tasks=NAMES)
        before = agent.explain(decision).to_dict()
    with Agent(seed=0, log=tmp_path / "log") as agent:
        assert agent.explain(decision.id).to_dict() == before
