"""Tasks with more combinations of actions than can be listed."""

import pytest
import torch

from gfucb.core.action_sets import ActionSets
from gfucb.exploration import Greedy, LastLayer, last_layer


@pytest.mark.parametrize("seed", range(4))
def test_few_combinations_of_good_actions_are_nearly_as_good_as_all(finite_case, monkeypatch, seed):
    case = finite_case(seed, num_actions=6)
    candidates = torch.cat([case.action_sets(index).candidates[:1] for index in (1, 2, 3)])
    available = torch.ones(candidates.shape[:2], dtype=torch.bool)
    rows = ActionSets(candidates, torch.zeros(3, dtype=torch.int64), available)
    confidence_set = case.confidence_set(0.05)
    exact = LastLayer()(confidence_set, rows)
    monkeypatch.setattr(last_layer, "LARGEST_GROUP", 30)  # 3 actions in each row
    short = LastLayer()(confidence_set, rows)
    assert exact.is_exact and not short.is_exact
    greedy = Greedy()(confidence_set, rows)
    assert greedy.values.sum() <= short.values.sum() <= exact.values.sum() + 1e-9
