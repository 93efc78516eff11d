"""The prior over items: closed forms against dense Gaussian algebra, EM, and its symmetries."""

import math
from typing import Any

import numpy as np
import pytest
import torch

from gfucb.core.random import random_stream
from gfucb.estimation import item_pairs, item_prior, item_prior_fit
from gfucb.estimation.item_pairs import ItemPairs
from gfucb.estimation.item_prior import ItemPrior, log_likelihood, predict_items
from gfucb.estimation.item_prior_em import Shrinkage, em_step, penalised_log_likelihood
from gfucb.estimation.item_prior_fit import (
    fit_item_prior,
    initial_prior,
    predictive_log_density,
    select_shrinkage,
)

NUM_TASKS, NUM_ITEMS = 40, 12


def normal(name: str, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=random_stream(0, name), dtype=torch.float64)


def some_prior(num_items: int = NUM_ITEMS, rank: int = 3) -> ItemPrior:
    diagonal = 0.1 + normal("diagonal", num_items).square()
    factor = normal("factor", num_items, rank)
    return ItemPrior(normal("mean", num_items), factor, diagonal, torch.tensor(0.3).double())


def samples(
    num_tasks: int = NUM_TASKS, count: int = 240, prior: ItemPrior | None = None
) -> dict[str, torch.Tensor]:
    """Random samples, some pairs several times; the last task and the last item have none."""
    prior = some_prior() if prior is None else prior
    generator = random_stream(1, "samples")
    tasks = torch.randint(num_tasks - 1, (count,), generator=generator)
    items = torch.randint(prior.num_items - 1, (count,), generator=generator)
    values = normal("z", num_tasks, prior.rank) @ prior.factor.mT + prior.mean
    values = values + normal("specific", num_tasks, prior.num_items) * prior.diagonal.sqrt()
    noise = normal("noise", count) * prior.noise.sqrt()
    return {"items": items, "tasks": tasks, "targets": values[tasks, items] + noise}


def sizes(num_items: int = NUM_ITEMS, num_tasks: int = NUM_TASKS) -> dict[str, int]:
    return {"num_items": num_items, "num_tasks": num_tasks}


def dense_posterior(
    prior: ItemPrior, data: dict[str, torch.Tensor], task: int
) -> tuple[np.ndarray, np.ndarray, float]:
    """Posterior mean and covariance of the values of a task, and the log density of its targets."""
    own = (data["tasks"] == task).numpy()
    items, targets = data["items"].numpy()[own], data["targets"].numpy()[own]
    mean, prior_covariance = prior.mean.numpy(), prior.covariance().numpy()
    noise = float(prior.noise) * np.eye(len(items))
    covariance = prior_covariance[np.ix_(items, items)] + noise
    residuals = targets - mean[items]
    gain = prior_covariance[:, items] @ np.linalg.inv(covariance)
    posterior = prior_covariance - gain @ prior_covariance[items]
    _, log_determinant = np.linalg.slogdet(2 * np.pi * covariance)
    density = -0.5 * (log_determinant + residuals @ np.linalg.solve(covariance, residuals))
    return mean + gain @ residuals, posterior, float(density)


@pytest.mark.parametrize("cells_per_pair", [0, 20])  # sparse and dense products
def test_predictions_and_likelihood_are_those_of_dense_gaussian_algebra(
    monkeypatch, cells_per_pair
):
    for module in (item_pairs, item_prior):
        monkeypatch.setattr(module, "CELLS_PER_PAIR", cells_per_pair)
    prior, data = some_prior(), samples()
    pairs = ItemPairs.of(**data, **sizes())
    assert len(pairs) < len(data["items"])  # some pairs have several samples
    rows = torch.arange(NUM_TASKS)
    every_item = torch.arange(NUM_ITEMS).expand(NUM_TASKS, NUM_ITEMS)
    prediction = predict_items(prior, pairs, rows, every_item)
    total = 0.0
    for task in range(NUM_TASKS):
        mean, covariance, density = dense_posterior(prior, data, task)
        np.testing.assert_allclose(prediction.mean[task].numpy(), mean, rtol=1e-9, atol=1e-10)
        np.testing.assert_allclose(
            prediction.variance[task].numpy(), covariance.diagonal(), rtol=1e-9, atol=1e-10
        )
        total += density
    assert float(log_likelihood(prior, pairs)) == pytest.approx(total, rel=1e-11)


def test_without_data_predictions_are_the_prior():
    prior = some_prior()
    nothing = torch.zeros(0, dtype=torch.int64)
    pairs = ItemPairs.of(nothing, nothing, torch.zeros(0).double(), **sizes())
    items = torch.tensor([[3, 1], [0, 11]])
    prediction = predict_items(prior, pairs, torch.tensor([5, 5]), items)
    torch.testing.assert_close(prediction.mean, prior.mean[items])
    torch.testing.assert_close(prediction.variance, prior.covariance().diagonal()[items])


@pytest.mark.parametrize("count", [30, 400])
def test_em_never_decreases_the_penalised_likelihood(count):
    pairs = ItemPairs.of(**samples(count=count), **sizes())
    shrinkage = Shrinkage(torch.tensor(2.0).double(), 0.1, 0.3)
    prior = initial_prior(pairs, shrinkage, rank=4)
    values = [float(penalised_log_likelihood(prior, pairs, shrinkage))]
    for _ in range(40):
        prior = em_step(prior, pairs, shrinkage)
        values.append(float(penalised_log_likelihood(prior, pairs, shrinkage)))
    assert np.diff(values).min() > -1e-9
    assert values[-1] > values[0] + 1


def test_em_ends_where_the_gradient_of_the_penalised_likelihood_is_zero():
    pairs = ItemPairs.of(**samples(count=400), **sizes())
    shrinkage = Shrinkage(torch.tensor(2.0).double(), 0.1, 0.1)
    prior = initial_prior(pairs, shrinkage, rank=2)
    for _ in range(400):
        prior = em_step(prior, pairs, shrinkage)
    leaves = [prior.mean, prior.factor, prior.diagonal, prior.noise]
    leaves = [leaf.clone().requires_grad_() for leaf in leaves]
    penalised_log_likelihood(ItemPrior(*leaves), pairs, shrinkage).backward()
    for leaf in leaves:
        assert leaf.grad.abs().max() < 1e-3


def test_a_fit_has_most_of_what_the_true_prior_gains_on_held_out_samples():
    truth = some_prior(30, 2)
    pairs = ItemPairs.of(**samples(200, 3000, truth), **sizes(30, 200))
    is_held_out = torch.arange(len(pairs)) % 5 == 0
    kept, held_out = pairs.where(~is_held_out), pairs.where(is_held_out)
    fitted = fit_item_prior(kept.items, kept.tasks, kept.means, num_items=30)
    flat = ItemPrior(
        truth.mean.mean().expand(30),
        torch.zeros(30, 1).double(),
        truth.covariance().diagonal() + truth.mean.var(),
        truth.noise,
    )
    best, none, own = (
        float(predictive_log_density(prior, kept, held_out)) for prior in (truth, flat, fitted)
    )
    assert own - none > 0.65 * (best - none)


def test_the_shrinkage_follows_the_data():
    """Items with different means and rows get a weak hyperprior, equal items a strong one."""
    zeros = torch.zeros(30).double()
    level, noise = torch.full((30,), 0.1).double(), torch.tensor(0.1).double()
    equal = ItemPrior(zeros, torch.ones(30, 1).double(), level, noise)
    different_means = ItemPrior(2 * normal("mean", 30), equal.factor, level, noise)
    different_rows = ItemPrior(zeros, normal("rows", 30, 2), level, noise)
    chosen = [
        select_shrinkage(ItemPairs.of(**samples(60, 240, prior), **sizes(30, 60)), 4, None, 6)
        for prior in (equal, different_means, different_rows)
    ]
    assert chosen[0].mean_share < chosen[1].mean_share
    assert chosen[0].factor_share < chosen[2].factor_share


def test_targets_may_have_any_location_and_scale():
    data = samples()
    base = fit_item_prior(**data, num_items=NUM_ITEMS)
    scaled = fit_item_prior(
        **{**data, "targets": 1000 * data["targets"] + 5e4}, num_items=NUM_ITEMS
    )
    torch.testing.assert_close(scaled.mean, 1000 * base.mean + 5e4, rtol=1e-7, atol=1e-3)
    torch.testing.assert_close(scaled.covariance(), 1e6 * base.covariance(), rtol=1e-6, atol=1)
    torch.testing.assert_close(scaled.noise, 1e6 * base.noise, rtol=1e-6, atol=0)


def test_sparse_and_dense_products_give_one_fit(monkeypatch):
    dense = fit_item_prior(**samples(), num_items=NUM_ITEMS)
    for module in (item_pairs, item_prior):
        monkeypatch.setattr(module, "CELLS_PER_PAIR", 0)
    sparse = fit_item_prior(**samples(), num_items=NUM_ITEMS)
    torch.testing.assert_close(sparse.mean, dense.mean, rtol=1e-8, atol=1e-10)
    torch.testing.assert_close(sparse.covariance(), dense.covariance(), rtol=1e-8, atol=1e-10)


def test_the_order_of_samples_and_tasks_does_not_matter():
    data = samples()
    base = fit_item_prior(**data, num_items=NUM_ITEMS)
    order = torch.randperm(len(data["items"]), generator=random_stream(0, "order"))
    renamed = torch.randperm(NUM_TASKS, generator=random_stream(0, "tasks"))
    moved = {name: values[order] for name, values in data.items()}
    other = fit_item_prior(**{**moved, "tasks": renamed[moved["tasks"]]}, num_items=NUM_ITEMS)
    torch.testing.assert_close(other.mean, base.mean, rtol=1e-7, atol=1e-9)
    torch.testing.assert_close(other.covariance(), base.covariance(), rtol=1e-7, atol=1e-9)


def test_em_commutes_with_a_permutation_of_items():
    data, shrinkage = samples(), Shrinkage(torch.tensor(2.0).double(), 0.1, 0.3)
    renamed = torch.randperm(NUM_ITEMS, generator=random_stream(0, "items"))
    moved = {**data, "items": renamed[data["items"]]}
    priors = []
    for one in (data, moved):
        pairs = ItemPairs.of(**one, **sizes())
        prior = initial_prior(pairs, shrinkage, rank=4)
        for _ in range(5):
            prior = em_step(prior, pairs, shrinkage)
        priors.append(prior)
    torch.testing.assert_close(priors[1].mean[renamed], priors[0].mean, rtol=1e-7, atol=1e-9)
    covariance = priors[1].covariance()[renamed][:, renamed]
    torch.testing.assert_close(covariance, priors[0].covariance(), rtol=1e-6, atol=1e-8)


def test_items_without_samples_have_the_common_mean_and_level():
    prior = fit_item_prior(**samples(), num_items=NUM_ITEMS)
    others = prior.mean[:-1]
    assert others.min() < prior.mean[-1] < others.max()
    assert prior.diagonal[:-1].min() <= prior.diagonal[-1] <= prior.diagonal[:-1].max()


def test_a_start_is_continued_and_grows_with_the_catalogue():
    data = samples()
    start = fit_item_prior(**data, num_items=NUM_ITEMS)
    grown = start.grown(NUM_ITEMS + 3)
    torch.testing.assert_close(grown.covariance()[:NUM_ITEMS, :NUM_ITEMS], start.covariance())
    variances = grown.covariance().diagonal()
    torch.testing.assert_close(variances[-3:], variances[:-3].mean().expand(3))
    torch.testing.assert_close(grown.mean[-3:], start.mean.mean().expand(3))
    assert grown.grown(NUM_ITEMS) is grown
    continued = fit_item_prior(**data, num_items=NUM_ITEMS + 3, start=start, max_iterations=1)
    fresh = fit_item_prior(**data, num_items=NUM_ITEMS + 3, max_iterations=1)
    best = fit_item_prior(**data, num_items=NUM_ITEMS + 3, max_iterations=40)
    assert (continued.noise - best.noise).abs() < (fresh.noise - best.noise).abs()


@pytest.mark.parametrize("repeats", [1, 40])
def test_one_task_has_mean_zero_and_an_isotropic_covariance(repeats):
    values = 3 * normal("values", 50)
    items = torch.arange(50).repeat(repeats)
    targets = values[items] + 0.5 * normal("noise", 50 * repeats)
    prior = fit_item_prior(items, torch.full_like(items, 2), targets, num_items=60)
    assert prior.rank == 0
    assert not prior.mean.any()
    scale = targets.square().mean()
    expected = 0.25 if repeats > 1 else scale / 2  # only repeated samples show the noise
    torch.testing.assert_close(prior.noise, torch.as_tensor(expected).double(), rtol=0.2, atol=0)
    torch.testing.assert_close(prior.diagonal, (scale - prior.noise).expand(60))
    assert prior.embeddings().isfinite().all()


@pytest.mark.parametrize("value", [0.0, 1.0, -1e6])
def test_equal_targets_and_few_items_are_no_special_case(value):
    tasks, items = torch.arange(6) % 3, torch.zeros(6, dtype=torch.int64)
    targets = torch.full((6,), value, dtype=torch.float64)
    prior = fit_item_prior(items, tasks, targets, num_items=1)
    torch.testing.assert_close(prior.mean, targets[:1], rtol=1e-6, atol=1e-6)
    assert prior.covariance().isfinite().all()
    assert prior.noise > 0


def test_embeddings_have_the_covariance_in_units_of_noise():
    prior = some_prior()
    exact = prior.embeddings()
    torch.testing.assert_close(exact @ exact.mT * prior.noise, prior.covariance())
    low_rank = prior.embeddings(largest_exact=5)
    assert low_rank.shape == (NUM_ITEMS, prior.rank)
    specific = prior.covariance() - low_rank @ low_rank.mT * prior.noise
    torch.testing.assert_close(specific, torch.diag(prior.diagonal))


def test_the_predictive_density_is_that_of_the_held_out_mean():
    prior = ItemPrior(
        torch.tensor([1.0, 2.0]).double(), torch.zeros(2, 1).double(),
        torch.tensor([0.5, 0.25]).double(), torch.tensor(0.5).double(),
    )  # fmt: skip
    sample = {"tasks": torch.zeros(2, dtype=torch.int64), "targets": torch.tensor([2.0, 4.0])}
    held_out = ItemPairs.of(torch.ones(2, dtype=torch.int64), **sample, num_items=2, num_tasks=1)
    kept = held_out.where(torch.zeros(1, dtype=torch.bool))
    # One pair of two samples: its mean 3 has variance 0.25 + 0.5 / 2 around 2.
    expected = -0.5 * (math.log(2 * math.pi * 0.5) + 1 / 0.5)
    assert float(predictive_log_density(prior, kept, held_out)) == pytest.approx(expected)


def test_tasks_without_samples_change_nothing() -> None:
    data = samples()
    base = fit_item_prior(**data, num_items=NUM_ITEMS)
    sparse_names = fit_item_prior(
        **{**data, "tasks": 1_000_000_000 * data["tasks"]}, num_items=NUM_ITEMS
    )
    assert torch.equal(base.mean, sparse_names.mean)
    assert torch.equal(base.factor, sparse_names.factor)


def test_with_many_tasks_some_choose_the_shares(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def counted(pairs: ItemPairs, *arguments: Any) -> Shrinkage:
        seen.append(pairs)
        return select_shrinkage(pairs, *arguments)

    monkeypatch.setattr(item_prior_fit, "select_shrinkage", counted)
    monkeypatch.setattr(item_prior_fit, "CHOOSING_TASKS", NUM_TASKS // 2)
    data = samples()
    fit_item_prior(**data, num_items=NUM_ITEMS)
    (pairs,) = seen
    assert NUM_TASKS / 4 < pairs.num_tasks < 3 * NUM_TASKS / 4
    assert pairs.tasks.unique().equal(torch.arange(pairs.num_tasks))
    means = ItemPairs.of(**data, **sizes()).means
    assert set(pairs.means.tolist()) < set(means.tolist())
