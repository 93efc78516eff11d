"""Rounds of users' environments: what is wrong is named, and true features may be left out."""

from dataclasses import replace

import pytest
import torch

import gfucb
from gfucb.checks import CheckError, check_bandit_agent, check_bandit_environment
from gfucb.core.errors import InvalidInputError
from gfucb.core.random import random_stream
from gfucb.core.records import BanditRound


class Own:
    """Two tasks with three actions each, whose rounds `change` makes wrong."""

    num_tasks = 2

    def __init__(self, seed, change=lambda found: found):
        self.seed, self.change = seed, change

    def round(self, index):
        draws = random_stream(self.seed, "own", index)
        candidates = torch.rand(2, 3, 4, generator=draws, dtype=torch.float64)
        return self.change(BanditRound(candidates, candidates.mean(-1), torch.zeros(2)))

    def describe(self):
        return {}


def compared(change, agents=("uniform",)):
    return gfucb.compare(lambda seed: Own(seed, change), list(agents), seeds=[0], num_rounds=2)


WRONG = {
    "got dict": vars,
    "candidates of a round must be a tensor .* got ndarray; torch.as_tensor": lambda found: replace(
        found, candidates=found.candidates.numpy()
    ),
    r"mean_rewards of a round .* and the 3 actions of the candidates, got \[2, 2\]": lambda found: (
        replace(found, mean_rewards=found.mean_rewards[:, :2])
    ),
    r"noise of a round .* got \[3\]": lambda found: replace(found, noise=torch.zeros(3)),
    r"candidates of a round .* with 2 tasks, got \[1, 3, 4\]": lambda found: replace(
        found, candidates=found.candidates[:1]
    ),
    r"candidates of a round .* with 2 tasks, got \[2\]": lambda found: replace(
        found, candidates=torch.zeros(2)
    ),
    "mean_rewards must be finite in every round": lambda found: replace(
        found, mean_rewards=found.mean_rewards * torch.nan
    ),
}


@pytest.mark.parametrize("why", WRONG)
def test_a_wrong_round_is_refused_by_comparisons_and_checks(why):
    with pytest.raises(InvalidInputError, match=why):
        compared(WRONG[why])
    with pytest.raises(CheckError, match=why):
        check_bandit_environment(lambda seed: Own(seed, WRONG[why]))


def test_true_features_are_for_oracles_only():
    check_bandit_environment(Own)
    assert len(compared(lambda found: found).rows) == 2
    with pytest.raises(InvalidInputError, match="have no true_features, which oracles need"):
        compared(lambda found: found, ["oracle-ucb"])


def test_checks_name_what_is_missing():
    with pytest.raises(CheckError, match="pass a function from the seed to an environment"):
        check_bandit_environment(Own(0))
    with pytest.raises(CheckError, match="the agent has no decide and no observe"):
        check_bandit_agent(lambda: Own(0))
