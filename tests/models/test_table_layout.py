"""Which columns of candidates are a one-hot action: found where they are, and only there."""

import pytest
import torch

from gfucb.core.random import random_stream
from gfucb.models.table_layout import TableLayout

ROWS, ARMS, CONTEXT = 6, 4, 3
PLAIN = TableLayout(CONTEXT + ARMS)
# The inputs do not show whether there is a one-hot action.
UNKNOWN = TableLayout(CONTEXT + ARMS, CONTEXT + ARMS)


def contexts(name: str = "contexts", columns: int = CONTEXT) -> torch.Tensor:
    """[row, 1, column]."""
    draws = random_stream(0, "table layout", name)
    return torch.randn(ROWS, 1, columns, generator=draws, dtype=torch.float64)


def with_arms(context: torch.Tensor, arms: torch.Tensor | None = None, *, first: bool = False):
    """Candidates [row, action, column] of contexts [row, 1, column] and arms [action, arm]."""
    arms = torch.eye(ARMS, dtype=torch.float64) if arms is None else arms
    parts = [context.expand(-1, len(arms), -1), arms.expand(len(context), -1, -1)]
    return torch.cat(parts[::-1] if first else parts, dim=2)


class TestCandidates:
    def test_with_the_arm_after_the_context(self):
        found = TableLayout.of_candidates(with_arms(contexts()))
        assert found == TableLayout(CONTEXT + ARMS, CONTEXT, ARMS)
        assert found.num_context == CONTEXT

    def test_with_the_arm_before_the_context(self):
        found = TableLayout.of_candidates(with_arms(contexts(), first=True))
        assert found == TableLayout(CONTEXT + ARMS, 0, ARMS)

    def test_with_fixed_arms_and_no_context(self):
        arms = torch.eye(ARMS).expand(ROWS, -1, -1)
        assert TableLayout.of_candidates(arms) == TableLayout(ARMS, 0, ARMS)

    def test_of_a_single_row(self):
        found = TableLayout.of_candidates(with_arms(contexts())[:1])
        assert found == TableLayout(CONTEXT + ARMS, CONTEXT, ARMS)

    @pytest.mark.parametrize("first", [False, True])
    def test_in_another_order_of_arms(self, first):
        shuffled = torch.eye(ARMS, dtype=torch.float64)[[2, 0, 3, 1]]
        found = TableLayout.of_candidates(with_arms(contexts(), shuffled, first=first))
        assert found.num_actions == ARMS
        assert found.first_action == (0 if first else CONTEXT)

    def test_with_a_subset_of_the_arms_that_has_the_first(self):
        """All columns from the first that varies to the end belong to the arm."""
        some = torch.eye(ARMS, dtype=torch.float64)[[0, 2]]
        found = TableLayout.of_candidates(with_arms(contexts(), some))
        assert found == TableLayout(CONTEXT + ARMS, CONTEXT, ARMS)

    def test_with_another_subset_in_every_row(self):
        offered = with_arms(contexts())
        some = torch.stack([torch.tensor([r % ARMS, (r + 1) % ARMS]) for r in range(ROWS)])
        rows = torch.arange(ROWS)[:, None]
        found = TableLayout.of_candidates(offered[rows, some])
        assert found == TableLayout(CONTEXT + ARMS, CONTEXT, ARMS)

    def test_a_one_hot_context_is_no_action(self):
        """The columns of the context are the same for all actions of a row."""
        kinds = torch.eye(CONTEXT, dtype=torch.float64)[torch.arange(ROWS) % CONTEXT]
        for first in (False, True):
            found = TableLayout.of_candidates(with_arms(kinds[:, None], first=first))
            start = 0 if first else CONTEXT
            assert found == TableLayout(CONTEXT + ARMS, start, ARMS)

    def test_a_single_candidate_shows_nothing(self):
        assert TableLayout.of_candidates(with_arms(contexts())[:, :1]) == UNKNOWN

    def test_equal_candidates_show_nothing(self):
        same = torch.ones(ROWS, 3, 2)
        assert TableLayout.of_candidates(same) == TableLayout(2, 2)

    @pytest.mark.parametrize(
        "arms",
        [
            2 * torch.eye(ARMS),
            torch.eye(ARMS) - 0.25,
            torch.eye(ARMS) + torch.eye(ARMS).roll(1, 0),
            torch.cat([torch.eye(ARMS), torch.zeros(1, ARMS)]),
            1 - torch.eye(ARMS),
        ],
        ids=["twos", "centred", "two ones", "a zero line", "all but one"],
    )
    def test_what_only_looks_one_hot_is_plain(self, arms):
        assert TableLayout.of_candidates(with_arms(contexts(), arms.double())) == PLAIN

    def test_one_row_that_is_not_one_hot_decides(self):
        offered = with_arms(contexts())
        offered[-1, -1, -1] = 0.5
        assert TableLayout.of_candidates(offered) == PLAIN

    def test_features_of_actions_are_plain(self):
        draws = random_stream(0, "table layout", "actions")
        assert TableLayout.of_candidates(torch.rand(ROWS, 5, 3, generator=draws)) == TableLayout(3)

    def test_one_binary_column_is_no_action(self):
        offered = with_arms(contexts(), torch.tensor([[0.0], [1.0]]).double())
        assert TableLayout.of_candidates(offered) == TableLayout(CONTEXT + 1)

    def test_bytes_are_read_like_floats(self):
        offered = with_arms(contexts().abs().to(torch.uint8), torch.eye(ARMS).to(torch.uint8))
        expected = TableLayout.of_candidates(offered.double())
        assert TableLayout.of_candidates(offered) == expected
        assert expected.num_actions >= ARMS


class TestLogs:
    ACTIONS = torch.arange(12) % ARMS

    def log(self, context: torch.Tensor, arms: torch.Tensor) -> torch.Tensor:
        return torch.cat([context, torch.eye(ARMS, dtype=torch.float64)[arms]], dim=1)

    def test_the_block_at_the_end_is_the_action(self):
        context = contexts("log", CONTEXT * 2).view(12, CONTEXT)
        found = TableLayout.of_samples(self.log(context, self.ACTIONS))
        assert found == TableLayout(CONTEXT + ARMS, CONTEXT, ARMS)

    def test_fixed_arms_have_no_context(self):
        arms = torch.eye(ARMS)[self.ACTIONS]
        assert TableLayout.of_samples(arms) == TableLayout(ARMS, 0, ARMS)

    def test_a_one_hot_context_before_the_action_stays_context(self):
        kinds = torch.eye(CONTEXT, dtype=torch.float64)[torch.arange(12) // 4]
        found = TableLayout.of_samples(self.log(kinds, self.ACTIONS))
        assert found == TableLayout(CONTEXT + ARMS, CONTEXT, ARMS)

    def test_an_arm_that_was_never_taken_is_context(self):
        """Its column is constant, and nothing else is known about it."""
        context = contexts("log", CONTEXT * 2).view(12, CONTEXT)
        without_first = 1 + torch.arange(12) % (ARMS - 1)
        found = TableLayout.of_samples(self.log(context, without_first))
        assert found == TableLayout(CONTEXT + ARMS, CONTEXT + 1, ARMS - 1)

    def test_numbers_at_the_end_are_plain(self):
        context = contexts("log", CONTEXT * 2).view(12, CONTEXT)
        arms = torch.eye(ARMS, dtype=torch.float64)[self.ACTIONS]
        assert TableLayout.of_samples(torch.cat([arms, context], dim=1)) == PLAIN

    def test_one_action_shows_nothing(self):
        one = torch.tensor([[0.3, 0.0, 1.0, 0.0]])
        assert TableLayout.of_samples(one) == TableLayout(4, 4)

    def test_one_column_is_plain(self):
        assert TableLayout.of_samples(torch.ones(5, 1)) == TableLayout(1)


class TestCorrections:
    """Later samples show what the first ones could not."""

    ALL = TableLayout(CONTEXT + ARMS, CONTEXT, ARMS)

    def log(self, *arms: int) -> torch.Tensor:
        context = contexts("corrections", len(arms))[0].T.expand(-1, CONTEXT)
        return torch.cat([context, torch.eye(ARMS, dtype=torch.float64)[list(arms)]], dim=1)

    def test_arms_before_those_of_the_first_samples(self):
        some = TableLayout.of_samples(self.log(2, 3, 2))
        assert some == TableLayout(CONTEXT + ARMS, CONTEXT + 2, 2)
        assert some.corrected_by(self.log(2, 3, 2)) == some
        assert some.corrected_by(self.log(2, 3, 2, 0)) == self.ALL

    def test_arms_after_those_of_the_first_candidates_if_the_arm_comes_first(self):
        some = torch.eye(ARMS, dtype=torch.float64)[[0, 1]]
        found = TableLayout.of_candidates(with_arms(contexts(), some, first=True))
        assert found == TableLayout(CONTEXT + ARMS, 0, 2)
        later = with_arms(contexts(), first=True).flatten(0, 1)
        assert found.corrected_by(later) == TableLayout(CONTEXT + ARMS, 0, ARMS)

    def test_a_single_candidate_at_first(self):
        assert UNKNOWN.corrected_by(self.log(0, 1, 3)) == self.ALL
        assert UNKNOWN.corrected_by(self.log(1, 1)) == UNKNOWN

    def test_what_the_first_candidates_have_shown_stays(self):
        """Binary columns at the end are not the action, if candidates have said so."""
        assert PLAIN.corrected_by(self.log(0, 1, 3)) == PLAIN
        assert self.ALL.corrected_by(self.log(2, 3)) == self.ALL

    def test_inputs_without_a_one_hot_action_change_nothing(self):
        broken = self.log(0, 1, 2)
        broken[0, -1] = 0.5
        assert self.ALL.corrected_by(broken) == self.ALL


class TestSplit:
    @pytest.mark.parametrize("first", [False, True])
    def test_separates_context_and_action(self, first):
        offered = with_arms(contexts(), first=first)
        layout = TableLayout.of_candidates(offered)
        context, actions = layout.split(offered.flatten(0, 1))
        assert torch.equal(context, contexts().expand(-1, ARMS, -1).flatten(0, 1))
        assert torch.equal(actions, torch.eye(ARMS, dtype=torch.float64).repeat(ROWS, 1))

    def test_keeps_the_context_on_both_sides_of_the_action(self):
        context, actions = TableLayout(5, 1, 2).split(torch.arange(10.0).view(2, 5))
        assert context.tolist() == [[0, 3, 4], [5, 8, 9]]
        assert actions is not None and actions.tolist() == [[1, 2], [6, 7]]

    def test_of_a_plain_table_has_no_actions(self):
        inputs = torch.rand(3, 7)
        context, actions = PLAIN.split(inputs)
        assert torch.equal(context, inputs) and actions is None
