"""The default agent on tables: which actions it tries."""

from collections.abc import Callable

import pytest
import torch
from table_cases import COLUMNS, context_and_arm, draw, play, prices

from gfucb import GFUCB
from gfucb.estimation.table_fit import EXPLORED_DRAWN
from gfucb.estimation.table_samples import TableSamples
from gfucb.models.table_features import TableColumns
from gfucb.models.table_layout import TableLayout


class TestContinuousActions:
    """Prices from 0 to 1 without context; the best one is in the middle."""

    PRICES = torch.linspace(0, 1, 11).double()

    @pytest.mark.parametrize("value_range", [None, (0.0, 1.0)])
    @pytest.mark.parametrize("num_tasks", [1, 5])
    def test_are_tried_between_the_ends(self, num_tasks, value_range):
        """A line through both ends explains their rewards, and has no uncertainty between them."""
        agent = GFUCB(num_tasks, value_range=value_range)
        candidates = self.PRICES[None, :, None].expand(num_tasks, -1, -1)
        for index in range(20):
            decision = agent.decide(candidates)
            chosen = self.PRICES[decision.actions]
            noise = 0.02 * draw("noise", num_tasks, index=index)
            agent.observe(decision, 3.5 * chosen * (1 - chosen) + noise)
        assert torch.equal((chosen - 0.5).abs() < 0.25, torch.ones(num_tasks).bool())

    @pytest.mark.parametrize("value_range", [(0.0, 1.0), (-5.0, 5.0)])
    def test_are_not_tried_for_long_if_rewards_have_little_noise(self, value_range):
        """Also if the stated range is ten times too wide."""
        agent, chosen = GFUCB(1, value_range=value_range), torch.empty(80).double()
        for index in range(80):
            decision = agent.decide(self.PRICES[None, :, None])
            chosen[index] = self.PRICES[decision.actions]
            noise = 0.02 * draw("noise", 1, index=index)
            agent.observe(decision, 3.5 * chosen[index] * (1 - chosen[index]) + noise)
        regrets = 3.5 * (chosen - 0.5).square()
        assert regrets[40:].mean() < 0.02

    def test_are_those_of_the_first_decision(self):
        agent = GFUCB(2)
        play(agent, prices, range(8))
        columns = agent.confidence_set(prices(2, 9)[0]).center.representation.columns
        assert columns.continuous.columns.tolist() == [COLUMNS]
        linear = columns.linear_features(prices(2, 9)[0])
        assert linear.shape[1] == len(columns.action_columns())
        assert linear.shape[1] == 1 + COLUMNS + 1 + columns.continuous.num_features

    def test_need_no_one_hot_actions(self):
        agent = GFUCB(2)
        play(agent, context_and_arm, range(3))
        found = agent.confidence_set(context_and_arm(2, 9)[0]).center.representation
        assert found.columns.continuous is None


class TestOneTask:
    """What one task tries depends on whether its candidates make it explore."""

    ITEMS = draw("items", 6, 3)

    def _explored(self, num_tasks: int, candidates: Callable[[int], torch.Tensor]) -> float:
        """The variance of possible effects after twelve rounds."""
        agent = GFUCB(num_tasks, value_range=(0.0, 1.0))
        for index in range(12):
            shown = candidates(index).expand(num_tasks, -1, -1)
            decision = agent.decide(shown)
            agent.observe(decision, 0.5 + 0.1 * draw("noise", num_tasks, index=index))
        agent.refit()
        posterior = agent.confidence_set(shown.flatten(0, 1)).posterior
        return float(posterior.exploration_scale * posterior.noise)

    def _drawn(self, index: int) -> torch.Tensor:
        return draw("drawn", 6, 3, index=index)

    def _with_context(self, index: int) -> torch.Tensor:
        return torch.cat([draw("context", 1, 2, index=index).expand(6, -1), self.ITEMS], dim=1)

    def test_explores_lists_more_than_candidates_that_are_drawn_anew(self):
        """Also a list whose items come with a context that varies."""
        drawn = self._explored(1, self._drawn)
        assert self._explored(1, lambda index: self.ITEMS) == pytest.approx(drawn / EXPLORED_DRAWN)
        assert self._explored(1, self._with_context) == pytest.approx(drawn / EXPLORED_DRAWN)

    @pytest.mark.parametrize(
        ("values", "is_drawn"),
        [
            ([0.3], True),
            ([0.1, 0.2, 0.1, 0.2], False),  # repeated, but never twice in succession
            ([*range(19), 0], True),  # 5% were chosen before
            ([*range(18), 0, 1], False),
        ],
    )
    def test_hardly_any_value_of_what_is_drawn_anew_was_chosen_before(self, values, is_drawn):
        column = torch.tensor(values, dtype=torch.float64)[:, None]
        varies = torch.linspace(0, 1, len(values), dtype=torch.float64)[:, None]

        def are_drawn(inputs: torch.Tensor, layout: TableLayout) -> bool:
            columns = TableColumns.of(layout, inputs, 1, torch.Generator())
            zeros = torch.zeros(len(inputs))
            return TableSamples(inputs, zeros.long(), zeros, 1, columns, 1.0).are_drawn_anew()

        assert are_drawn(torch.cat([varies, column], 1), TableLayout(2)) == is_drawn
        arms = torch.eye(2, dtype=torch.float64)[torch.arange(len(values)) % 2]
        assert not are_drawn(torch.cat([varies, arms], 1), TableLayout(3, 1, 2))

    def test_is_one_task(self):
        """With several tasks effects of columns are small anyway."""
        listed = self._explored(3, lambda index: self.ITEMS)
        assert self._explored(3, self._drawn) == pytest.approx(listed)

    def test_tries_clearly_worse_arms_once(self):
        arms, tries = torch.eye(12).double(), torch.zeros(12)
        agent = GFUCB(1, value_range=(0.0, 1.0))
        for index in range(80):
            decision = agent.decide(arms[None])
            tries[decision.actions] += 1
            best = (decision.actions == 3).double()
            agent.observe(decision, 0.1 + 0.8 * best + 0.02 * draw("noise", 1, index=index))
        assert tries.tolist() == [69.0 if arm == 3 else 1.0 for arm in range(12)]

    @pytest.mark.parametrize(("num_tasks", "rate"), [(1, 1.0), (4, 0.625)])
    def test_needs_more_tries_alone_without_a_range(self, num_tasks, rate):
        agent = GFUCB(num_tasks)
        play(agent, context_and_arm, range(3))
        found = agent.confidence_set(context_and_arm(num_tasks, 9)[0]).posterior
        assert found.untried_rate == rate


class TestArmsInContext:
    """One-hot actions in a context that varies."""

    @pytest.mark.parametrize(
        ("offer", "value_range", "limits"),
        [
            (context_and_arm, (0.0, 1.0), (0.0, 1.0)),
            (context_and_arm, "auto", None),
            (prices, (0.0, 1.0), None),
        ],
    )
    def test_have_bounded_bonuses_if_the_range_is_stated(self, offer, value_range, limits):
        agent = GFUCB(1, value_range=value_range)
        for index in range(5):
            assert agent.confidence_set(offer(1, index)[0], candidates=offer(1, 0)).limits == limits
            agent.observe(agent.decide(offer(1, index)), [0.5])

    def test_are_not_left_near_the_top_of_the_range(self):
        """The first action has the best possible reward, so nothing can be gained by others."""
        chosen = {}
        for name, value_range in (("top", (0.0, 1.0)), ("middle", (0.0, 2.0))):
            agent = GFUCB(1, value_range=value_range)
            actions = []
            for index in range(30):
                decision = agent.decide(context_and_arm(1, index))
                actions.append(int(decision.actions))
                noise = 0.02 * float(draw("noise", 1, index=index))
                agent.observe(decision, [(0.98 if actions[-1] == 0 else 0.5) + noise])
            chosen[name] = actions.count(0)
        assert chosen["top"] > chosen["middle"] + 2

    def test_are_expected_to_be_worse_than_the_chosen_ones(self):
        """With one task the offset is not the mean of rewards, most of which are of one action."""
        agent = GFUCB(1, value_range=(0.0, 1.0))
        inputs = torch.cat([context_and_arm(1, index)[:, 0] for index in range(40)])
        for index in range(20, 23):
            inputs = torch.cat([inputs, context_and_arm(1, index)[0, 1:]])
        rewards = torch.cat([torch.full((40,), 0.9), torch.full((12,), 0.1)])
        agent.learn(torch.zeros(52).long(), inputs, rewards)
        center = agent.confidence_set(inputs).center
        assert center.offset < float(rewards.mean()) - 0.1

    def test_are_restored_exactly(self):
        """Between fits, and over the next ones."""
        agent, other = (GFUCB(1, value_range=(-1.5, 1.5)) for _ in range(2))
        play(agent, context_and_arm, range(21))
        other.load_state(agent.state())
        actions = play(agent, context_and_arm, range(21, 60))
        assert torch.equal(play(other, context_and_arm, range(21, 60)), actions)
        assert all(torch.equal(x, other.state()[name]) for name, x in agent.state().items())
