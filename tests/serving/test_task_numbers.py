"""Tasks without data cost nothing; tasks with data keep their numbers."""

import pytest
import torch
from serving_cases import assert_same, candidates, play, state_of

import gfucb
from gfucb import GFUCB, Agent, InvalidInputError
from gfucb.core.errors import DecisionLogError, UnknownNameError
from gfucb.serving.task_numbers import TaskNumbers


def test_tasks_without_data_share_the_numbers_after_those_in_use():
    numbers = TaskNumbers()
    assert numbers.of([7, 3, 7]) == [0, 1, 0]
    numbers.add([3])
    assert numbers.of([7, 3, 9, 7]) == [1, 0, 2, 1] and numbers.of([9]) == [1]
    assert numbers.missing([9, 3, 7, 9]) == [9, 7]
    numbers.add([9, 3, 7])
    assert numbers.tasks() == [3, 9, 7] and len(numbers) == 3


def test_the_model_is_that_of_the_tasks_with_data():
    with Agent(tasks=range(20_000), seed=0) as many, Agent(seed=0) as few:
        for agent in (many, few):
            play(agent, range(6), [700, 5])
            agent.decide(candidates(3), tasks=[1, 2, 3])  # no reward comes
        assert many.model.num_tasks == 5
        assert_same(many, state_of(few))
        assert len(many.tasks) == 20_000


def test_a_new_task_is_predicted_by_the_prior_also_after_others_got_data(tmp_path):
    agent = Agent(log=tmp_path / "log", seed=0)
    play(agent, range(4), ["a", "b"])
    first = agent.decide(candidates(2, 9), tasks=["c", "d"])
    agent.observe(first.ids[1], 0.3)  # d is the third task of the model, not c
    agent.observe(first.ids[0], 0.9)
    assert agent.explain(first.ids[0]).rows()[0]["task"] == "c"
    samples = agent.explain(first.ids[1]).sample_rows()
    own = [row for row in samples if row["task"] == "d"]
    assert own and all(row["reward"] == 0.3 for row in own)
    state = state_of(agent)
    agent.log.close()
    with Agent(log=tmp_path / "log", seed=0) as again:
        assert_same(again, state)
        later = again.decide(candidates(2, 10), tasks=["d", "c"])
        assert later.tasks == ("d", "c")


def test_a_holdback_policy_gets_the_positions_of_names():
    seen = []

    def first(offered, tasks, available):
        seen.append(tasks.tolist())
        found = torch.zeros(available.shape, dtype=torch.float64)
        found[:, 0] = 1
        return found

    model = gfucb.Randomised(GFUCB(1, seed=0), holdback=0.5, holdback_policy=first)
    agent = Agent(model, tasks=["a", "b", "c"])
    agent.observe(agent.decide(candidates(1), tasks=["c"]), [0.5])
    agent.decide(candidates(2), tasks=["b", "c"])
    assert seen == [[2], [1, 2]]


def test_arguments_of_randomised_are_arguments_of_an_agent():
    short = Agent(epsilon=0.3, holdback=0.2, seed=4)
    model = gfucb.Randomised(GFUCB(1, seed=4), epsilon=0.3, holdback=0.2, seed=4)
    long = Agent(model)
    for index in range(5):
        one, other = (a.decide(candidates(2, index), tasks=["a", "b"]) for a in (short, long))
        assert torch.equal(one.actions, other.actions)
        assert torch.equal(one.probabilities, other.probabilities) and one.probabilities.min() < 1
    with pytest.raises(InvalidInputError, match="epsilon must be"):
        Agent(epsilon=1.5)
    with pytest.raises(InvalidInputError, match="pass epsilon to the model itself"):
        Agent(GFUCB(1), epsilon=0.1)


@pytest.mark.parametrize("model", [None, GFUCB(1)])
@pytest.mark.parametrize(
    ("name", "meant"), [("reward_limits", "reward_limit"), ("seeds", "seed"), ("x", "")]
)
def test_misspelled_arguments_of_an_agent_are_refused_with_those_that_it_has(model, name, meant):
    perhaps = f", perhaps '{meant}'" if meant else ""
    message = f"unknown argument of Agent '{name}'{perhaps}; the known ones are: .* representation"
    with pytest.raises(UnknownNameError, match=message):
        Agent(model, **{name: 1})


def test_a_log_in_use_names_both_that_may_have_to_be_closed(tmp_path):
    log = gfucb.DecisionLog(tmp_path / "log")
    Agent(log=log).close()  # the log is that of the caller
    with pytest.raises(DecisionLogError, match="and that of a DecisionLog which"):
        Agent(log=tmp_path / "log")
    log.close()
    Agent(log=tmp_path / "log").close()
