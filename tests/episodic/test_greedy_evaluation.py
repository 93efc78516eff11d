"""Evaluation of greedy policies, batches of episodes, and when a task counts as solved."""

import numpy as np
import pytest
import torch

from gfucb.core.errors import InvalidInputError
from gfucb.environments import combination_lock, linear_mdps, tabular_lock, tabular_mdps
from gfucb.episodic import (
    LSVIUCB,
    UCBVI,
    EpisodeBatch,
    EpisodicEpsilonGreedy,
    EpisodicGFUCB,
    GreedyEvaluation,
    IndependentEpisodicAgents,
    SolvedCriterion,
    evaluate_greedy,
    fitted_q,
    greedy_policy,
    lsvi_ucb,
    randomised_lsvi,
)
from gfucb.models import FiniteClass, IdentityRepresentation
from gfucb.runs.loop import play_episode

LOCK = combination_lock(3, 3, num_tasks=2, seed=1)
SMALL_LOCK = combination_lock(2, 2, num_tasks=2, seed=1)
AGENTS = {
    "lsvi in numpy": lambda: LSVIUCB(2, 2),
    "lsvi": lambda: lsvi_ucb(2, 2),
    "randomised": lambda: randomised_lsvi(2, 2),
    "uniform": lambda: EpisodicEpsilonGreedy(LSVIUCB(2, 2), epsilon=1.0),
    "fitted q": lambda: fitted_q(2, 2, FiniteClass([IdentityRepresentation()]), epsilon=0.5),
    "independent": lambda: IndependentEpisodicAgents(2, lambda seed: LSVIUCB(1, 2)),
    "ucbvi": lambda: UCBVI(2, 2),
}


def trained(agent, environment, episodes):
    for index in range(1, episodes + 1):
        play_episode(agent, environment.episode(index), environment.horizon, environment.num_tasks)
    return agent


@pytest.mark.parametrize("name", AGENTS)
def test_the_greedy_policy_of_agents_opens_the_lock_and_changes_nothing(name):
    environment = SMALL_LOCK.latent
    agent = trained(AGENTS[name](), environment, 30)
    before = {key: tensor.clone() for key, tensor in agent.state().items()}
    tasks, candidates = environment.episode(31).offered()
    decided = agent.decide(0, candidates, tasks).actions
    evaluation = evaluate_greedy(agent, environment, episodes=10)
    after = agent.state()
    assert before.keys() == after.keys()
    assert all(torch.equal(before[key], after[key]) for key in before)
    assert torch.equal(agent.decide(0, candidates, tasks).actions, decided)
    if name != "ucbvi":  # which is taken at its decisions
        assert evaluation.success_rate == 1.0 and evaluation.mean_return == 1.0
    assert evaluation.returns.shape == evaluation.successes.shape == (10, 2)


def test_greedy_is_not_optimistic():
    """An action that was never tried is not chosen for its bonus."""
    stay = np.ones((1, 2, 1))
    environment = tabular_mdps([stay], [[[0.5, 0.0]]], horizon=1)
    for agent in (LSVIUCB(1, 1, beta=3.0), lsvi_ucb(1, 1, beta=3.0)):
        candidates = environment.episode(1).offered()[1]
        agent.plan(candidates)
        decision = agent.decide(0, candidates)
        assert decision.actions.item() == 0
        agent.observe(0, decision, [0.5], candidates)
        agent.plan(candidates)
        assert agent.decide(0, candidates).actions.item() == 1  # the bonus
        policy = greedy_policy(agent)
        assert policy(0, candidates, torch.zeros(1, dtype=torch.int64)).item() == 0
        assert evaluate_greedy(agent, environment, episodes=2).mean_return == 0.5


def test_both_forms_of_lsvi_have_the_same_greedy_policy():
    environment = linear_mdps(num_tasks=2, horizon=3, num_states=6, num_actions=3, seed=0)
    value_range = environment.values_lie_in
    slow = trained(lsvi_ucb(2, 3, value_range=value_range), environment, 15)
    fast = trained(LSVIUCB(2, 3, value_range=value_range), environment, 15)
    one, other = (evaluate_greedy(agent, environment, episodes=30) for agent in (slow, fast))
    assert np.allclose(one.returns, other.returns)


def test_a_network_agent_is_evaluated_on_the_representations_of_its_fits():
    agent = trained(EpisodicGFUCB(2, 3, seed=0), LOCK, 2)
    first = evaluate_greedy(agent, LOCK, episodes=3, seed=0)
    again = evaluate_greedy(agent, LOCK, episodes=3, seed=0)
    assert np.array_equal(first.returns, again.returns)


def test_evaluations_depend_on_the_seed_and_not_on_the_batch():
    agent = trained(LSVIUCB(2, 3), LOCK.latent, 5)
    returns = [evaluate_greedy(agent, LOCK.latent, episodes=40, seed=s).returns for s in (0, 0, 1)]
    assert np.array_equal(returns[0], returns[1]) and not np.array_equal(returns[0], returns[2])
    fewer = evaluate_greedy(agent, LOCK.latent, episodes=7, seed=0).returns
    assert np.array_equal(fewer, returns[0][:7])


def test_environments_of_one_object_are_evaluated_one_episode_at_a_time():
    gymnasium = pytest.importorskip("gymnasium")
    from gfucb.environments.gymnasium import GymnasiumMDPs

    lakes = [gymnasium.make("FrozenLake-v1", is_slippery=slip) for slip in (False, True)]
    environment = GymnasiumMDPs(lakes, horizon=8)
    agent = trained(LSVIUCB(2, 8), environment, 3)
    evaluation = evaluate_greedy(agent, environment, episodes=4)
    assert evaluation.returns.shape == (4, 2) and evaluation.successes is None
    with pytest.raises(InvalidInputError, match="states no goals; pass successful_return"):
        _ = evaluation.success_rate
    easy = evaluate_greedy(agent, environment, episodes=4, successful_return=0.0)
    assert easy.success_rate == 1.0


def test_finite_mdps_without_a_goal_have_no_successes():
    environment = tabular_mdps([np.ones((1, 2, 1))], [[[0.5, 0.0]]], horizon=1)
    agent = trained(LSVIUCB(1, 1), environment, 1)
    assert evaluate_greedy(agent, environment, episodes=2).successes is None


def test_a_batch_has_the_rows_of_its_episodes():
    batch = EpisodeBatch([LOCK.episode(index) for index in (4, 5, 6)])
    alone = [LOCK.episode(index) for index in (4, 5, 6)]
    for stage in range(3):
        tasks, candidates = batch.offered()
        assert tasks.tolist() == [0, 1] * 3 and batch.owners.tolist() == [0, 0, 1, 1, 2, 2]
        assert torch.equal(candidates, torch.cat([e.offered()[1] for e in alone]))
        actions = torch.arange(6) % 3
        outcome = batch.play(actions)
        parts = [e.play(a) for e, a in zip(alone, actions.split(2), strict=True)]
        assert torch.equal(outcome.rewards, torch.cat([part.rewards for part in parts]))
        assert outcome.ended.all() == (stage == 2)


@pytest.mark.parametrize("make", [lambda: LSVIUCB(2, 4), lambda: lsvi_ucb(2, 4)])
def test_an_agent_learns_from_a_batch_what_it_learns_from_its_episodes(make):
    environment = tabular_lock(horizon=4, num_tasks=2, num_actions=3, seed=0)
    agent, one_by_one = make(), make()
    batch = EpisodeBatch([environment.episode(index) for index in (1, 2, 3)])
    tasks, candidates = batch.offered()
    agent.plan(candidates, tasks)
    one_by_one.plan(candidates[:2], tasks[:2])
    singles = [environment.episode(index) for index in (1, 2, 3)]
    for stage in range(4):
        tasks, candidates = batch.offered()
        decision = agent.decide(stage, candidates, tasks)
        outcome = batch.play(decision.actions)
        agent.observe(stage, decision, outcome.rewards, outcome.next_candidates, outcome.ended)
        for episode in singles:
            own = one_by_one.decide(stage, episode.offered()[1])
            result = episode.play(own.actions)
            one_by_one.observe(stage, own, result.rewards, result.next_candidates, result.ended)
    tasks, candidates = environment.episode(4).offered()
    for each in (agent, one_by_one):
        each.plan(candidates, tasks)
    one, other = (each.decide(0, candidates, tasks) for each in (agent, one_by_one))
    assert torch.equal(one.actions, other.actions)
    assert torch.allclose(one.optimistic_values, other.optimistic_values)


def test_batches_refuse_what_does_not_fit():
    with pytest.raises(InvalidInputError, match="at least one episode"):
        EpisodeBatch([])
    batch = EpisodeBatch([LOCK.episode(1)])
    with pytest.raises(InvalidInputError, match=r"shape \[2\], got \[3\]"):
        batch.play(torch.zeros(3, dtype=torch.int64))
    with pytest.raises(InvalidInputError, match="there is no plan yet"):
        evaluate_greedy(LSVIUCB(2, 3), LOCK.latent)
    with pytest.raises(InvalidInputError, match="there is no plan yet"):
        evaluate_greedy(lsvi_ucb(2, 3), LOCK.latent)


def test_a_task_is_solved_by_five_perfect_evaluations_in_a_row():
    criterion = SolvedCriterion(2)
    pattern = [(1, 0)] * 3 + [(1, 1)] * 2 + [(1, 0)] + [(0, 1)] * 5
    for number, (first, second) in enumerate(pattern, start=1):
        successes = np.array([[True, True], [bool(first), bool(second)]])
        criterion.add(10 * number, GreedyEvaluation(np.zeros((2, 2)), successes))
        assert criterion.is_solved == (number == 11)
    assert criterion.solved_after.tolist() == [50.0, 110.0]
    with pytest.raises(InvalidInputError, match="has 1 tasks, expected 2"):
        criterion.add(120, GreedyEvaluation(np.zeros((1, 1)), np.ones((1, 1), dtype=bool)))
