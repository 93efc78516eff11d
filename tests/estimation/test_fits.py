"""Least-squares fits on problems with known solutions."""

from dataclasses import replace

import pytest
import torch
from torch import nn

from gfucb import FiniteClass, VariableProjection
from gfucb.core.errors import InvalidInputError
from gfucb.core.random import random_stream
from gfucb.environments import finite_bandit, linear_bandit
from gfucb.estimation import (
    AdamFit,
    Alternating,
    Exhaustive,
    best_on,
    penalised_error,
    squared_error,
)
from gfucb.models import (
    HeadPenalty,
    LinearRepresentation,
    MultiheadFunction,
    MultitaskDataset,
    NeuralRepresentation,
)
from gfucb.models.nn.networks import default_network

TINY = HeadPenalty(1e-9)


def noiseless_data(environment, num_rounds: int) -> MultitaskDataset:
    data = MultitaskDataset(
        environment.num_tasks, torch.Size([environment.input_dim]), torch.float64
    )
    tasks = torch.arange(environment.num_tasks)
    for index in range(1, num_rounds + 1):
        round_ = environment.round(index)
        data.append(tasks, round_.candidates[:, 0], round_.mean_rewards[:, 0])
    return data


def zero_function(representation, num_tasks: int, feature_dim: int) -> MultiheadFunction:
    heads = torch.zeros(num_tasks, feature_dim, dtype=torch.float64)
    return MultiheadFunction(representation, heads)


def fresh_values(function, environment) -> tuple[torch.Tensor, torch.Tensor]:
    inputs = environment.round(999).candidates.flatten(0, 1)
    tasks = torch.arange(environment.num_tasks).repeat_interleave(environment.num_actions)
    return function.values(inputs, tasks), environment.true_function.values(inputs, tasks)


@pytest.mark.parametrize("seed", range(5))
def test_exhaustive_search_recovers_a_noiseless_function(seed):
    environment = finite_bandit(seed=seed)
    known = environment.representation_class
    start = zero_function(known.members[0], 4, 2)
    data = noiseless_data(environment, 8)
    fit = Exhaustive(known)(data, start, TINY, random_stream(0, "fit"))
    assert fit.representation is environment.true_function.representation
    torch.testing.assert_close(fit.heads, environment.true_function.heads, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_no_member_has_a_smaller_error_than_exhaustive_search(finite_case, seed):
    case = finite_case(seed)
    best = penalised_error(case.center, case.data, case.penalty)
    for member in case.environment.representation_class.members:
        other = best_on(member, case.data, case.center, case.penalty)
        assert best <= penalised_error(other, case.data, case.penalty) + 1e-12


@pytest.mark.parametrize("seed", range(5))
def test_alternation_recovers_a_noiseless_linear_function(seed):
    environment = linear_bandit(num_tasks=8, input_dim=6, feature_dim=2, seed=seed)
    start = zero_function(LinearRepresentation(torch.eye(2, 6, dtype=torch.float64)), 8, 2)
    fit = Alternating()(noiseless_data(environment, 8), start, TINY, random_stream(0, "fit"))
    torch.testing.assert_close(*fresh_values(fit, environment), rtol=1e-4, atol=1e-4)
    rows = fit.representation.matrix
    torch.testing.assert_close(rows @ rows.T, torch.eye(2, dtype=torch.float64))


@pytest.mark.parametrize("seed", range(3))
def test_more_iterations_never_increase_the_error(seed):
    environment = linear_bandit(num_tasks=5, seed=seed)
    data, penalty = noiseless_data(environment, 4), HeadPenalty(0.3)
    start = zero_function(LinearRepresentation(torch.eye(2, 6, dtype=torch.float64)), 5, 2)
    errors = []
    for iterations in (0, 1, 3, 10, 100):
        fit = Alternating(iterations=iterations)
        errors.append(
            penalised_error(fit(data, start, penalty, random_stream(0, "f")), data, penalty)
        )
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < errors[0]


def test_a_linear_class_as_wide_as_its_input_is_ridge_regression_for_each_task():
    environment = linear_bandit(num_tasks=6, input_dim=3, feature_dim=3, seed=0)
    data, penalty = noiseless_data(environment, 5), HeadPenalty(0.5)
    identity = LinearRepresentation(torch.eye(3, dtype=torch.float64))
    start = zero_function(identity, 6, 3)
    fit = Alternating()(data, start, penalty, random_stream(0, "fit"))
    plain = best_on(identity, data, start, penalty)
    torch.testing.assert_close(
        fit.values(data.inputs, data.tasks), plain.values(data.inputs, data.tasks)
    )


def network(seed: int, dtype: torch.dtype = torch.float64) -> nn.Module:
    layer = nn.Linear(6, 2, bias=False, dtype=dtype)
    layer.weight.data = torch.randn(2, 6, generator=random_stream(seed, "w"), dtype=dtype)
    return layer


@pytest.mark.parametrize("loss", ["leave_one_out", "residual"])
def test_variable_projection_learns_a_realisable_representation(loss):
    environment = linear_bandit(num_tasks=8, seed=0)
    data = noiseless_data(environment, 20)
    start = zero_function(NeuralRepresentation(network(1)), 8, 2)
    fit = VariableProjection(steps=400, learning_rate=3e-2, loss=loss)
    penalty = HeadPenalty(1e-3)
    fitted = fit(data, start, penalty, random_stream(0, "fit"))
    before = squared_error(best_on(start.representation, data, start, penalty), data)
    assert squared_error(fitted, data) < 1e-3 * before
    values, true_values = fresh_values(fitted, environment)
    assert float((values - true_values).abs().max()) < 0.02


def test_variable_projection_of_a_module_without_parameters_is_ridge_regression():
    environment = linear_bandit(num_tasks=4, seed=0)
    data, penalty = noiseless_data(environment, 5), HeadPenalty(0.5)
    start = zero_function(NeuralRepresentation(nn.Flatten()), 4, 6)
    fitted = VariableProjection()(data, start, penalty, random_stream(0, "fit"))
    expected = best_on(start.representation, data, start, penalty)
    torch.testing.assert_close(fitted.heads, expected.heads)


@pytest.mark.parametrize("feature_dim", [3, 12])  # fewer and more than slots
def test_leave_one_out_errors_are_those_of_heads_fitted_without_the_sample(feature_dim):
    generator = random_stream(0, "loo")
    features = torch.randn(2, 7, feature_dim, generator=generator, dtype=torch.float64)
    targets = torch.randn(2, 7, 2, generator=generator, dtype=torch.float64)
    present = torch.ones(2, 7, dtype=torch.bool)
    present[1, 5:] = False  # a task with fewer samples is padded
    errors = VariableProjection().errors(features, targets, present, ridge=0.4)
    eye = 0.4 * torch.eye(feature_dim, dtype=torch.float64)
    for task in range(2):
        for slot in range(7):
            if not present[task, slot]:
                assert (errors[task, slot] == 0).all()
                continue
            others = present[task].clone()
            others[slot] = False
            x, y = features[task, others], targets[task, others]
            heads = torch.linalg.solve(x.T @ x + eye, x.T @ y)
            held_out = targets[task, slot] - features[task, slot] @ heads
            torch.testing.assert_close(errors[task, slot], held_out)


def test_phi_is_not_trained_with_fewer_samples_than_unbounded_features():
    network = default_network((4,), random_stream(0, "network"), feature_dim=64, num_directions=5)
    unbounded = default_network((4,), random_stream(0, "n"), feature_dim=64, num_directions=None)
    fit = VariableProjection()
    assert [fit.can_train(n, network, 64) for n in (4, 5)] == [False, True]
    assert [fit.can_train(n, unbounded, 64) for n in (63, 64)] == [False, True]


def test_batches_contain_all_samples_of_small_tasks_and_windows_of_large_ones():
    data = MultitaskDataset(3, torch.Size([1]), torch.float64)
    tasks = torch.tensor([0] * 10 + [1] * 3)  # task 2 has none
    data.append(tasks, torch.arange(13.0)[:, None], torch.zeros(13))
    fit = VariableProjection(steps=50, batch_size=100, samples_per_task=5)
    seen = set()
    for samples, present, _ in fit.plan(data, nn.Identity(), random_stream(0, "plan")):
        for row, mask in zip(samples, present, strict=True):
            own = row[mask].tolist()
            assert len(set(own)) == len(own) == min(5, 10 if own[0] < 10 else 3)
            assert len({int(data.tasks[s]) for s in own}) == 1
            seen.update(own)
    assert seen == set(range(13))


def test_the_number_of_steps_grows_with_the_samples_of_a_task_up_to_a_bound():
    fit, module = VariableProjection(steps=60, max_steps=240), nn.Identity()
    of_one = [fit.steps_for(torch.tensor([n]), module) for n in (1, 10, 40, 160, 10**6)]
    assert of_one == [60, 60, 120, 240, 240]
    # The number of tasks has no effect, and tasks without samples do not count.
    assert fit.steps_for(torch.full((10**4,), 10), module) == 60
    assert fit.steps_for(torch.tensor([0, 40, 0]), module) == 120
    assert fit.steps_for(torch.tensor([70, 10]), module) == 120
    constant = VariableProjection(steps=500)
    assert constant.steps_for(torch.tensor([10**6]), module) == 500


def test_networks_with_convolutions_have_fewer_steps():
    flat, image = (default_network(s, random_stream(0, "n")) for s in ((8, 8), (28, 28)))
    custom = nn.Sequential(nn.Linear(4, 4), nn.Sequential(nn.Conv1d(1, 1, 1)))
    few, fit = torch.tensor([3, 3]), VariableProjection()
    assert [fit.steps_for(few, module) for module in (flat, image, custom)] == [60, 20, 20]
    assert VariableProjection(steps=60).steps_for(few, image) == 60


def test_the_learning_rate_grows_with_the_samples_up_to_a_bound():
    fit = VariableProjection(learning_rate=3e-3)
    rates = [fit.learning_rate_for(n) for n in (1, 500, 1000, 10**6)]
    assert rates == pytest.approx([1e-3, 1.5e-3, 3e-3, 3e-3])
    assert VariableProjection(samples_at_full_rate=0).learning_rate_for(1) == fit.learning_rate


def test_the_cost_of_a_step_does_not_grow_with_the_data():
    for per_task in (10, 1000):
        data = MultitaskDataset(40, torch.Size([1]), torch.float64)
        tasks = torch.arange(40).repeat(per_task)
        data.append(tasks, torch.zeros(len(tasks), 1), torch.zeros(len(tasks)))
        fit = VariableProjection(steps=3, batch_size=256)
        plan = fit.plan(data, nn.Identity(), random_stream(0, "plan"))
        assert plan.samples[0].numel() <= 256


@pytest.mark.parametrize("fit", [VariableProjection(steps=5), AdamFit(epochs=3)])
def test_a_fit_does_not_change_its_start(fit):
    environment = linear_bandit(num_tasks=4, seed=0)
    data = noiseless_data(environment, 5)
    start = zero_function(NeuralRepresentation(network(0)), 4, 2)
    before = start.representation.module.weight.detach().clone()
    fitted = fit(data, start, HeadPenalty(), random_stream(0, "fit"))
    assert torch.equal(start.representation.module.weight, before)
    assert not torch.equal(fitted.representation.module.weight, before)
    assert bool((start.heads == 0).all())


@pytest.mark.parametrize("fit", [VariableProjection(steps=5), AdamFit(epochs=3, batch_size=7)])
def test_a_fit_depends_on_its_generator_only(fit):
    environment = linear_bandit(num_tasks=4, seed=0)
    data = noiseless_data(environment, 30)
    module = nn.Sequential(network(0), nn.Dropout(0.5))
    start = zero_function(NeuralRepresentation(module), 4, 2)
    heads = [fit(data, start, HeadPenalty(), random_stream(s, "fit")).heads for s in (0, 0, 1)]
    assert torch.equal(heads[0], heads[1])
    assert not torch.equal(heads[0], heads[2])


def test_adam_learns_a_realisable_representation_and_stops_early():
    environment = linear_bandit(num_tasks=8, seed=0)
    data = noiseless_data(environment, 20)
    start = zero_function(NeuralRepresentation(network(1)), 8, 2)
    start = replace(start, heads=start.heads + 0.1)
    penalty = HeadPenalty(1e-3)
    long = AdamFit(epochs=400, learning_rate=2e-2, batch_size=40)
    fitted = long(data, start, penalty, random_stream(0, "fit"))
    assert squared_error(fitted, data) / len(data) < 1e-4
    early = replace(long, stop_below=1e30)(data, start, penalty, random_stream(0, "fit"))
    one = replace(long, epochs=1)(data, start, penalty, random_stream(0, "fit"))
    assert torch.equal(early.heads, one.heads)


def test_adam_with_full_batches_makes_one_step_in_an_epoch():
    environment = linear_bandit(num_tasks=4, seed=0)
    data = noiseless_data(environment, 5)
    start = zero_function(NeuralRepresentation(network(0)), 4, 2)
    start = replace(start, heads=start.heads + 0.1)
    whole = AdamFit(epochs=2, batch_size=None)
    same = AdamFit(epochs=2, batch_size=len(data))
    fits = [f(data, start, HeadPenalty(), random_stream(0, "fit")) for f in (whole, same)]
    assert torch.equal(fits[0].heads, fits[1].heads)


@pytest.mark.parametrize("fit", [VariableProjection(), AdamFit()])
def test_gradient_fits_refuse_other_representations_than_networks(fit):
    start = zero_function(LinearRepresentation(torch.eye(2, 6, dtype=torch.float64)), 4, 2)
    data = MultitaskDataset(4, torch.Size([6]), torch.float64)
    with pytest.raises(InvalidInputError, match="NeuralRepresentation"):
        fit(data, start, HeadPenalty(), random_stream(0, "fit"))


@pytest.mark.parametrize("seed", range(3))
def test_fits_do_not_depend_on_the_order_of_samples_or_tasks(seed):
    environment = finite_bandit(seed=seed)
    data, known = noiseless_data(environment, 6), environment.representation_class
    order = torch.randperm(len(data), generator=random_stream(seed, "order"))
    relabel = torch.randperm(4, generator=random_stream(seed, "relabel"))
    shuffled = MultitaskDataset(4, torch.Size([6]), torch.float64)
    shuffled.append(relabel[data.tasks[order]], data.inputs[order], data.targets[order])
    start = zero_function(known.members[0], 4, 2)
    one = Exhaustive(known)(data, start, HeadPenalty(), random_stream(0, "fit"))
    other = Exhaustive(known)(shuffled, start, HeadPenalty(), random_stream(0, "fit"))
    assert one.representation is other.representation
    torch.testing.assert_close(one.heads, other.heads[relabel])


def test_with_one_representation_a_task_has_the_same_heads_alone_and_with_others():
    environment = finite_bandit(seed=0, num_representations=1)
    data, known = noiseless_data(environment, 6), environment.representation_class
    together = Exhaustive(known)(
        data, zero_function(known.members[0], 4, 2), HeadPenalty(), random_stream(0, "fit")
    )
    for task in range(4):
        alone = MultitaskDataset(1, torch.Size([6]), torch.float64)
        own = data.tasks == task
        alone.append(data.tasks[own] * 0, data.inputs[own], data.targets[own])
        fit = Exhaustive(FiniteClass(known.members))(
            alone, zero_function(known.members[0], 1, 2), HeadPenalty(), random_stream(0, "fit")
        )
        torch.testing.assert_close(fit.heads[0], together.heads[task])
