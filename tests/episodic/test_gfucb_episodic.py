"""Algorithm 2: equality with known algorithms, targets, fits and plans."""

import numpy as np
import pytest
import torch
from episodic_cases import ONE_HOT, small_network, trained

import gfucb
from gfucb import ConstantRadius, EpisodicGFUCB, LastLayer, LinearClass, NeuralClass
from gfucb.core.random import random_stream
from gfucb.environments import finite_bandit, linear_mdps, tabular_lock, tabular_mdps
from gfucb.runs.loop import play, play_episode


def bandit_pairs():
    """(name, class, bandit's selector, backup): what must decide alike with one stage."""
    finite = finite_bandit(seed=2).representation_class
    network = NeuralClass(small_network())
    return [
        ("finite, literal", finite, None, "literal"),
        ("finite, joint", finite, None, "joint"),
        ("network, literal", network, None, "literal"),
        ("network, joint", network, None, "joint"),
        ("linear, literal", LinearClass(6, 2), None, "literal"),
        ("one phi alone, pointwise", ONE_HOT, LastLayer(joint=False), "pointwise"),
        ("network alone, pointwise", network, LastLayer(joint=False), "pointwise"),
    ]


@pytest.mark.slow
@pytest.mark.parametrize("pair", bandit_pairs(), ids=lambda pair: pair[0])
def test_one_stage_equals_the_bandit(pair):
    _, known, selector, backup = pair
    environment = finite_bandit(seed=2)
    shared = {
        "squared_radius": ConstantRadius(0.3),
        "ridge": 0.7,
        "value_range": (-1.0, 1.0),
        "offset": 0.1,
        "seed": 5,
    }
    bandit = gfucb.GFUCB(environment.num_tasks, known, action_selector=selector, **shared)
    episodic = EpisodicGFUCB(
        environment.num_tasks, 1, known, backup=backup, replan="every", **shared
    )
    # On the unit sphere all widths are equal at first, and rounding would choose.
    lengths = torch.linspace(0.8, 1.2, environment.num_actions, dtype=torch.float64)[:, None]
    for index in range(1, 13):
        round_ = environment.round(index)
        candidates = lengths * round_.candidates
        expected = bandit.decide(candidates)
        episodic.plan(candidates)
        decision = episodic.decide(0, candidates)
        assert decision.actions.tolist() == expected.actions.tolist()
        torch.testing.assert_close(decision.optimistic_values, expected.optimistic_values)
        rewards = round_.rewards(expected.actions)
        bandit.observe(expected, rewards)
        episodic.observe(0, decision, rewards)


def test_tasks_are_independent_with_a_known_representation():
    environment = linear_mdps(num_tasks=3, horizon=2, num_states=5, seed=1)
    together = gfucb.episodic.lsvi_ucb(3, 2, replan="every")
    alone = gfucb.episodic.IndependentEpisodicAgents(
        3, lambda seed: gfucb.episodic.lsvi_ucb(1, 2, replan="every")
    )
    one = list(play(together, environment, num_rounds=12, uses_true_features=True))
    other = list(play(alone, environment, num_rounds=12, uses_true_features=True))
    assert [r["regret"] for r in one] == pytest.approx([r["regret"] for r in other])


def test_upper_values_are_suprema_over_the_confidence_set():
    agent, environment = trained(episodes=12, ridge=0.5)
    inputs = environment.inputs.flatten(0, 1)
    tasks = torch.arange(len(inputs)) % 2
    for stage in range(3):
        expected = agent.confidence_set(stage).upper_values(inputs, tasks)
        found = agent.plans[stage].upper_values(inputs, tasks)
        torch.testing.assert_close(found, expected)


def test_fit_of_a_stage_is_least_squares_over_the_class():
    agent, _ = trained(replan="every")
    for stage in range(3):
        center, data = agent.confidence_set(stage).center, agent.confidence_set(stage).data
        best = gfucb.estimation.Exhaustive(agent.representation_class)(
            data, center, agent.fit_settings.penalty, random_stream(0, "unused")
        )
        assert best.representation is center.representation
        torch.testing.assert_close(best.heads, center.heads)


def test_targets_are_rewards_plus_next_values():
    agent, environment = trained(replan="every")
    for stage in (1, 2):
        buffer, data = agent.buffers[stage], agent.confidence_set(stage).data
        expected = buffer.rewards[: len(data)].copy()
        if stage == 1:
            for sample, row in enumerate(buffer.next_indices[: len(data)]):
                task = buffer.next_observations.tasks[row]
                candidates = buffer.next_observations.rows[row]
                upper = agent.plans[2].upper_values(candidates, task.repeat(len(candidates)))
                expected[sample] += float(upper.max().clamp(0, 1))
        np.testing.assert_allclose(data.targets, expected)
    assert environment.horizon == 3


@pytest.mark.slow
def test_true_representation_is_found():
    easy = linear_mdps(num_tasks=4, horizon=2, num_representations=4, sharpness=5, seed=3)
    agent, environment = trained(episodes=150, environment=easy)
    true_features = environment.true_features.flatten(0, 1)
    for stage in range(2):
        member = agent.confidence_set(stage).center.representation
        torch.testing.assert_close(member(environment.inputs.flatten(0, 1)), true_features)


def test_value_ranges_shrink_with_the_stages_to_go():
    agent = EpisodicGFUCB(1, 4, value_range=(0.0, 1.0), reward_range=(0.0, 0.25))
    assert [agent.range_of(stage) for stage in range(4)] == [
        (0, 1),
        (0, 0.75),
        (0, 0.5),
        (0, 0.25),
    ]
    assert EpisodicGFUCB(1, 4, value_range=None).range_of(0) is None
    assert EpisodicGFUCB(1, 2, value_range=None, reward_range=(-1, 1)).range_of(0) == (-2, 2)
    assert EpisodicGFUCB(1, 2, value_range=None, reward_range=(1, 2)).range_of(0) == (1, 4)


@pytest.mark.slow
def test_heads_satisfy_the_norm_bound_of_program_1():
    agent, _ = trained(head_norm_bound=0.05, replan="every")
    for stage in range(3):
        heads = agent.confidence_set(stage).center.heads
        assert float(heads.norm(dim=1).max()) <= 0.05 * (1 + 1e-9)
    free, _ = trained(replan="every")
    assert float(free.confidence_set(0).center.heads.norm(dim=1).max()) > 0.05


def test_a_norm_bound_may_be_any_large_integer():
    agent, _ = trained(episodes=1, head_norm_bound=2**70)
    assert agent.settings()["head_norm_bound"] == str(2.0**70)


@pytest.mark.parametrize(("replan", "most"), [("determinant", 40), ("doubling", 9), ("every", 100)])
def test_replan_rules_bound_the_number_of_plans(replan, most):
    agent, _ = trained(
        episodes=100, replan=replan, environment=tabular_lock(horizon=3), representation=ONE_HOT
    )
    assert agent.plan_index <= most
    if replan == "every":
        assert agent.plan_index == 100


def test_decisions_do_not_change_between_plans():
    agent, environment = trained(episodes=60, replan="doubling")
    plans = agent.plans
    before = [
        agent.decide(h, environment.inputs, torch.zeros(5, dtype=int)).actions for h in range(3)
    ]
    play_episode(agent, environment.episode(61), 3, 2)
    agent.plan(environment.episode(62).offered()[1])
    assert agent.plans is plans
    after = [
        agent.decide(h, environment.inputs, torch.zeros(5, dtype=int)).actions for h in range(3)
    ]
    assert all(torch.equal(one, other) for one, other in zip(before, after, strict=True))


def test_value_after_an_early_end_is_zero():
    agent = gfucb.episodic.lsvi_ucb(1, 2, replan="every")
    candidates = torch.eye(2, dtype=torch.float64)[None]
    for _ in range(3):
        agent.plan(candidates)
        decision = agent.decide(0, candidates)
        agent.observe(0, decision, [0.5], candidates, [True])
    np.testing.assert_allclose(agent.buffers[0].targets(np.zeros(0)), 0.5)


@pytest.mark.slow
def test_next_observations_as_targets_identify_the_representation():
    """Without any reward, features that tell next states apart are learned all the same."""
    generator = np.random.default_rng(1)
    transitions = np.zeros((8, 2, 8))
    for state in range(8):
        for action in range(2):
            transitions[state, action, 4 * ((state % 2) ^ action) :][:4] = 0.25
    inputs = torch.from_numpy(generator.normal(size=(8, 2, 6)))
    kind = torch.tensor([[(s % 2) ^ a for a in range(2)] for s in range(8)])
    inputs[..., 0] = 2.0 * kind - 1.0
    start = np.full(8, 1 / 8)
    environment = tabular_mdps(
        [transitions], [np.zeros((8, 2))], horizon=2, inputs=inputs, start=start, seed=1
    )
    unexplained = {}
    for next_targets in (0, 4):
        agent, _ = trained(
            episodes=60,
            environment=environment,
            representation=NeuralClass(small_network(6, 2)),
            next_targets=next_targets,
            ridge=1.0,
            fit=gfucb.VariableProjection(
                steps=30, max_steps=30, learning_rate=1e-2, samples_at_full_rate=0
            ),
        )
        representation = agent.plans[0].center.representation
        phi = representation(inputs.flatten(0, 1)).detach().double().numpy()
        design = np.column_stack([phi, np.ones(16)])
        sign = 2.0 * kind.flatten().numpy() - 1.0
        fitted = design @ np.linalg.lstsq(design, sign, rcond=None)[0]
        unexplained[next_targets] = np.mean((sign - fitted) ** 2)
    assert unexplained[4] < 0.25
    assert unexplained[0] > 0.5


class CountingIdentity:
    """The identity, with a count of the inputs it was called with."""

    def __init__(self):
        self.num_inputs = 0

    def __call__(self, inputs):
        self.num_inputs += len(inputs)
        return inputs.flatten(1).double()


def test_features_of_stored_inputs_are_computed_once():
    representation = CountingIdentity()
    agent, environment = trained(
        episodes=30,
        environment=tabular_lock(horizon=3, seed=1),
        representation=gfucb.FiniteClass([representation]),
        replan="every",
    )
    sizes = [len(b.inputs) + len(b.next_observations) for b in agent.buffers]
    for index in range(31, 41):
        play_episode(agent, environment.episode(index), 3, 1)
    assert sizes == [len(b.inputs) + len(b.next_observations) for b in agent.buffers]
    plans, representation.num_inputs = agent.plan_index, 0
    agent.plan(environment.episode(41).offered()[1])
    assert agent.plan_index == plans + 1
    assert representation.num_inputs == 0


def test_a_plan_computes_features_of_each_stored_input_once():
    for num_samples in (50, 500):
        representation, generator = CountingIdentity(), random_stream(0, "samples")
        agent = EpisodicGFUCB(1, 2, gfucb.FiniteClass([representation]), replan="every")
        for stage in (0, 1):
            inputs = torch.rand(num_samples, 4, generator=generator, dtype=torch.float64)
            zeros = torch.zeros(num_samples, dtype=torch.int64)
            following = torch.rand(num_samples, 2, 4, generator=generator, dtype=torch.float64)
            decision = gfucb.Decision(zeros, zeros, inputs, inputs[:, 0])
            agent.observe(stage, decision, inputs[:, 1], following if stage == 0 else None)
        representation.num_inputs = 0
        agent.plan(following[:1])
        # The inputs of both stages, the two actions of each next observation, and two inputs per
        # stage for the number of features.
        assert representation.num_inputs == 4 * num_samples + 4
