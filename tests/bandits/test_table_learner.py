"""The default agent on tables: logs, late rewards, outliers, units, failures, no bonus."""

import pytest
import torch
from table_cases import (
    ARMS,
    COLUMNS,
    assert_same_state,
    context_and_arm,
    draw,
    numbers_of_actions,
    play,
    reward_of,
    snapshot,
)

from gfucb import GFUCB, multitask_greedy
from gfucb.bandits import table_learner
from gfucb.core.features import features_of
from gfucb.models.head_posterior import HeadPosterior
from gfucb.models.posterior_set import PosteriorSet
from gfucb.models.table_layout import TableLayout

TASKS = 4
LAYOUT = TableLayout(COLUMNS + ARMS, COLUMNS, ARMS)


def log(num_samples: int, index: int = 0) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Random tasks, inputs and rewards; tasks differ a little."""
    tasks = (TASKS * draw("log tasks", num_samples, index=index)).long()
    inputs = draw("log inputs", num_samples, COLUMNS, index=index)
    rewards = (3 * inputs[:, 0]).sin() + inputs[:, 1] + 0.1 * tasks * inputs[:, 2]
    return tasks, inputs, rewards + 0.2 * draw("log noise", num_samples, index=index)


def predict(agent: GFUCB, inputs: torch.Tensor, task: int) -> torch.Tensor:
    tasks = torch.full((len(inputs),), task)
    return agent.confidence_set(inputs).center.values(inputs, tasks)


def layout_of(agent: GFUCB) -> TableLayout:
    return agent.confidence_set(torch.zeros(1, COLUMNS + ARMS)).center.representation.columns.layout


QUESTIONS = draw("questions", 100, COLUMNS)


@pytest.mark.usefixtures("few_frequencies")
class TestLayout:
    def test_of_the_first_decision_is_kept(self):
        agent = GFUCB(2)
        play(agent, context_and_arm, range(3))
        assert layout_of(agent) == LAYOUT

    @pytest.mark.parametrize("is_shared", [False, True])
    def test_actions_that_are_not_available_do_not_hide_the_arms(self, is_shared):
        """Their candidates are padding, which is no one-hot arm."""
        agent, offered = GFUCB(2), context_and_arm(2, 0)
        available = torch.ones(2, ARMS, dtype=torch.bool)
        available[0, 0] = available[1, 3] = available[:, 4] = False
        if is_shared:
            decision = agent.decide_from(offered[0], available=available)
        else:
            offered[~available] = torch.nan
            decision = agent.decide(offered, available=available)
        agent.observe(decision, [0.1, 0.2])
        # With the last arm never offered, its column still belongs to the one-hot arm.
        assert layout_of(agent) == LAYOUT

    def test_of_a_log_is_found_in_its_samples(self):
        agent = GFUCB(2)
        inputs = torch.cat([context_and_arm(2, index).flatten(0, 1) for index in range(3)])
        agent.learn(torch.arange(len(inputs)) % 2, inputs, reward_of(inputs, 0))
        assert layout_of(agent) == LAYOUT

    def test_is_corrected_after_a_decision_with_one_candidate(self):
        agent = GFUCB(2)
        for index in range(8):
            offered = context_and_arm(2, index)
            arms = slice(index % ARMS, index % ARMS + 1) if index < 4 else slice(None)
            decision = agent.decide(offered[:, arms])
            agent.observe(decision, reward_of(decision.inputs, 0))
        assert layout_of(agent) == LAYOUT
        twin = GFUCB(2)
        twin.load_state(agent.state())
        assert layout_of(twin) == LAYOUT

    def test_is_corrected_after_a_log_without_the_first_arms(self):
        agent = GFUCB(2)
        inputs = torch.cat([context_and_arm(2, index).flatten(0, 1) for index in range(6)])
        is_late = inputs[:, COLUMNS : COLUMNS + 2].sum(1) == 0
        for chosen in (is_late, ~is_late):
            own = inputs[chosen]
            agent.learn(torch.arange(len(own)) % 2, own, reward_of(own, 0))
        assert layout_of(agent) == LAYOUT

    def test_an_unknown_layout_is_saved(self):
        agent = GFUCB(2)
        decision = agent.decide(context_and_arm(2, 0)[:, :1])
        agent.observe(decision, [0.1, 0.2])
        twin = GFUCB(2)
        twin.load_state(agent.state())
        for own in (agent, twin):
            for index in range(1, 6):
                own.learn([0, 1], context_and_arm(2, index)[:, index % ARMS], [0.1, 0.3])
        assert layout_of(agent) == layout_of(twin) == LAYOUT

    def test_very_many_arms_have_no_weights_of_their_own(self):
        agent, arms = GFUCB(100), 300
        offered = torch.eye(arms).expand(2, -1, -1)
        agent.observe(agent.decide(offered, tasks=[0, 1]), [0.1, 0.2])
        assert agent.learner.chosen._fit.features.columns.layout == TableLayout(arms)


class TestLogs:
    def test_in_one_call_and_in_sixteen_give_the_same_predictions(self):
        tasks, inputs, rewards = log(640)
        at_once, in_parts = GFUCB(TASKS), GFUCB(TASKS)
        at_once.learn(tasks, inputs, rewards)
        for rows in torch.arange(640).split(40):
            in_parts.learn(tasks[rows], inputs[rows], rewards[rows])
        assert at_once.learner.num_fits == 1 < in_parts.learner.num_fits
        for task in range(TASKS):
            one, other = (predict(agent, QUESTIONS, task) for agent in (at_once, in_parts))
            assert float((one - other).square().mean().sqrt()) < 0.05 * float(one.std())
            truth = (3 * QUESTIONS[:, 0]).sin() + QUESTIONS[:, 1] + 0.1 * task * QUESTIONS[:, 2]
            assert float((one - truth - 0.1).square().mean().sqrt()) < 0.1 * float(truth.std())

    def test_update_between_fits_is_that_of_all_samples(self):
        """Rewards in parts, late and in another order give one posterior, up to rounding."""
        agents = [GFUCB(TASKS, refit_growth=100.0) for _ in range(2)]
        for agent in agents:
            agent.learn(*log(40))
        at_once, late = agents
        decisions = [
            [agent.decide(numbers_of_actions(TASKS, index)) for index in range(5)]
            for agent in agents
        ]
        rewards = [draw("rewards", TASKS, index=index) for index in range(5)]
        for index in range(5):
            at_once.observe(decisions[0][index], rewards[index])
        for index in (3, 0, 4, 2, 1):
            for rows in ([2], [3, 0], [1]):
                late.observe(decisions[1][index][rows], rewards[index][rows])
        assert at_once.learner.num_fits == late.learner.num_fits == 1
        for task in range(TASKS):
            expected = predict(at_once, QUESTIONS, task)
            torch.testing.assert_close(predict(late, QUESTIONS, task), expected)

    def test_columns_are_standardised_by_all_samples(self):
        agent = GFUCB(TASKS)
        tasks, inputs, rewards = log(60)
        agent.learn(tasks[:10], inputs[:10] + 5, rewards[:10])
        agent.learn(tasks, inputs, rewards)
        columns = agent.confidence_set(QUESTIONS).center.representation.columns
        expected = torch.cat([inputs[:10] + 5, inputs]).mean(0)
        torch.testing.assert_close(columns.location, expected)

    def test_a_reward_outside_the_range_so_far_brings_a_fit(self):
        agent = GFUCB(TASKS, refit_growth=100.0)
        tasks, inputs, rewards = log(60)
        agent.learn(tasks, inputs, rewards)
        agent.learn(tasks[:1], inputs[:1], rewards[:1])
        assert agent.learner.num_fits == 1
        agent.learn(tasks[:1], inputs[:1], [20.0])
        assert agent.learner.num_fits == 2

    def test_several_rows_of_one_task_are_learned_at_once(self):
        agent, one_by_one = (GFUCB(TASKS, refit_growth=100.0) for _ in range(2))
        for learner in (agent, one_by_one):
            learner.learn(*log(40))
        _, inputs, rewards = log(6, index=1)
        agent.learn([2] * 6, inputs, rewards)
        for row in range(6):
            one_by_one.learn([2], inputs[row : row + 1], rewards[row : row + 1])
        torch.testing.assert_close(predict(agent, QUESTIONS, 2), predict(one_by_one, QUESTIONS, 2))

    def test_a_task_without_rewards_benefits_from_the_others(self):
        tasks, inputs, rewards = log(400)
        agent, own = GFUCB(TASKS), tasks != 3
        agent.learn(tasks[own], inputs[own], rewards[own])
        truth = (3 * QUESTIONS[:, 0]).sin() + QUESTIONS[:, 1] + 0.3 * QUESTIONS[:, 2] + 0.1
        error = float((predict(agent, QUESTIONS, 3) - truth).square().mean().sqrt())
        assert error < 0.4 * float(truth.std())  # of which 0.3 is how much task 3 differs


def test_one_outlier_leaves_the_decisions_of_other_tasks():
    tasks, inputs, rewards = log(600)
    usual, hit = GFUCB(TASKS), GFUCB(TASKS)
    usual.learn(tasks, inputs, rewards)
    outlier = rewards.clone()
    outlier[int((tasks == 0).nonzero()[0])] = -999.0
    hit.learn(tasks, inputs, outlier)
    for task in range(1, TASKS):
        offered = QUESTIONS.view(20, 5, COLUMNS)
        one, other = (agent.decide(offered, [task] * 20).actions for agent in (usual, hit))
        assert float((one == other).double().mean()) >= 0.95
        difference = predict(usual, QUESTIONS, task) - predict(hit, QUESTIONS, task)
        assert float(difference.abs().max()) < 0.05


@pytest.mark.usefixtures("few_frequencies")
class TestRobustness:
    def test_without_a_range_nothing_is_clipped(self):
        tasks, inputs, rewards = log(100)
        rewards[0] = -999.0
        values = {}
        for value_range in ("auto", None):
            agent = GFUCB(TASKS, value_range=value_range)
            agent.learn(tasks, inputs, rewards)
            values[value_range] = float(agent.learner.chosen._fit.offset)
        assert values[None] == pytest.approx(float(rewards.mean()))
        assert values["auto"] > values[None] + 5

    @pytest.mark.parametrize("offer", [numbers_of_actions, context_and_arm])
    def test_the_unit_of_a_column_changes_no_decision(self, offer):
        """A power of two, so that no number is rounded differently."""

        def scaled(num_tasks: int, index: int) -> torch.Tensor:
            candidates = offer(num_tasks, index).clone()
            candidates[:, :, 1] *= 256
            return candidates

        def reward(inputs: torch.Tensor, index: int) -> torch.Tensor:
            inputs = inputs.clone()
            inputs[:, 1] /= 256
            return reward_of(inputs, index)

        rounds = range(6)
        found = play(GFUCB(2), scaled, rounds, reward)
        assert torch.equal(found, play(GFUCB(2), offer, rounds))

    @pytest.mark.parametrize(("unit", "origin"), [(2.0**-10, 0.0), (1.0, 100.0), (30.0, -7e3)])
    def test_unit_and_origin_of_rewards_change_no_decision(self, unit, origin):
        def reward(inputs: torch.Tensor, index: int) -> torch.Tensor:
            return unit * reward_of(inputs, index) + origin

        rounds = range(12)
        found = play(GFUCB(2), numbers_of_actions, rounds, reward)
        assert torch.equal(found, play(GFUCB(2), numbers_of_actions, rounds))

    @pytest.mark.parametrize("value_range", ["auto", (0.0, 1.0), None])
    def test_equal_rewards_are_predicted(self, value_range):
        agent = GFUCB(2, value_range=value_range)
        for index in range(4):
            agent.observe(agent.decide(numbers_of_actions(2, index)), [0.5, 0.5])
        decision = agent.decide(numbers_of_actions(2, 9))
        torch.testing.assert_close(decision.prediction.mean, torch.full((2,), 0.5).double())

    def test_reported_values_stay_in_the_range(self):
        agent = GFUCB(2, value_range=(-1.0, 2.0))
        first = agent.decide(numbers_of_actions(2, 0))
        assert torch.equal(first.prediction.mean, torch.full((2,), 0.5).double())
        assert bool((first.optimistic_values > 0.5).all())
        for index in range(8):
            decision = agent.decide(numbers_of_actions(2, index))
            assert bool((decision.optimistic_values <= 2).all())
            agent.observe(decision, reward_of(decision.inputs, index))


@pytest.mark.usefixtures("few_frequencies")
class TestFailures:
    @pytest.mark.parametrize("num_rounds", [0, 3])
    def test_a_fit_that_fails_leaves_the_agent_unchanged(self, num_rounds, monkeypatch):
        agent, twin = (GFUCB(2, refit_growth=1.0) for _ in range(2))
        if num_rounds:
            play(agent, context_and_arm, range(num_rounds))
            play(twin, context_and_arm, range(num_rounds))
        decision, before = agent.decide(context_and_arm(2, 50)), snapshot(agent)
        with monkeypatch.context() as patch:
            patch.setattr(table_learner, "fit_table", self.fail)
            with pytest.raises(ZeroDivisionError):
                agent.observe(decision, [0.1, 0.2])
        assert_same_state(agent, before)
        rest = range(num_rounds, num_rounds + 3)
        assert torch.equal(play(agent, context_and_arm, rest), play(twin, context_and_arm, rest))
        assert_same_state(agent, snapshot(twin))

    def test_an_update_that_fails_leaves_the_agent_unchanged(self, monkeypatch):
        agent = GFUCB(2, refit_growth=100.0)
        play(agent, context_and_arm, range(2))
        decision, before = agent.decide(context_and_arm(2, 50)), snapshot(agent)
        monkeypatch.setattr(HeadPosterior, "after", self.fail)
        with pytest.raises(ZeroDivisionError):
            agent.observe(decision, reward_of(decision.inputs, 50))
        assert_same_state(agent, before)

    @staticmethod
    def fail(*arguments, **options):
        raise ZeroDivisionError


class TestArmsWithoutContext:
    def test_have_growing_bonuses_which_predictions_show(self):
        arms = torch.eye(4, dtype=torch.float64).expand(TASKS, -1, -1)
        agent = GFUCB(TASKS, value_range=(0, 1))
        for index in range(40):
            decision = agent.decide(arms)
            agent.observe(decision, 0.2 * decision.actions + 0.1 * (-1) ** index)
        bounds = agent.predict(arms).upper
        assert torch.equal(agent.decide(arms).actions, bounds.argmax(1))
        confidence_set = agent.confidence_set(arms[0])
        assert confidence_set.growing_counts.tolist() == [40] * TASKS
        features = features_of(confidence_set.center.representation, arms[0]).expand(TASKS, -1, -1)
        widths = confidence_set.ellipsoid().squared_widths(features, torch.arange(TASKS))
        half = (confidence_set.squared_radius * widths).sqrt()
        assert (bounds[:, 0] - agent.predict(arms).mean[:, 0] > 1.05 * half[:, 0]).all()

    def test_only_these_have(self):
        agent = GFUCB(TASKS)
        agent.learn(*log(100))
        assert agent.confidence_set(QUESTIONS).growing_counts is None


class TestGreedy:
    def test_has_the_same_model_and_no_bonus(self):
        agent, greedy = GFUCB(TASKS), multitask_greedy(TASKS)
        for learner in (agent, greedy):
            learner.learn(*log(100))
        one, other = (learner.confidence_set(QUESTIONS) for learner in (agent, greedy))
        assert isinstance(other, PosteriorSet) and other.squared_radius == 0
        assert one.squared_radius == one.posterior.noise > 0
        assert torch.equal(one.center.heads, other.center.heads)
        offered = QUESTIONS.view(TASKS, 25, COLUMNS)
        decision, bold = greedy.decide(offered), agent.decide(offered)
        values = torch.stack([predict(greedy, offered[task], task) for task in range(TASKS)])
        assert torch.equal(decision.actions, values.argmax(1))
        clipped = other.center.clip(decision.prediction.mean)
        torch.testing.assert_close(decision.optimistic_values, clipped)
        assert greedy.diagnostics()["bonus"] == pytest.approx(0)
        assert agent.diagnostics()["bonus"] > 0.01
        assert bool((bold.optimistic_values >= decision.optimistic_values).all())

    def test_each_row_uses_the_whole_radius(self):
        """A row decides alike alone and among others: tasks do not share one radius."""
        agent = GFUCB(TASKS)
        agent.learn(*log(100))
        offered = QUESTIONS.view(TASKS, 25, COLUMNS)
        together = agent.decide(offered)
        for task in range(TASKS):
            alone = agent.decide(offered[task : task + 1], [task])
            assert int(alone.actions) == int(together.actions[task])
            torch.testing.assert_close(alone.optimistic_values[0], together.optimistic_values[task])
