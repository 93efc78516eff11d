import numpy as np
import pytest
import torch
from torch import nn

import gfucb
from gfucb import GFUCB, ConstantRadius, FiniteClass, LinearClass, VariableProjection
from gfucb.checks import check_bandit_agent
from gfucb.core.random import random_stream
from gfucb.environments import finite_bandit, linear_bandit
from gfucb.models import IdentityRepresentation
from gfucb.runs import play
from gfucb.theory.lemma_radii import CorrectedRadius


def numbers(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=random_stream(seed, "numbers"), dtype=torch.float64)


def test_one_task_with_the_identity_is_oful():
    """Abbasi-Yadkori et al. 2011: argmax <theta, x> + sqrt(beta) |x|_{V^-1}, written out."""
    dim, actions, ridge, beta = 5, 7, 0.8, 1.3
    agent = GFUCB(
        1,
        FiniteClass([IdentityRepresentation()]),
        squared_radius=ConstantRadius(beta),
        ridge=ridge,
        value_range=None,
        offset=0.0,
    )
    v, b = ridge * np.eye(dim), np.zeros(dim)
    true_head = numbers(0, dim).numpy()
    for index in range(60):
        candidates = numbers(index, 1, actions, dim)
        decision = agent.decide(candidates)
        x, inverse = candidates[0].numpy(), np.linalg.inv(v)
        ucb = x @ inverse @ b + np.sqrt(beta) * np.sqrt(np.einsum("ad,de,ae->a", x, inverse, x))
        assert int(decision.actions[0]) == int(ucb.argmax())
        assert float(decision.optimistic_values[0]) == pytest.approx(ucb.max(), rel=1e-10)
        chosen = x[ucb.argmax()]
        reward = float(chosen @ true_head + 0.1 * numbers(1000 + index, 1))
        agent.observe(decision, [reward])
        v, b = v + np.outer(chosen, chosen), b + reward * chosen


def test_several_tasks_share_one_radius():
    """Against the joint program solved by listing all tuples of two tasks."""
    beta, ridge = 0.7, 1.0
    agent = GFUCB(
        2,
        FiniteClass([IdentityRepresentation()]),
        squared_radius=ConstantRadius(beta),
        ridge=ridge,
        value_range=None,
        offset=0.0,
    )
    v, b = np.stack([ridge * np.eye(3)] * 2), np.zeros((2, 3))
    for index in range(20):
        candidates = numbers(index, 2, 4, 3)
        decision = agent.decide(candidates)
        x = candidates.numpy()
        best, best_value = (0, 0), -np.inf
        for one in range(4):
            for two in range(4):
                picks = [x[0, one], x[1, two]]
                mean = sum(p @ np.linalg.solve(v[i], b[i]) for i, p in enumerate(picks))
                spread = sum(p @ np.linalg.solve(v[i], p) for i, p in enumerate(picks))
                if mean + np.sqrt(beta * spread) > best_value:
                    best, best_value = (one, two), mean + np.sqrt(beta * spread)
        assert tuple(decision.actions.tolist()) == best
        assert float(decision.optimistic_values.sum()) == pytest.approx(best_value, rel=1e-10)
        rewards = numbers(500 + index, 2)
        agent.observe(decision, rewards)
        for i in range(2):
            chosen = x[i, best[i]]
            v[i], b[i] = v[i] + np.outer(chosen, chosen), b[i] + float(rewards[i]) * chosen


def seeded(layer: nn.Linear) -> nn.Linear:
    layer.weight.data = torch.randn(layer.weight.shape, generator=random_stream(0, "weights"))
    layer.bias.data.zero_()
    return layer


QUICK = VariableProjection(steps=4)
AGENTS = {
    "default network": lambda: GFUCB(3, seed=1, fit=QUICK),
    "own network": lambda: GFUCB(3, seeded(nn.Linear(4, 6)), fit=QUICK),
    "finite": lambda: GFUCB(3, FiniteClass([IdentityRepresentation(), lambda x: x.double() ** 2])),
    "linear": lambda: GFUCB(3, LinearClass(4, 2)),
    "every round": lambda: GFUCB(3, seed=1, fit=QUICK, refit_growth=1.0),
    "greedy": lambda: gfucb.multitask_greedy(3, fit=QUICK),
    "epsilon": lambda: gfucb.EpsilonGreedy(gfucb.multitask_greedy(3, fit=QUICK), epsilon=0.5),
    "independent": lambda: gfucb.bandits.Grouped(
        3,
        lambda n, s: gfucb.EpsilonGreedy(gfucb.multitask_greedy(n, seed=s, fit=QUICK), seed=s),
    ),
    "linucb": lambda: gfucb.linucb(3),
    "uniform": lambda: gfucb.Uniform(3),
    "paper": lambda: GFUCB(
        3,
        seeded(nn.Linear(4, 3)),
        fit=gfucb.estimation.AdamFit(epochs=2),
        action_selector=gfucb.exploration.FineTuning.stable(iterations=3),
        squared_radius=gfucb.estimation.LogRadius(),
        refit_growth=1.0,
    ),
}


@pytest.mark.parametrize("name", AGENTS)
def test_every_agent_passes_the_check_of_agents(name):
    check_bandit_agent(AGENTS[name])


def test_decisions_change_nothing():
    one, other = GFUCB(4, fit=QUICK), GFUCB(4, fit=QUICK)
    for index in range(5):
        candidates = numbers(index, 4, 3, 2)
        for what_if in range(3):
            other.decide(numbers(100 + what_if, 2, 6, 2), tasks=[1, 1])
        first, second = one.decide(candidates), other.decide(candidates)
        assert torch.equal(first.actions, second.actions)
        assert torch.equal(first.optimistic_values, second.optimistic_values)
        one.observe(first, torch.rand(4, generator=random_stream(index, "r")))
        other.observe(second, torch.rand(4, generator=random_stream(index, "r")))


def test_a_decision_before_any_reward_does_not_fix_the_shape_of_inputs():
    agent = GFUCB(2, fit=QUICK)
    agent.decide(torch.rand(2, 3, 9))
    decision = agent.decide(torch.rand(2, 3, 4, 4))
    agent.observe(decision, [0.0, 1.0])


def test_late_and_partial_rewards_give_the_same_fit_as_prompt_ones():
    """With a fixed representation the heads depend on the samples, not on their order."""
    known = FiniteClass([IdentityRepresentation()])
    prompt, late = (GFUCB(3, known, value_range=(0.0, 1.0)) for _ in range(2))
    waiting = []
    for index in range(6):
        candidates, rewards = numbers(index, 3, 4, 2), numbers(50 + index, 3)
        decision = prompt.decide(candidates)
        prompt.observe(decision, rewards)
        waiting.append((decision, rewards))
    for decision, rewards in reversed(waiting):
        late.observe(decision[2], rewards[2:])
        late.observe(decision[[1, 0]], rewards[[1, 0]])
    question = numbers(99, 3, 4, 2)
    torch.testing.assert_close(
        prompt.decide(question).optimistic_values, late.decide(question).optimistic_values
    )


def test_logs_give_the_same_fit_as_decisions():
    known = FiniteClass([IdentityRepresentation()])
    by_decision, by_log = GFUCB(3, known), GFUCB(3, known)
    decision = by_decision.decide(numbers(0, 3, 4, 2))
    by_decision.observe(decision, [0.1, 0.2, 0.3])
    by_log.learn(decision.tasks, decision.inputs, [0.1, 0.2, 0.3])
    question = numbers(1, 3, 4, 2)
    assert torch.equal(
        by_decision.decide(question).optimistic_values,
        by_log.decide(question).optimistic_values,
    )


def test_a_round_may_have_several_rows_of_one_task_and_none_of_others():
    agent = GFUCB(5, fit=QUICK)
    decision = agent.decide(torch.rand(3, 4, 6), tasks=[4, 1, 4])
    assert decision.tasks.tolist() == [4, 1, 4]
    assert decision.inputs.shape == (3, 6)
    agent.observe(decision[1], [0.3])
    agent.observe(decision[[0, 2]], [0.1, 0.2])
    assert agent.learner.fit_state(torch.rand(1, 6))[1].tasks.tolist() == [1, 4, 4]


def test_padding_that_is_not_available_may_hold_any_value():
    agent = GFUCB(2, fit=QUICK)
    candidates = torch.rand(2, 3, 4)
    available = torch.tensor([[True, True, False], [True, False, False]])
    clean = agent.decide(candidates, available=available)
    candidates[~available] = float("nan")
    dirty = agent.decide(candidates, available=available)
    assert torch.equal(clean.actions, dirty.actions)
    assert dirty.actions.tolist()[1] == 0


def test_rewards_and_radius_in_other_units_give_the_same_actions():
    scale = 7.0
    one = GFUCB(3, LinearClass(4, 2), value_range=(0.0, 1.0))
    other = GFUCB(3, LinearClass(4, 2), value_range=(0.0, scale))
    for index in range(15):
        candidates = numbers(index, 3, 5, 4)
        first, second = one.decide(candidates), other.decide(candidates)
        assert torch.equal(first.actions, second.actions)
        torch.testing.assert_close(scale * first.optimistic_values, second.optimistic_values)
        rewards = numbers(200 + index, 3)
        one.observe(first, rewards)
        other.observe(second, scale * rewards)


def test_relabelling_the_tasks_changes_nothing():
    known = finite_bandit(seed=0).representation_class
    one, other = GFUCB(4, known), GFUCB(4, known)
    order = torch.tensor([2, 0, 3, 1])
    # Without data all bonuses are equal, and rounding may decide which of equal values is first.
    first_inputs, first_rewards = numbers(77, 4, 6), numbers(78, 4)
    one.learn(torch.arange(4), first_inputs, first_rewards)
    other.learn(torch.arange(4), first_inputs[order], first_rewards[order])
    for index in range(10):
        candidates, rewards = numbers(index, 4, 5, 6), numbers(300 + index, 4)
        first = one.decide(candidates)
        second = other.decide(candidates[order], tasks=torch.arange(4))
        assert torch.equal(first.actions[order], second.actions)
        one.observe(first, rewards)
        other.observe(second, rewards[order])


def test_reported_optimistic_values_lie_in_the_value_range():
    radius = ConstantRadius(1e6)
    agent = GFUCB(2, squared_radius=radius, fit=QUICK, value_range=(0.0, 1.0))
    values = agent.decide(torch.rand(2, 3, 4)).optimistic_values
    assert values.tolist() == [1.0, 1.0]


def test_the_representation_is_refitted_when_the_data_has_grown_and_heads_always():
    calls = []

    def counting_fit(data, start, penalty, generator):
        calls.append(len(data))
        return QUICK(data, start, penalty, generator)

    agent = GFUCB(1, fit=counting_fit, refit_growth=2.0)
    candidates = torch.rand(1, 1, 3)
    before = float(agent.decide(candidates).optimistic_values)
    for _ in range(20):
        agent.observe(agent.decide(candidates), [0.0])
        after = float(agent.decide(candidates).optimistic_values)
        assert after <= before
        before = after
    assert calls == [1, 2, 4, 8, 16]


def regret(agent, environment, num_rounds: int, **options) -> float:
    rows = list(play(agent, environment, num_rounds=num_rounds, **options))
    return float(rows[-1]["cumulative_regret"])


@pytest.mark.slow
@pytest.mark.parametrize("seed", [11, 12, 13])
def test_gfucb_learns_in_a_finite_environment(seed):
    environment = finite_bandit(num_tasks=4, seed=seed)
    agent = GFUCB(4, environment.representation_class, value_range=(-1.0, 1.0))
    # Measured: 0.03 to 0.08 of uniform.
    assert regret(agent, environment, 100) < 0.25 * regret(gfucb.Uniform(4), environment, 100)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [11, 12, 13])
def test_sharing_a_linear_representation_has_less_regret_than_separate_learning(seed):
    environment = linear_bandit(num_tasks=20, input_dim=20, feature_dim=2, seed=seed)
    agent = GFUCB(20, LinearClass(20, 2), value_range=(-1.0, 1.0))
    # Measured on other seeds: 0.48 to 0.54 of LinUCB for each task alone.
    assert regret(agent, environment, 100) < 0.75 * regret(gfucb.linucb(20), environment, 100)


@pytest.mark.slow
def test_the_corrected_radius_contains_the_true_function_in_every_round():
    """Coverage over 40 runs of 15 rounds; the radius guarantees 95% of the runs.

    It is loose: a hundredth of it misses, so the test can fail.
    """
    misses, misses_of_a_hundredth = 0, 0
    for seed in range(40):
        environment = finite_bandit(num_tasks=3, noise_scale=0.3, seed=1000 + seed)
        radius = CorrectedRadius(
            num_tasks=3,
            feature_dim=2,
            log_covering_number=environment.representation_class.log_covering_number(0.0),
            cover_scale=0.0,
            noise_scale=0.3,
            ridge=0.045,
        )
        agent = GFUCB(
            3,
            environment.representation_class,
            squared_radius=radius,
            ridge=0.045,
            value_range=None,
            offset=0.0,
            action_selector=gfucb.Greedy(),
            refit_growth=1.0,
        )
        for _ in play(agent, environment, num_rounds=15):
            confidence_set = agent.confidence_set(environment.round(1).candidates[0])
            distance = confidence_set.squared_distance(environment.true_function)
            misses += distance > confidence_set.squared_radius
            misses_of_a_hundredth += distance > 0.01 * confidence_set.squared_radius
    assert misses == 0
    assert misses_of_a_hundredth > 0


def test_the_same_seed_gives_the_same_rows_and_another_seed_others():
    def rows(seed: int) -> list:
        environment = linear_bandit(seed=0)
        agent = GFUCB(4, seed=seed, fit=QUICK, value_range=(-1.0, 1.0))
        return list(play(agent, environment, num_rounds=8))

    assert rows(0) == rows(0)
    assert rows(0) != rows(1)


def test_agents_and_decisions_have_a_short_repr():
    agent = GFUCB(30, fit=QUICK)
    assert repr(agent) == "GFUCB(num_tasks=30, samples=0, fits=0)"
    decision = agent.decide(numbers(0, 4, 3, 2), tasks=[0, 1, 2, 3])
    assert repr(decision) == f"Decision(4 rows, actions={decision.actions.tolist()})"
    agent.observe(decision, [0.1, 0.2, 0.3, 0.4])
    assert repr(agent) == "GFUCB(num_tasks=30, samples=4, fits=1)"
    assert repr(decision[0]).startswith("Decision(1 row, actions=[")
    many = agent.decide(numbers(0, 30, 3, 2))
    shown = ", ".join(str(action) for action in many.actions[:6].tolist())
    assert repr(many) == f"Decision(30 rows, actions=[{shown}, ...])"
