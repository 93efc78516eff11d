"""Estimates: exact values by enumeration, known answers, coverage of all intervals."""

import itertools
import math
from collections import Counter

import numpy as np
import pytest
import torch
from evaluation_cases import TARGET, TWO_CONTEXTS, table_rewards

from gfucb.evaluation import (
    Betting,
    EmpiricalBernstein,
    FixedActionPolicy,
    GFUCBRewards,
    LoggedDecisions,
    LoggedPolicy,
    UniformPolicy,
    evaluate,
)
from gfucb.evaluation.reward_models import cross_fitted_values, progressive_values

pytestmark = pytest.mark.filterwarnings("ignore:the effective sample size:UserWarning")


def all_logs():
    """Every outcome of two rows with its probability: one for each context."""
    problem = TWO_CONTEXTS
    for actions in itertools.product(range(3), repeat=2):
        for rewards in itertools.product((0.0, 1.0), repeat=2):
            chance = 1.0
            for context, (action, reward) in enumerate(zip(actions, rewards, strict=True)):
                mean = problem.expected[context, action]
                chance *= problem.logged[context, action] * (mean if reward else 1 - mean)
            logged = problem.logged[[0, 1], list(actions)]
            yield (
                chance,
                LoggedDecisions(
                    actions, logged, rewards, tasks=[0, 1], action_probabilities=problem.logged
                ),
            )


def wrong_model(train, test):
    """A model that does not depend on the data, and is far off."""
    return torch.tensor([[0.9, -0.4, 3.0], [0.2, 0.0, 1.0]], dtype=torch.float64)[test.tasks]


@pytest.mark.parametrize("estimator", ["ips", "dr"])
def test_ips_and_doubly_robust_are_unbiased(estimator):
    """The expectation over all logs is exact, also for a wrong model."""
    expectation = 0.0
    for chance, log in all_logs():
        result = evaluate(
            log, TWO_CONTEXTS.policy(TARGET), estimators=[estimator], reward_model=wrong_model
        )
        expectation += chance * result[estimator].value
    assert expectation == pytest.approx(TWO_CONTEXTS.value(TARGET), rel=1e-12)


def test_known_answers():
    log = LoggedDecisions([0, 1, 1, 0], [0.5, 0.25, 0.5, 0.2], [1.0, 0.0, 0.5, 0.25])
    policy = [[0.5, 0.5], [0.0, 1.0], [0.25, 0.75], [1.0, 0.0]]
    weights = np.array([1.0, 4.0, 1.5, 5.0])
    products = weights * [1.0, 0.0, 0.5, 0.25]
    result = evaluate(log, policy, reward_model=lambda train, test: torch.full((len(test), 2), 0.5))
    assert result["ips"].value == pytest.approx(products.mean())
    assert result["ips"].standard_error == pytest.approx(products.std(ddof=1) / 2)
    assert result["snips"].value == pytest.approx(products.sum() / 11.5)
    assert result["dm"].value == 0.5
    corrections = weights * [0.5, -0.5, 0.0, -0.25]
    assert result["dr"].value == pytest.approx(0.5 + corrections.mean())
    assert result.effective_sample_size == pytest.approx(11.5**2 / (1 + 16 + 2.25 + 25))
    assert (result.mean_weight, result.largest_weight) == (11.5 / 4, 5.0)
    low, high = result["ips"].interval
    assert high - low == pytest.approx(2 * 1.959964 * result["ips"].standard_error)
    assert result["dm"].interval is None and result["dm"].standard_error is None


def test_the_logged_policy_has_the_mean_reward():
    log = TWO_CONTEXTS.log(100, seed=0)
    result = evaluate(log, LoggedPolicy(), reward_model=table_rewards)
    for estimator in ("ips", "snips"):
        assert result[estimator].value == pytest.approx(float(log.rewards.mean()))
    assert result.effective_sample_size == 100
    # Without the probabilities of all actions, the chosen action stands for them.
    bare = LoggedDecisions(log.actions, log.probabilities, log.rewards, tasks=log.tasks)
    other = evaluate(bare, LoggedPolicy(), estimators=["dr"], reward_model=table_rewards)
    assert other["dr"].value == pytest.approx(float(log.rewards.mean()))
    assert other["dr"].sequence is None and result["dr"].sequence is not None


def test_clipping_reduces_weights_and_says_how_many():
    log = TWO_CONTEXTS.log(500, seed=0)
    result = evaluate(log, TWO_CONTEXTS.policy(TARGET), estimators=["ips"], max_weight=1.5)
    weights = evaluate(log, TWO_CONTEXTS.policy(TARGET), estimators=["ips"])
    assert result.clipped_rows == int(
        ((log.tasks == 0) & (log.actions == 2) | (log.tasks == 1) & (log.actions == 1)).sum()
    )
    assert result["ips"].value < weights["ips"].value
    assert result.largest_weight == weights.largest_weight == pytest.approx(4.0)


@pytest.mark.parametrize(
    ("sequence", "max_weight"),
    [(EmpiricalBernstein(), None), (Betting(), None), (EmpiricalBernstein(), 3.0)],
)
def test_intervals_contain_the_exact_value_with_the_stated_probability(sequence, max_weight):
    """With clipping, the sequences still hold; the other intervals are those of a biased value."""
    exact, repetitions, covered = TWO_CONTEXTS.value(TARGET), 50, Counter()
    for seed in range(repetitions):
        result = evaluate(
            TWO_CONTEXTS.log(200, seed),
            TWO_CONTEXTS.policy(TARGET),
            estimators=["ips", "snips", "dr"],
            confidence=0.9,
            max_weight=max_weight,
            sequence=sequence,
            reward_model=table_rewards,
            folds=2,
        )
        for name, estimate in result.estimates.items():
            for kind in ("interval", "sequence") if max_weight is None else ("sequence",):
                if (interval := getattr(estimate, kind)) is not None:
                    covered[name, kind] += interval.low <= exact <= interval.high
    assert len(covered) == (5 if max_weight is None else 2)
    assert min(covered.values()) >= 0.9 * repetitions - 3 * math.sqrt(repetitions * 0.09)
    # And normal intervals are not far too wide.
    assert all(n < repetitions for (_, kind), n in covered.items() if kind == "interval")


def test_the_doubly_robust_sequence_is_tighter_where_the_model_is_good():
    log = TWO_CONTEXTS.log(2000, seed=3)
    result = evaluate(
        log, TWO_CONTEXTS.policy(TARGET), estimators=["ips", "dr"], reward_model=table_rewards
    )
    widths = [e.sequence.high - e.sequence.low for e in result.estimates.values()]
    assert widths[1] < 0.9 * widths[0]


def test_a_range_of_rewards_scales_all_sequences():
    log, policy = TWO_CONTEXTS.log(200, seed=0), TWO_CONTEXTS.policy(TARGET)
    dollars = LoggedDecisions(
        log.actions,
        log.probabilities,
        200 * log.rewards - 50,
        tasks=log.tasks,
        action_probabilities=log.action_probabilities,
    )

    def scaled_model(train, test):
        return 200 * table_rewards(train, test) - 50

    unit = evaluate(log, policy, estimators=["ips"])["ips"].sequence
    scaled = evaluate(
        dollars,
        policy,
        reward_range=(-50, 150),
        estimators=["ips", "dr"],
        reward_model=scaled_model,
    )
    assert scaled["ips"].sequence == pytest.approx([200 * bound - 50 for bound in unit])
    assert scaled["dr"].sequence is not None
    none = evaluate(dollars, policy, reward_range=None, estimators=["ips"])["ips"]
    assert none.sequence is None and none.interval is not None


def test_cross_fitted_predictions_do_not_use_the_reward_of_their_row():
    log = TWO_CONTEXTS.log(40, seed=0)
    values = cross_fitted_values(log, table_rewards, folds=4, seed=0)
    rewards = log.rewards.clone()
    rewards[7] = 1 - rewards[7]
    changed = LoggedDecisions(log.actions, log.probabilities, rewards, tasks=log.tasks)
    after = cross_fitted_values(changed, table_rewards, folds=4, seed=0)
    assert torch.equal(values[7], after[7]) and not torch.equal(values, after)


def test_progressive_predictions_use_earlier_rows_only():
    log = TWO_CONTEXTS.log(100, seed=0)
    values = progressive_values(log, table_rewards, initial=0.5)
    assert bool((values[:32] == 0.5).all())
    rewards = log.rewards.clone()
    rewards[64:] = 0.25
    changed = LoggedDecisions(log.actions, log.probabilities, rewards, tasks=log.tasks)
    after = progressive_values(changed, table_rewards, initial=0.5)
    assert torch.equal(values, after)  # row 64 is first used at row 128
    assert torch.equal(progressive_values(log[:50], table_rewards, initial=0.5), values[:50])


def test_the_fit_of_gfucb_learns_expected_rewards():
    log = TWO_CONTEXTS.log(1200, seed=0)
    values = GFUCBRewards(value_range=(0, 1))(log, log[:2])
    assert values.numpy() == pytest.approx(TWO_CONTEXTS.expected, abs=0.1)
    result = evaluate(log, UniformPolicy(), estimators=["dm"], folds=2)
    assert result["dm"].value == pytest.approx(TWO_CONTEXTS.expected.mean(), abs=0.05)


def test_a_fixed_action_and_the_table_of_results():
    result = evaluate(TWO_CONTEXTS.log(300, seed=0), FixedActionPolicy(0), estimators=["ips"])
    (row,) = result.rows()
    assert row["low"] < TWO_CONTEXTS.expected[:, 0].mean() < row["high"]
    assert row["anytime_low"] < row["low"] and str(result).startswith("estimator")
