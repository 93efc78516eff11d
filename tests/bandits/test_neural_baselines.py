"""Neural baselines: what they share with GFUCB, and where they differ."""

import pytest
import torch

import gfucb
from gfucb.bandits.batched import BatchedAgents
from gfucb.checks import check_bandit_agent
from gfucb.core.random import random_stream
from gfucb.models.nn.networks import default_network

QUICK = gfucb.VariableProjection(steps=2)
METHODS = [
    gfucb.bandits.neural_ucb,
    gfucb.bandits.neural_ts,
    gfucb.bandits.neural_linear_ucb,
    gfucb.bandits.neural_linear_ts,
    gfucb.bandits.squarecb,
    gfucb.bandits.perturbed_rewards,
]
IDENTITY = gfucb.FiniteClass([gfucb.models.IdentityRepresentation()])


def candidate_rounds(count: int, rows: int = 3):
    for index in range(count):
        yield torch.rand(rows, 4, 5, generator=random_stream(index, "rounds"))


def train(agent, rounds: int = 12, rows: int = 3) -> None:
    for candidates in candidate_rounds(rounds, rows):
        decision = agent.decide(candidates, tasks=torch.arange(rows))
        agent.observe(decision, decision.inputs.mean(1).double())


@pytest.mark.parametrize("make", METHODS)
def test_every_method_passes_the_check_of_agents(make):
    check_bandit_agent(lambda: make(3, fit=QUICK))


@pytest.mark.parametrize("make", METHODS)
def test_every_method_can_be_saved_and_restored(make, tmp_path):
    agent = make(3, fit=QUICK, seed=4)
    train(agent, 3)
    gfucb.save(agent, tmp_path / "agent.safetensors")
    restored = make(3, fit=QUICK, seed=4)
    gfucb.restore(restored, tmp_path / "agent.safetensors")
    candidates = next(candidate_rounds(1))
    one, other = agent.decide(candidates), restored.decide(candidates)
    assert torch.equal(one.optimistic_values, other.optimistic_values)


def test_a_calibrated_radius_is_that_of_one_task_where_rows_do_not_share_it():
    alone, shared = gfucb.bandits.neural_linear_ucb(3, fit=QUICK), gfucb.GFUCB(3, fit=QUICK)
    for agent in (alone, shared):
        train(agent)
        agent.decide(next(candidate_rounds(1)))
    assert alone.radius_state.num_rewards > alone.radius_state.radius.warm_up
    radius = alone.diagnostics()["squared_radius"]
    assert radius == pytest.approx(alone.radius_state.task_radius**2)
    assert shared.diagnostics()["squared_radius"] == pytest.approx(
        3 * shared.radius_state.task_radius**2
    )


def test_neural_linear_ucb_adds_the_width_of_its_own_head():
    agent = gfucb.bandits.neural_linear_ucb(3, fit=QUICK, value_range=None)
    train(agent)
    together = agent.decide(next(candidate_rounds(1)))
    prediction, scale = together.prediction, agent.radius_state.task_radius
    torch.testing.assert_close(
        together.optimistic_values, prediction.mean + scale * prediction.variance.sqrt()
    )
    for row in range(3):  # other rows change nothing
        one = agent.decide(next(candidate_rounds(1))[row : row + 1], tasks=[row])
        torch.testing.assert_close(one.optimistic_values[0], together.optimistic_values[row])


def test_batched_agents_whose_rows_do_not_share_a_radius_decide_as_they_do_alone():
    def make(seed: int) -> gfucb.GFUCB:
        # Double precision: before the first reward all bonuses are equal, but for rounding.
        network = default_network((5,), random_stream(seed, "network")).double()
        return gfucb.bandits.neural_linear_ucb(3, network, fit=QUICK, seed=seed)

    agents, batched = (
        [make(seed) for seed in range(2)],
        BatchedAgents([make(seed) for seed in range(2)]),
    )
    for candidates in candidate_rounds(10):
        decision = batched.decide(torch.stack([candidates, candidates]))
        batched.observe(decision, decision.inputs.mean(2).double())
        for replica, agent in enumerate(agents):
            alone = agent.decide(candidates)
            agent.observe(alone, alone.inputs.mean(1).double())
            torch.testing.assert_close(decision.optimistic_values[replica], alone.optimistic_values)


def test_without_a_perturbation_npr_is_multitask_greedy():
    npr = gfucb.bandits.perturbed_rewards(3, fit=QUICK, perturbation=0.0)
    greedy = gfucb.multitask_greedy(3, fit=QUICK)
    for agent in (npr, greedy):
        train(agent, 6)
    one, other = (agent.decide(next(candidate_rounds(1))) for agent in (npr, greedy))
    assert torch.equal(one.optimistic_values, other.optimistic_values)


def noise_of(agent) -> torch.Tensor:
    """The noise that the fit added to the rewards of unit vectors: [sample]."""
    _, data, statistics = agent.learner.fit_state(torch.eye(300, dtype=torch.float64))
    return statistics.moments[0, : len(data)] - (data.targets - agent.learner.scale.location)


def npr_on_unit_vectors(refit_growth: float) -> gfucb.GFUCB:
    return gfucb.bandits.perturbed_rewards(1, IDENTITY, perturbation=0.2, refit_growth=refit_growth)


def test_rewards_between_fits_are_perturbed_once_with_the_right_spread():
    agent, inputs = npr_on_unit_vectors(1e9), torch.eye(300, dtype=torch.float64)
    agent.learn([0], inputs[:1], [0.5])
    agent.learn([0] * 150, inputs[1:151], [0.5] * 150)
    before = noise_of(agent)
    agent.learn([0] * 149, inputs[151:], [0.5] * 149)
    after = noise_of(agent)
    assert torch.equal(before, after[:151])
    paid = agent.learner.state()["data.targets"]
    assert float(paid.std()) == 0  # the data hold the rewards themselves
    # Five standard deviations of a standard deviation of 300 draws.
    assert abs(float(after.std()) / 0.2 - 1) < 5 * (1 / 600) ** 0.5
    assert len(after.unique()) == 300


def test_a_refit_perturbs_all_rewards_again():
    agent, inputs = npr_on_unit_vectors(1.0), torch.eye(300, dtype=torch.float64)
    agent.learn([0] * 3, inputs[:3], [0.5] * 3)
    before = noise_of(agent)
    agent.learn([0], inputs[3:4], [0.5])
    assert not (noise_of(agent)[:3] == before).any()


def test_the_perturbed_fit_is_the_least_squares_fit_to_perturbed_rewards():
    agent, inputs = npr_on_unit_vectors(1.0), torch.eye(300, dtype=torch.float64)
    agent.learn([0] * 4, inputs[:4], [0.1, 0.2, 0.3, 0.4])
    rewards = torch.tensor([0.1, 0.2, 0.3, 0.4]).double()
    targets = rewards - agent.learner.scale.location + noise_of(agent)
    heads = agent.learner.fit_state(inputs)[0].heads[0, :4]
    torch.testing.assert_close(heads, targets / 2)  # ridge 1
