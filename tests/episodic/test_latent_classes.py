"""Latent classes of pairs: fits, the choice between classes and cells, saved states."""

import numpy as np
import pytest
import torch

from gfucb import EpisodicGFUCB
from gfucb.core.errors import InvalidInputError
from gfucb.environments import linear_mdps, tabular_mdps
from gfucb.episodic import greedy_policy
from gfucb.episodic.class_choice import explains_new_pairs, one_step_ahead
from gfucb.episodic.class_data import ClassData
from gfucb.episodic.class_fit import fit_classes
from gfucb.episodic.class_model import ClassModel, dirichlet_evidence, regress
from gfucb.episodic.class_values import ClassValues, StageTransitions
from gfucb.episodic.latent_classes import LatentClasses, design_of, log_softmax, standardising
from gfucb.episodic.observation_table import ObservationTable
from gfucb.runs.loop import play, play_episode

SMALL = {"num_tasks": 4, "horizon": 3, "num_states": 12, "num_actions": 5, "feature_dim": 3}


def tables_of(environment, episodes, inputs=None, seed=0):
    """Tables of uniform play."""
    pairs = environment.inputs.flatten(0, 1).numpy() if inputs is None else inputs
    draws = np.random.default_rng(seed)
    tables = []
    for _ in range(environment.horizon):
        table = ObservationTable(pairs.shape[1], environment.num_actions, pairs.dtype)
        table.keys.add(pairs)
        tables.append(table)
    tasks = np.arange(environment.num_tasks)
    for index in range(1, episodes + 1):
        episode = environment.episode(index)
        for table in tables:
            states = episode.states.copy()
            actions = draws.integers(environment.num_actions, size=len(tasks))
            outcome = episode.play(torch.from_numpy(actions))
            is_last = table is tables[-1]
            following = np.full(len(tasks), -1) if is_last else episode.states
            keys = states * environment.num_actions + actions
            table.add_transitions(tasks, keys, actions, outcome.rewards.numpy(), following)
    return tables


@pytest.fixture(scope="module")
def environment():
    return linear_mdps(seed=5, **SMALL)


@pytest.fixture(scope="module")
def fitted(environment):
    tables = tables_of(environment, 60)
    data = ClassData.of(tables, environment.num_tasks)
    return tables, *fit_classes(data, None, torch.Generator().manual_seed(0))


def test_the_true_number_of_classes_and_their_features_are_found(environment, fitted):
    _, classes, _ = fitted
    assert classes.num_classes == environment.true_features.shape[-1]
    found = classes.features(environment.inputs.flatten(0, 1).numpy())
    true = environment.true_features.flatten(0, 1).numpy()
    # Least squares from found to true features: classes have no order.
    residuals = true - found @ np.linalg.lstsq(found, true, rcond=None)[0]
    assert (residuals**2).mean() < 0.15 * true.var(axis=0).mean()


def test_inputs_that_only_name_pairs_do_not_explain_new_pairs(environment, fitted):
    assert explains_new_pairs(fitted[2])
    names = np.eye(environment.num_states * environment.num_actions)
    data = ClassData.of(tables_of(environment, 60, names), environment.num_tasks)
    assert not explains_new_pairs(fit_classes(data, None, torch.Generator().manual_seed(0))[1])


def test_classes_predict_better_than_cells_in_linear_mdps_and_worse_in_others(environment):
    for mix, is_better in ((0.0, True), (1.0, False)):
        other = linear_mdps(seed=5, mix=mix, **SMALL)
        tables = tables_of(other, 80)
        sizes = [len(table) // 2 for table in tables]
        old = ClassData.of(tables, other.num_tasks, ends=sizes)
        classes, _ = fit_classes(old, None, torch.Generator().manual_seed(0))
        assert (one_step_ahead(classes, tables, other.num_tasks, sizes) > 0) == is_better


def test_the_data_of_a_part_of_the_tables(environment):
    tables = tables_of(environment, 10)
    sizes = [len(table) // 2 for table in tables]
    parts = [
        ClassData.of(tables, environment.num_tasks, ends=sizes),
        ClassData.of(tables, environment.num_tasks, starts=sizes),
    ]
    whole = ClassData.of(tables, environment.num_tasks)
    assert sum(part.num_samples for part in parts) == whole.num_samples == 10 * 4 * 3
    assert np.isclose(sum(part.rewards.sum() for part in parts), whole.rewards.sum())


def test_the_evidence_is_the_product_of_one_step_ahead_predictions():
    outcomes, counts, total = [0, 1, 0, 0, 1, 2], np.zeros(3), 0
    log = 0.0
    for outcome in outcomes:
        log += np.log((counts[outcome] + 0.1) / (total + 0.5))  # five next states
        counts[outcome] += 1
        total += 1
    found = dirichlet_evidence(counts[:, None], np.array([[6.0]]), np.array([5.0]))
    assert np.isclose(found, log)


def test_steps_raise_the_likelihood_of_the_regression():
    draws = np.random.default_rng(0)
    design = np.column_stack([draws.normal(size=(200, 3)), np.ones(200)])
    true = draws.normal(size=(4, 3))
    targets = 50 * np.exp(log_softmax(design @ true))
    found = regress(design, targets, np.zeros((4, 3)), 30)
    assert np.abs(log_softmax(design @ found) - log_softmax(design @ true)).max() < 0.05


def test_values_of_one_hot_features_are_ridge_means():
    draws = np.random.default_rng(1)
    pairs, rewards = draws.integers(3, size=40), draws.random(40)
    none = np.full(40, -1)
    stage = StageTransitions(
        np.zeros(40, int), pairs, none, np.ones(40), rewards, rewards**2, np.arange(3)[None]
    )
    values = ClassValues.of(stage, np.eye(3), np.zeros((1, 0)), (0.0, 1.0), bonus=0.0)
    counts = np.bincount(pairs, minlength=3)
    means = np.bincount(pairs, rewards, minlength=3) / (counts + 0.1)
    np.testing.assert_allclose(values(np.eye(3), np.zeros(3, int)), means)
    optimistic = ClassValues.of(stage, np.eye(3), np.zeros((1, 0)), (0.0, 1.0))
    assert (optimistic(np.eye(3), np.zeros(3, int)) > means).all()
    assert optimistic.state_values(stage, np.eye(3)).shape == (1, 1)


def test_many_columns_are_reduced_and_constant_ones_left_out():
    draws = np.random.default_rng(2)
    inputs = np.column_stack([draws.normal(size=(100, 60)), np.full(100, 3.0)])
    center, transform = standardising(inputs)
    assert transform.shape == (61, 40)
    coordinates = design_of(inputs, center, transform)[:, :-1]
    np.testing.assert_allclose(coordinates.var(axis=0), 1.0)


@pytest.fixture(scope="module")
def trained(environment):
    agent = EpisodicGFUCB(environment.num_tasks, environment.horizon, seed=0)
    rows = list(play(agent, environment, num_rounds=50))
    return agent, rows


def test_the_default_uses_classes_in_linear_mdps(environment, trained):
    agent, rows = trained
    assert rows[-1]["classes"] == 3
    assert "3 learned classes" in repr(agent)
    late = sum(row["regret"] for row in rows[-15:])
    assert late < 0.4 * sum(row["regret"] for row in rows[:15])


def test_the_default_uses_cells_where_inputs_only_name_pairs(environment):
    named = tabular_mdps(
        list(environment.transitions),
        list(environment.rewards),
        start=environment.start,
        value_range=(0.0, 1.0),
    )
    agent = EpisodicGFUCB(4, 3, seed=0)
    assert not any(row["classes"] for row in play(agent, named, num_rounds=15))
    assert agent.learner.num_class_fits == 0


def test_a_restored_agent_continues_in_the_same_way(environment, trained):
    agent, _ = trained
    twin = EpisodicGFUCB(environment.num_tasks, environment.horizon, seed=0)
    twin.load_state(agent.state())
    assert repr(twin) == repr(agent)
    policies = [greedy_policy(own) for own in (agent, twin)]
    tasks, candidates = environment.episode(99).offered()
    assert torch.equal(*(policy(0, candidates, tasks) for policy in policies))
    for index in (101, 102):
        returns = [
            play_episode(own, environment.episode(index), environment.horizon, 4)
            for own in (agent, twin)
        ]
        assert np.array_equal(*returns)
    assert all(torch.equal(agent.state()[name], twin.state()[name]) for name in agent.state())


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("classes.weights", lambda t: t * float("nan"), "finite"),
        ("classes.weights", lambda t: t[:-1], "shape"),
        ("classes.noise", lambda t: -t, "noise"),
        ("class_sizes", lambda t: t + 10**6, "exceed"),
        ("class_planned_transitions", lambda t: t + 10**6, "exceed"),
        ("class_choice", lambda t: t + 0.5, "flags"),
    ],
)
def test_damaged_classes_are_refused(environment, trained, name, change, message):
    agent, _ = trained
    state = agent.state()
    twin = EpisodicGFUCB(environment.num_tasks, environment.horizon, seed=0)
    with pytest.raises(InvalidInputError, match=message):
        twin.load_state(state | {name: change(state[name])})
    assert twin.state() == {}


def test_a_state_with_only_some_of_the_classes_is_refused(environment, trained):
    state = trained[0].state()
    del state["class_sizes"]
    twin = EpisodicGFUCB(environment.num_tasks, environment.horizon, seed=0)
    with pytest.raises(InvalidInputError, match="class_sizes"):
        twin.load_state(state)


def test_rewards_that_are_all_the_same_give_finite_classes(environment):
    tables = tables_of(environment, 20)
    for table in tables:
        table.rewards[:] = 0.0
    data = ClassData.of(tables, environment.num_tasks)
    classes, model = fit_classes(data, None, torch.Generator().manual_seed(0))
    assert np.isfinite(classes.weights).all() and np.isfinite(model.evidence())
    assert isinstance(model, ClassModel) and isinstance(classes, LatentClasses)
