"""Agents in coba's experiments, and coba's environments in ours, with coba itself."""

import coba
import pytest
import torch

import gfucb
from gfucb.adapters.coba import CobaBandit, CobaLearner
from gfucb.checks import check_bandit_environment
from gfucb.core.errors import InvalidInputError
from gfucb.runs.loop import play


def synthetic(num_rounds=60, **settings):
    return coba.Environments.from_linear_synthetic(num_rounds, **{"seed": 1, **settings})


def linucb(num_tasks, seed):
    return gfucb.linucb(num_tasks, alpha=0.5, ridge=1.0)


def two_synthetic(seed):
    made = [synthetic(30, n_actions=3, seed=2 * seed + own)[0] for own in (1, 2)]
    return CobaBandit(made)


def rewards(environments, learner):
    result = coba.Experiment(environments, learner).run(quiet=True)
    return result.interactions.to_pandas()["reward"].tolist()


def test_linucb_has_the_rewards_of_cobas_linucb():
    settings = {"n_actions": 4, "n_context_features": 2, "n_action_features": 3}
    theirs = coba.LinUCBLearner(alpha=0.5, features=["x", "a"])
    own = rewards(synthetic(**settings), CobaLearner(linucb, name="LinUCB"))
    assert own == pytest.approx(rewards(synthetic(**settings), theirs))
    assert len(set(own)) > 50


def test_every_environment_of_an_experiment_has_an_agent_of_its_own():
    environments = synthetic(20, n_action_features=0) + synthetic(20, n_action_features=0)
    result = coba.Experiment(environments, CobaLearner(linucb)).run(quiet=True)
    table = result.interactions.to_pandas()
    first, second = (group["reward"].tolist() for _, group in table.groupby("environment_id"))
    assert first == second
    assert result.learners.to_pandas()["family"].tolist() == ["GFUCB"]


def test_the_default_agent_learns_named_actions():
    environments = coba.Environments.from_lambda(
        60,
        lambda index: [index % 2, index % 3],
        lambda index, context: ["even", "odd"],
        lambda index, context, action: float(action == ("odd" if index % 2 else "even")),
    )
    earned = rewards(environments, CobaLearner())
    assert sum(earned[-30:]) >= 28


def test_a_column_of_the_context_is_the_task():
    made = []
    learner = CobaLearner(
        lambda num_tasks, seed: made.append(linucb(num_tasks, seed)) or made[0],
        task=0,
        tasks=["Oslo", "Lima"],
    )
    actions = [(1.0, 0.0), (0.0, 1.0)]
    for round_index in range(20):
        for store, best in (("Oslo", 0), ("Lima", 1)):
            context = [store, round_index / 20]
            action, probability, kwargs = learner.predict(context, actions)
            learner.learn(context, action, float(action == actions[best]), probability, **kwargs)
    assert made[0].num_tasks == 2
    assert learner.score(["Oslo", 0.5], actions, actions[0]) == 1.0
    assert learner.score(["Lima", 0.5], actions, actions[0]) == 0.0
    with pytest.raises(InvalidInputError, match=r"'Rome' is not among tasks=.*Oslo"):
        learner.predict(["Rome", 0.5], actions)


def test_probabilities_are_those_of_randomised_agents():
    def randomised(num_tasks, seed):
        return gfucb.Randomised(linucb(num_tasks, seed), epsilon=0.3, seed=seed)

    learner = CobaLearner(randomised)
    actions = [(1.0, 0.0), (0.0, 1.0), (1.0, 1.0)]
    _, probability, _ = learner.predict([0.5], actions)
    scores = [learner.score([0.5], actions, own) for own in actions]
    assert sum(scores) == pytest.approx(1.0)
    assert 0 < min(scores) and max(scores) < 1
    assert probability in scores
    result = coba.Experiment(synthetic(10), CobaLearner(randomised)).run(quiet=True)
    assert result.interactions.to_pandas()["probability"].between(0, 1, inclusive="neither").all()


def test_logged_interactions_are_learned():
    logged = synthetic(40, n_actions=3, n_action_features=2).logged(coba.RandomLearner())
    result = coba.Experiment(logged, CobaLearner(), coba.SequentialCB(learn="off", eval="ips")).run(
        quiet=True
    )
    assert len(result.interactions) == 40


def test_environments_of_coba_are_tasks():
    environment = two_synthetic(0)
    made = environment.environments
    check_bandit_environment(two_synthetic)
    first = next(iter(made[1].read()))
    round_ = environment.round(1)
    expected = [first["rewards"](action) for action in first["actions"]]
    assert round_.mean_rewards[1].tolist() == expected
    assert round_.candidates[1, 0].tolist() == [*first["context"], *first["actions"][0]]
    rows = list(play(gfucb.linucb(2), environment, num_rounds=30))
    assert sum(row["regret"] for row in rows[-10:]) < sum(row["regret"] for row in rows[:10])
    with pytest.raises(InvalidInputError, match="30 interactions, got round 31"):
        environment.round(31)


def test_an_environment_of_coba_enters_a_comparison():
    agents = {"LinUCB": lambda environment, seed: gfucb.linucb(environment.num_tasks)}
    result = gfucb.compare(two_synthetic, agents, seeds=[0], num_rounds=12)
    assert len(result.rows) == 12


@pytest.mark.parametrize(
    ("context", "actions", "message"),
    [
        ({"age": 3}, [(1,), (0,)], "sparse.*Environments.dense"),
        (["sun"], [(1,), (0,)], "text 'sun'.*Categorical"),
        ([1.0], [], "continuous"),
        ([1.0], [(1,), (0, 1)], "same length"),
    ],
)
def test_interactions_that_cannot_be_encoded_are_refused(context, actions, message):
    with pytest.raises(InvalidInputError, match=message):
        CobaLearner().predict(context, actions)


def promotions(num_rounds=24):
    """The third action comes late, and the first ones leave; "d" is the best of all."""
    return coba.Environments.from_lambda(
        num_rounds,
        lambda index: [index % 2],
        lambda index, context: ["a", "b", "c"] if index < num_rounds // 2 else ["b", "d"],
        lambda index, context, action: float(action == "d") + 0.1 * (action == "b"),
    )


@pytest.mark.parametrize("make_agent", [linucb, None, "randomised"])
def test_later_interactions_may_have_other_names(make_agent):
    def randomised(num_tasks, seed):
        return gfucb.Randomised(linucb(num_tasks, seed), epsilon=0.1, seed=seed)

    made = {"randomised": randomised, None: lambda num_tasks, seed: gfucb.GFUCB(num_tasks, seed=0)}
    make_agent = made.get(make_agent, make_agent)
    found = rewards(promotions(), CobaLearner(make_agent))
    assert sum(found[-6:]) >= 4.5
    if make_agent is linucb:  # as if all names had been known from the beginning
        assert found == rewards(promotions(), CobaLearner(linucb, actions=["a", "b", "c", "d"]))


def test_an_agent_that_is_made_again_does_not_repeat_its_draws():
    def uniform(num_tasks, seed):
        return gfucb.Randomised(gfucb.linucb(num_tasks), epsilon=1.0, seed=seed)

    learner, drawn = CobaLearner(uniform, seed=2), []
    for names in 20 * [["a", "b"]] + 20 * [["c", "d"]]:
        action, probability, arguments = learner.predict([1.0], names)
        learner.learn([1.0], action, 0.0, probability, **arguments)
        drawn.append(names.index(action))
    assert drawn[:20] != drawn[20:] and set(drawn[20:]) == {0, 1}


def test_an_agent_without_learn_needs_all_names_first():
    learner = CobaLearner(lambda num_tasks, seed: gfucb.Uniform(num_tasks))
    action, probability, kwargs = learner.predict([1.0], ["none", "coupon"])
    learner.learn([1.0], action, 1.0, probability, **kwargs)
    with pytest.raises(InvalidInputError, match=r"Uniform has no method learn.* actions=\["):
        learner.predict([1.0], ["none", "gift"])
    learner.predict([1.0], ["coupon", "none"])  # unchanged
    with pytest.raises(InvalidInputError, match="the list of the names of all actions, got 'gift'"):
        CobaLearner(actions="gift")


def test_environments_of_coba_may_have_other_names_later():
    shapes = [CobaBandit([promotions(8)[0]]).round(index).candidates.shape for index in (1, 8)]
    assert shapes == [(1, 3, 5), (1, 2, 5)]


def test_categories_of_coba_are_one_hot():
    seen = []

    class Recorded:
        num_tasks = 1

        def decide(self, candidates, tasks=None, available=None):
            seen.append(candidates)
            return gfucb.linucb(1).decide(candidates, tasks)

    city = coba.Categorical("Lima", ["Oslo", "Lima"])
    offered = [coba.Categorical("b", ["a", "b", "c"])]
    CobaLearner(lambda num_tasks, seed: Recorded()).predict([0.5, city], offered)
    assert torch.equal(seen[0], torch.tensor([[[0.5, 0, 1, 0, 1, 0]]], dtype=torch.float64))


def test_what_is_no_list_of_environments_and_no_function_is_refused():
    with pytest.raises(InvalidInputError, match=r"got \w+; for one task pass \[environment\]"):
        CobaBandit(synthetic(5, n_actions=3)[0])
    with pytest.raises(InvalidInputError, match=r"must be a function .* got GFUCB"):
        CobaLearner(gfucb.GFUCB(1))
