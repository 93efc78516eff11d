"""Backups: optimism on locks, members of the joint backup, perturbed heads."""

import numpy as np
import pytest
import torch
from episodic_cases import trained

import gfucb
from gfucb.environments import linear_mdps, tabular_lock
from gfucb.episodic.joint_backup import JointBackup
from gfucb.runs.loop import play


def first_goal(agent, environment, episodes):
    for row in play(agent, environment, num_rounds=episodes):
        if row["goals"]:
            return row["round"]
    return None


@pytest.mark.slow
def test_pointwise_opens_a_long_lock_and_literal_does_not():
    """The first needs fewer than 50 episodes with these seeds."""
    for seed in (1, 2):
        environment = tabular_lock(horizon=12, seed=seed)
        assert first_goal(gfucb.episodic.lsvi_ucb(1, 12), environment, 150) is not None
        literal = gfucb.episodic.lsvi_ucb(1, 12, backup="literal")
        assert first_goal(literal, environment, 150) is None


@pytest.mark.slow
def test_pointwise_is_optimistic_on_a_lock_and_literal_is_not():
    violations = {}
    for backup in ("pointwise", "literal"):
        environment = tabular_lock(horizon=8, seed=3)
        rows = play(gfucb.episodic.lsvi_ucb(1, 8, backup=backup), environment, num_rounds=200)
        violations[backup] = np.mean([row["optimism_violations"] for row in rows])
    assert violations["pointwise"] == 0
    assert violations["literal"] > 0.5


@pytest.mark.parametrize("backup", ["joint", "randomised"])
def test_joint_and_randomised_open_a_short_lock(backup):
    for seed in range(2):
        environment = tabular_lock(horizon=4, seed=seed)
        agent = gfucb.episodic.lsvi_ucb(1, 4, backup=backup, replan="every")
        assert first_goal(agent, environment, 150) is not None


@pytest.mark.slow
def test_joint_members_are_in_their_sets_and_exceed_the_fit():
    agent, environment = trained(
        "joint", replan="every", environment=linear_mdps(num_tasks=2, num_actions=5, seed=1)
    )
    candidates = environment.episode(50).offered()[1]
    agent.plan(candidates)
    optimistic = agent.decide(0, candidates).optimistic_values.sum()
    for plan in agent.plans:
        assert plan.confidence_set.contains(plan.policy_functions[0], tolerance=1e-6)
    estimated = agent.plans[0].center.values(
        candidates.flatten(0, 1), torch.arange(2).repeat_interleave(5)
    )
    assert optimistic >= estimated.reshape(2, 5).amax(1).clamp(0, 1).sum() - 1e-9


@pytest.mark.slow
def test_perturbed_heads_have_the_covariance_of_perturbed_least_squares():
    agent, _ = trained(
        backup=gfucb.episodic.backups.RandomisedBackup(num_samples=4000), episodes=1, ridge=1.0
    )
    agent.plan(
        linear_mdps(num_tasks=2, num_states=5, num_actions=3, seed=4).episode(2).offered()[1]
    )
    plan = agent.plans[0]
    draws = torch.stack([f.heads[0] for f in plan.policy_functions]) - plan.center.heads[0]
    statistics = plan.confidence_set.center_statistics
    precision = statistics.grams[0] + torch.eye(5, dtype=torch.float64)
    found = draws.T @ draws / len(draws)
    torch.testing.assert_close(found, 0.2 * torch.linalg.inv(precision), atol=0.015, rtol=0.1)


@pytest.mark.slow
@pytest.mark.parametrize("backup", ["joint", "randomised"])
def test_policy_functions_satisfy_the_norm_bound(backup):
    agent, _ = trained(backup, episodes=3, head_norm_bound=0.2)
    for plan in agent.plans:
        for member in plan.policy_functions:
            assert member.heads.norm(dim=-1).max() <= 0.2 + 1e-9


class Counted:
    """The identity, which counts the inputs of its calls."""

    def __init__(self) -> None:
        self.calls: list[int] = []

    def __call__(self, inputs):
        self.calls.append(len(inputs))
        return inputs.flatten(1).double()


@pytest.mark.parametrize("rounds", [1, 10])
def test_joint_computes_features_once_in_an_episode(rounds):
    phi, backup = Counted(), JointBackup(gfucb.LastLayer(), rounds=rounds)
    agent, environment = trained(backup, episodes=6, representation=gfucb.FiniteClass([phi]))
    candidates = environment.episode(7).offered()[1]
    agent.plan(candidates)
    planned = agent.plan_index
    phi.calls.clear()
    agent.plan(candidates)
    assert agent.plan_index == planned
    # Samples of each stage and the first states; the plan has features of next observations.
    samples = [len(plan.confidence_set.data) for plan in agent.plans]
    assert phi.calls == [*samples, candidates.shape[0] * candidates.shape[1]]
