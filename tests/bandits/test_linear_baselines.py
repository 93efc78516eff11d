"""Linear baselines against formulas in plain numpy: dense matrices over all samples at once."""

from functools import partial

import numpy as np
import pytest
import torch

import gfucb
from gfucb.bandits.linear_baselines import LinearUCB
from gfucb.bandits.linear_features import FourierInputs, InputFeatures, OneHotItems
from gfucb.bandits.matrix_factorisation import MatrixFactorisation
from gfucb.bandits.pooled_tasks import PooledTasks
from gfucb.checks import check_bandit_agent
from gfucb.core.errors import InvalidInputError

TASKS, DIM, ARMS = 3, 4, 2


def random_log(seed: int, samples: int):
    rng = np.random.default_rng(seed)
    inputs = rng.normal(size=(samples, DIM))
    inputs = np.concatenate([inputs, np.eye(ARMS)[rng.integers(ARMS, size=samples)]], 1)
    return rng.integers(TASKS, size=samples), inputs, rng.normal(size=samples) + 5


def design(agent: LinearUCB, tasks, inputs):
    """Rows of the regression on all weights at once: [sample, weight], and the penalties."""
    arms = inputs[:, -ARMS:].argmax(1) if agent.num_arms else np.zeros(len(inputs), int)
    shown = inputs[:, :-ARMS] if agent.num_arms else inputs
    features = agent.features(torch.from_numpy(shown)).numpy()
    num_arms, width = max(1, agent.num_arms), features.shape[1]
    groups = tasks * num_arms + arms
    own = np.eye(TASKS * num_arms)[groups][:, :, None] * features[:, None]
    common = np.eye(num_arms)[arms][:, :, None] * features[:, None]
    own, common = own.reshape(len(inputs), -1), common.reshape(len(inputs), -1)
    if agent.sharing == "task":
        return own, np.full(own.shape[1], agent.ridge)
    if agent.sharing == "pooled":
        return common, np.full(common.shape[1], agent.ridge)
    penalties = np.repeat([agent.ridge, agent.own_ridge], [width * num_arms, own.shape[1]])
    return np.concatenate([common, own], 1), penalties


def reference(agent: LinearUCB, log, tasks, inputs):
    """Means and variances from one dense solve."""
    rows, penalties = design(agent, log[0], log[1])
    mean = log[2].mean() if agent.center else 0.0
    covariance = np.linalg.inv(rows.T @ rows + np.diag(penalties))
    weights = covariance @ rows.T @ (log[2] - mean)
    asked, _ = design(agent, tasks, inputs)
    return mean + asked @ weights, np.einsum("ij,jk,ik->i", asked, covariance, asked)


@pytest.mark.parametrize("center", [True, False], ids=["centred", "plain"])
@pytest.mark.parametrize("arms", [0, ARMS], ids=["joint", "arms"])
@pytest.mark.parametrize("features", [InputFeatures(), FourierInputs(7, seed=3)], ids=["x", "rff"])
@pytest.mark.parametrize("sharing", ["task", "pooled", "hierarchical"])
def test_predictions_are_those_of_one_dense_ridge_regression(sharing, features, arms, center):
    agent = LinearUCB(
        TASKS,
        alpha=0.7,
        ridge=0.3,
        own_ridge=2.0,
        sharing=sharing,
        features=features,
        num_arms=arms,
        center=center,
    )
    log = random_log(0, 90)
    for start, end in ((0, 1), (1, 2), (2, 30), (30, 90)):  # rank one, Woodbury, dense
        agent.learn(*(part[start:end] for part in log))
    for step in range(5):  # one sample of each task
        tasks, inputs, rewards = random_log(100 + step, TASKS)
        agent.learn(np.arange(TASKS), inputs, rewards)
        log = tuple(map(np.concatenate, zip(log, (np.arange(TASKS), inputs, rewards), strict=True)))
    rng = np.random.default_rng(9)
    asked = np.concatenate([rng.normal(size=(4, 5, DIM)), np.eye(ARMS)[[[0, 1, 1, 0, 1]] * 4]], 2)
    tasks = np.array([2, 0, 2, 1])
    decision = agent.decide(asked, tasks)
    means, variances = reference(agent, log, tasks.repeat(5), asked.reshape(20, -1))
    upper = (means + 0.7 * np.sqrt(variances)).reshape(4, 5)
    rows = np.arange(4), upper.argmax(1)
    assert decision.actions.tolist() == upper.argmax(1).tolist()
    np.testing.assert_allclose(decision.optimistic_values, upper[rows], rtol=1e-8)
    np.testing.assert_allclose(decision.prediction.mean, means.reshape(4, 5)[rows], rtol=1e-8)
    expected = variances.reshape(4, 5)[rows]
    np.testing.assert_allclose(decision.prediction.variance, expected, rtol=1e-7)


def test_without_centring_and_constant_it_is_the_linucb_of_the_library():
    class Plain(InputFeatures):
        def __call__(self, inputs):
            return super().__call__(inputs)[:, :-1]

    own = LinearUCB(TASKS, alpha=0.4, ridge=0.5, features=Plain(), center=False)
    known = gfucb.linucb(TASKS, alpha=0.4, ridge=0.5)
    for index in range(12):
        candidates = torch.randn(TASKS, 6, DIM, generator=torch.Generator().manual_seed(index))
        decision, expected = own.decide(candidates), known.decide(candidates)
        assert torch.equal(decision.actions, expected.actions)
        torch.testing.assert_close(decision.optimistic_values, expected.optimistic_values)
        rewards = candidates[:, 0].sum(1)
        own.observe(decision, rewards)
        known.observe(expected, rewards)


def test_inverses_stay_accurate_over_thousands_of_updates():
    agent = LinearUCB(1, ridge=0.1)
    _, inputs, rewards = random_log(1, 1000)
    inputs[:, 0] *= 30
    for row in range(1000):
        agent.learn([0], inputs[row : row + 1], rewards[row : row + 1])
    rows = np.concatenate([inputs, np.ones((1000, 1))], 1)
    exact = np.linalg.inv(rows.T @ rows + 0.1 * np.eye(rows.shape[1]))
    np.testing.assert_allclose(agent.groups.inverses[0], exact, atol=1e-8 * np.abs(exact).max())


MAKES = {
    "task": partial(LinearUCB, 3),
    "pooled": partial(LinearUCB, 3, sharing="pooled", features=FourierInputs(10)),
    "hierarchical": partial(LinearUCB, 3, sharing="hierarchical", center=False),
    "arms": partial(LinearUCB, 3, sharing="hierarchical", num_arms=2),
    "pooled tasks": lambda: PooledTasks(3, LinearUCB(1)),
}


@pytest.mark.parametrize("name", MAKES)
def test_they_pass_the_check_of_agents(name):
    check_bandit_agent(MAKES[name])


def test_fourier_features_approximate_the_gaussian_kernel():
    x = torch.randn(20, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    features = FourierInputs(20000, length=0.5)(x)[:, :-1]
    distances = torch.cdist(x, x) / (0.5 * 3**0.5)
    assert float((features @ features.T - (-(distances**2) / 2).exp()).abs().max()) < 0.05


def test_pooled_tasks_share_everything():
    agent, single = PooledTasks(2, LinearUCB(1)), LinearUCB(1)
    candidates = torch.randn(2, 4, 3, generator=torch.Generator().manual_seed(0))
    decision = agent.decide(candidates)
    agent.observe(decision, [0.2, 0.9])
    single.learn([0, 0], decision.inputs, [0.2, 0.9])
    expected = single.decide(candidates, [0, 0])
    assert torch.equal(agent.decide(candidates).actions, expected.actions)
    assert agent.decide(candidates).tasks.tolist() == [0, 1]
    with pytest.raises(InvalidInputError, match="one task"):
        PooledTasks(2, LinearUCB(2))


def ratings(num_users: int, num_items: int, rank: int):
    rng = np.random.default_rng(0)
    factors = rng.normal(size=(num_users, rank)), rng.normal(size=(num_items, rank))
    return 3 + rng.normal(size=num_items) + factors[0] @ factors[1].T


def test_factors_of_a_task_are_a_ridge_regression_on_those_of_items():
    agent = MatrixFactorisation(
        5, 8, rank=2, ridge=0.4, bias_ridge=1.0, alpha=0.3, refit_growth=100.0
    )
    truth, rng = ratings(5, 8, 2), np.random.default_rng(1)
    tasks, items = rng.integers(5, size=40), rng.integers(8, size=40)
    agent.learn(tasks, items, truth[tasks, items])
    v, c, mean = agent.item_factors.numpy(), agent.item_biases.numpy(), truth[tasks, items].mean()
    decision = agent.decide(np.tile(np.arange(8), (5, 1)))
    for task in range(5):
        own = items[tasks == task]
        z = np.concatenate([v, np.ones((8, 1))], 1)
        inverse = np.linalg.inv(np.diag([0.4, 0.4, 1.0]) + z[own].T @ z[own])
        u = inverse @ z[own].T @ (truth[task, own] - mean - c[own])
        counts = np.bincount(items, minlength=8)
        widths = np.sqrt(np.einsum("ij,jk,ik->i", z, inverse, z) + 1 / (counts + 1))
        upper = mean + c + z @ u + 0.3 * widths
        assert int(decision.actions[task]) == int(upper.argmax())
        assert float(decision.optimistic_values[task]) == pytest.approx(upper.max(), rel=1e-9)


def test_refits_reach_a_stationary_point_that_completes_the_matrix():
    truth = ratings(40, 30, 2)
    agent = MatrixFactorisation(40, 30, rank=2, ridge=0.05, bias_ridge=0.05, sweeps=60)
    rng = np.random.default_rng(2)
    tasks, items = np.nonzero(rng.random((40, 30)) < 0.6)
    agent.learn(tasks, items, truth[tasks, items])
    u, _ = agent._task_posterior()
    mean = truth[tasks, items].mean()
    predicted = mean + u[:, -1:] + agent.item_biases + u[:, :-1] @ agent.item_factors.T
    hidden = np.ones((40, 30), bool)
    hidden[tasks, items] = False
    assert np.abs(predicted.numpy() - truth)[hidden].mean() < 0.15 * truth[hidden].std()


def test_catalogue_agents_restore_and_refuse_what_is_no_item():
    makes = [
        lambda: MatrixFactorisation(4, 9, alpha=0.1, seed=3),
        lambda: LinearUCB(4, sharing="hierarchical", features=OneHotItems(9)),
    ]
    for make in makes:
        agent, restored = make(), make()
        for index in range(12):
            items = torch.randint(9, (4, 5), generator=torch.Generator().manual_seed(index))
            decision = agent.decide(items)
            agent.observe(decision, decision.inputs / 9)
            if index == 6:
                restored.load_state(agent.state())
            elif index > 6:
                assert torch.equal(decision.actions, restored.decide(items).actions)
                restored.observe(decision, decision.inputs / 9)
        for wrong in (torch.zeros(4, 5), torch.full((4, 5), 9), torch.zeros(4, 5, 2).long()):
            with pytest.raises(InvalidInputError, match="item numbers"):
                agent.decide(wrong)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"sharing": "all"}, "sharing must be one of"),
        ({"alpha": -1}, "alpha"),
        ({"features": 3}, "features must be a feature map"),
        ({"center": 1}, "center must be True or False"),
    ],
)
def test_mistakes_get_a_sentence(arguments, message):
    with pytest.raises(InvalidInputError, match=message):
        LinearUCB(2, **arguments)


def test_inputs_of_another_width_are_refused_and_change_nothing():
    agent = LinearUCB(2)
    agent.observe(agent.decide(torch.ones(2, 3, 4)), [0.1, 0.2])
    before = agent.state()
    with pytest.raises(InvalidInputError, match="6 features, the first ones had 5"):
        agent.learn([0], torch.ones(1, 5), [1.0])
    assert all(torch.equal(before[name], tensor) for name, tensor in agent.state().items())
    with pytest.raises(InvalidInputError, match="disjoint arms"):
        LinearUCB(2, num_arms=4).decide(torch.ones(2, 3, 4))
