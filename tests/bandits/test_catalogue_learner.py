"""The default agent on catalogues of items with ids: unknown, new, huge and negative ids."""

import pytest
import torch
from table_cases import assert_same_state, draw, items, play, reward_of, snapshot

from gfucb import GFUCB, InvalidInputError, multitask_greedy
from gfucb.bandits import catalogue_learner
from gfucb.bandits.catalogue_learner import DEVIATIONS, CatalogueLearner
from gfucb.models.item_features import ItemEmbeddings, positions_of
from gfucb.models.posterior_set import PosteriorSet

# Together they take seconds.
pytestmark = pytest.mark.slow

TASKS, ITEMS = 40, 20
POPULARITY = 2 * draw("popularity", ITEMS)
TASTES = draw("tastes", TASKS, 2) - 0.5
KINDS = draw("kinds", 2, ITEMS) - 0.5
MEANS = POPULARITY + 2 * TASTES @ KINDS


def log(num_samples: int, index: int = 0) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Random tasks and items, with their rewards."""
    tasks = (TASKS * draw("log tasks", num_samples, index=index)).long()
    ids = (ITEMS * draw("log items", num_samples, index=index)).long()
    return tasks, ids, MEANS[tasks, ids] + 0.2 * draw("log noise", num_samples, index=index) - 0.1


def predict(agent: GFUCB, ids: torch.Tensor, task: int) -> torch.Tensor:
    return agent.confidence_set(ids).center.values(ids, torch.full((len(ids),), task))


def variances(agent: GFUCB, ids: torch.Tensor, task: int) -> torch.Tensor:
    found = agent.confidence_set(ids)
    features = found.center.representation(ids)
    return found.head_prediction(features, torch.full((len(ids),), task)).variance


EVERY = torch.arange(ITEMS)


class TestPredictions:
    def test_follow_popularity_and_the_task(self):
        agent = GFUCB(TASKS)
        agent.learn(*log(2000))
        for task in range(TASKS):
            error = float((predict(agent, EVERY, task) - MEANS[task]).square().mean().sqrt())
            assert error < 0.2 * float(MEANS[task].std())

    def test_of_a_task_without_rewards_are_popular_items(self):
        tasks, ids, rewards = log(2000)
        agent, own = GFUCB(TASKS), tasks != 3
        agent.learn(tasks[own], ids[own], rewards[own])
        means = MEANS[torch.arange(TASKS) != 3].mean(0)
        found = predict(agent, EVERY, 3)
        assert float((found - means).square().mean().sqrt()) < 0.2 * float(means.std())
        assert float(variances(agent, EVERY, 3).min()) > float(variances(agent, EVERY, 2).max())

    def test_in_one_call_and_in_sixteen_are_alike(self):
        tasks, ids, rewards = log(1600)
        at_once, in_parts = GFUCB(TASKS), GFUCB(TASKS)
        at_once.learn(tasks, ids, rewards)
        for rows in torch.arange(1600).split(100):
            in_parts.learn(tasks[rows], ids[rows], rewards[rows])
        assert at_once.learner.num_fits == 1 < in_parts.learner.num_fits
        for task in range(TASKS):
            one, other = (predict(agent, EVERY, task) for agent in (at_once, in_parts))
            assert float((one - other).square().mean().sqrt()) < 0.05 * float(one.std())

    def test_do_not_depend_on_the_order_of_late_and_partial_rewards(self):
        agents = [GFUCB(TASKS, refit_growth=1.1) for _ in range(2)]
        for agent in agents:
            agent.learn(*log(2000))
        tasks, ids, rewards = log(60, index=1)
        agents[0].learn(tasks, ids, rewards)
        for rows in torch.arange(60).flip(0).split(7):
            agents[1].learn(tasks[rows], ids[rows], rewards[rows])
        assert agents[0].learner.num_fits == agents[1].learner.num_fits == 1
        for task in range(TASKS):
            one, other = (predict(agent, EVERY, task) for agent in agents)
            torch.testing.assert_close(one, other)


class TestIds:
    def test_of_items_never_seen_have_the_value_and_doubt_of_any_item(self):
        agent = GFUCB(TASKS)
        agent.learn(*log(1500))
        unknown = torch.tensor([ITEMS, 10**6, -5])
        values = predict(agent, unknown, 0)
        assert torch.equal(values, values[:1].expand(3))
        known = predict(agent, EVERY, 0)
        assert float(known.min()) < float(values[0]) < float(known.max())
        widest = float(variances(agent, EVERY, 0).max())
        assert float(variances(agent, unknown, 0).min()) > 2 * widest

    def test_that_are_new_become_known_with_the_next_fit(self):
        agent = GFUCB(TASKS)
        agent.learn(*log(1500))
        new = torch.tensor([500])
        before = float(predict(agent, new, 0))
        # All tasks like the new item, but one task that has not seen it is predicted.
        for _ in range(8):
            agent.learn(torch.arange(1, TASKS), new.expand(TASKS - 1), [3.0] * (TASKS - 1))
        assert agent.learner.num_fits > 1
        assert before < 2 < float(predict(agent, new, 0))
        assert float(predict(agent, torch.tensor([501]), 0)) < float(predict(agent, new, 0))

    def test_a_reward_of_a_new_item_counts_before_the_next_fit(self):
        agent = GFUCB(TASKS)
        agent.learn(*log(1500))
        new, fits = torch.tensor([500]), agent.learner.num_fits
        before, others = float(predict(agent, new, 0)), predict(agent, new, 1)
        agent.learn([0], new, [float(MEANS.max())])
        assert agent.learner.num_fits == fits
        assert float(predict(agent, new, 0)) > before
        assert torch.equal(predict(agent, new, 1), others)

    @pytest.mark.parametrize(
        "named",
        [
            lambda ids: ids - 10,
            lambda ids: 10**14 * (ids - ITEMS // 2),
            lambda ids: -(2**63) + 7 * ids,
            lambda ids: 2**63 - ITEMS + ids,
            lambda ids: (ids - 5).to(torch.int16),
            lambda ids: ids.to(torch.int32) * 100_000,
        ],
        ids=["negative", "huge", "smallest", "largest", "16 bits", "32 bits"],
    )
    def test_are_only_names(self, named):
        """Ids in the same order give the same numbers, whatever they are."""
        rounds, agent, other = range(5), GFUCB(3), GFUCB(3)

        def renamed(num_tasks: int, index: int) -> torch.Tensor:
            return named(items(num_tasks, index))

        def reward(inputs: torch.Tensor, index: int) -> torch.Tensor:
            known = named(torch.arange(12))
            return reward_of(positions_of(inputs.flatten(), known), index)

        assert torch.equal(play(agent, items, rounds), play(other, renamed, rounds, reward))
        assert torch.equal(agent.state()["catalogue.rows"], other.state()["catalogue.rows"])

    def test_of_another_type_are_refused_with_the_cure(self):
        agent = GFUCB(3)
        agent.observe(agent.decide(items(3, 0).to(torch.int32)), [0.1, 0.2, 0.3])
        cure = r"numpy.asarray\(ids\).astype\('int32'\)$"
        with pytest.raises(InvalidInputError, match=cure):
            agent.decide(items(3, 0))
        with pytest.raises(InvalidInputError, match="bytes are read as images"):
            agent.decide(items(3, 0).to(torch.uint8))

    def test_an_axis_of_length_one_makes_no_difference(self):
        rounds, agent, other = range(5), GFUCB(3), GFUCB(3)
        found = play(other, lambda *place: items(*place)[:, :, None], rounds)
        assert torch.equal(play(agent, items, rounds), found)


class TestEmbeddings:
    def test_of_unknown_ids_are_the_last_row(self):
        found = ItemEmbeddings(torch.tensor([-4, 2, 9]), torch.arange(8.0).view(4, 2))
        rows = found(torch.tensor([[9], [3], [-4], [2], [10**15], [-(10**15)]]))
        assert rows[:, 0].tolist() == [4, 6, 0, 2, 6, 6]

    @pytest.mark.parametrize("dtype", [torch.int8, torch.int16, torch.int32, torch.int64])
    def test_without_known_ids_all_are_unknown(self, dtype):
        found = ItemEmbeddings(torch.zeros(0, dtype=dtype), torch.tensor([[7.0]]))
        assert found(torch.tensor([3, -1], dtype=dtype)).tolist() == [[7.0], [7.0]]


class TestAgent:
    def test_greedy_has_the_same_model_and_no_bonus(self):
        agent, greedy = GFUCB(TASKS), multitask_greedy(TASKS)
        for learner in (agent, greedy):
            learner.learn(*log(200))
        one, other = (learner.confidence_set(EVERY) for learner in (agent, greedy))
        assert isinstance(other, PosteriorSet) and other.squared_radius == 0
        assert one.squared_radius == pytest.approx(DEVIATIONS**2 * one.posterior.noise)
        assert torch.equal(one.center.heads, other.center.heads)
        decision = greedy.decide_from(EVERY)
        values = torch.stack([predict(greedy, EVERY, task) for task in range(TASKS)])
        assert torch.equal(decision.actions, values.argmax(1))
        assert greedy.diagnostics()["bonus"] == pytest.approx(0)
        agent.decide_from(EVERY)
        assert agent.diagnostics()["bonus"] > 0.01

    def test_one_outlier_leaves_the_decisions_of_other_tasks(self):
        tasks, ids, rewards = log(1500)
        usual, hit = GFUCB(TASKS), GFUCB(TASKS)
        usual.learn(tasks, ids, rewards)
        outlier = rewards.clone()
        outlier[int((tasks == 0).nonzero()[0])] = -999.0
        hit.learn(tasks, ids, outlier)
        one, other = (agent.decide_from(EVERY).actions[1:] for agent in (usual, hit))
        assert int((one != other).sum()) <= 1
        for task in range(1, TASKS):
            difference = predict(usual, EVERY, task) - predict(hit, EVERY, task)
            assert float(difference.abs().max()) < 0.25

    @pytest.mark.parametrize(("unit", "origin"), [(2.0**-10, 0.0), (1.0, 100.0), (30.0, -7e3)])
    def test_unit_and_origin_of_rewards_change_no_decision(self, unit, origin):
        def reward(inputs: torch.Tensor, index: int) -> torch.Tensor:
            return unit * reward_of(inputs, index) + origin

        rounds = range(6)
        assert torch.equal(play(GFUCB(3), items, rounds, reward), play(GFUCB(3), items, rounds))

    @pytest.mark.parametrize("num_rounds", [0, 3])
    def test_a_fit_that_fails_leaves_the_agent_unchanged(self, num_rounds, monkeypatch):
        def fail(*arguments, **options):
            raise ZeroDivisionError

        agent, twin = (GFUCB(2, refit_growth=1.0) for _ in range(2))
        if num_rounds:
            play(agent, items, range(num_rounds))
            play(twin, items, range(num_rounds))
        decision, before = agent.decide(items(2, 50)), snapshot(agent)
        with monkeypatch.context() as patch:
            patch.setattr(catalogue_learner, "fit_item_prior", fail)
            with pytest.raises(ZeroDivisionError):
                agent.observe(decision, [0.1, 0.2])
        assert_same_state(agent, before)
        rest = range(num_rounds, num_rounds + 3)
        assert torch.equal(play(agent, items, rest), play(twin, items, rest))
        assert_same_state(agent, snapshot(twin))

    def test_is_a_catalogue_before_and_after_the_first_reward(self):
        agent = GFUCB(2, value_range=(0.0, 4.0))
        first = agent.decide(items(2, 0))
        assert first.prediction.mean.tolist() == [2.0, 2.0]
        assert bool((first.optimistic_values > 2).all())
        agent.observe(first[[0]], [1.0])
        assert isinstance(agent.learner.chosen, CatalogueLearner)
        agent.observe(first[[1]], [3.0])
        assert agent.learner.num_samples == 2
