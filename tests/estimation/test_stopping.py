"""Early stopping by the error on held-out samples."""

import gc
import logging
import math
import weakref
from dataclasses import replace

import pytest
import torch
from torch import nn

from gfucb import VariableProjection
from gfucb.core.errors import InvalidInputError
from gfucb.core.random import random_stream
from gfucb.estimation import HeldOutStopping, squared_error
from gfucb.estimation.stacked_fit import StackedFit
from gfucb.estimation.stopping import CHECKED_ROWS, HeldOutCheck, StoppingRule
from gfucb.models import HeadPenalty, MultiheadFunction, MultitaskDataset, NeuralRepresentation
from gfucb.models.nn.stacked import NetworkStack

# Together they take seconds.
pytestmark = pytest.mark.slow

QUICK = HeldOutStopping(share=0.2, first_of_task=0, fewest=10, check_every=5, patience=1 / 6)
PENALTY = HeadPenalty(1e-2)
DIM, FEATURES = 6, 2


def network(seed: int) -> nn.Module:
    layer = nn.Linear(DIM, FEATURES, bias=False, dtype=torch.float64)
    layer.weight.data = torch.randn(FEATURES, DIM, generator=random_stream(seed, "w")).double()
    return layer


def linear_data(num_samples: int, num_tasks: int = 4, noise: float = 0.0, seed: int = 0):
    """Rewards that are linear in two features, which all tasks share."""
    generator = random_stream(seed, "data")

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    matrix, heads = normal(FEATURES, DIM), normal(num_tasks, FEATURES)
    tasks = torch.randint(num_tasks, (num_samples,), generator=random_stream(seed, "tasks"))
    inputs = normal(num_samples, DIM)
    values = ((inputs @ matrix.T) * heads[tasks]).sum(-1) + noise * normal(num_samples)
    data = MultitaskDataset(num_tasks, torch.Size([DIM]), torch.float64)
    data.append(tasks, inputs, values)
    return data


def start_at(module: nn.Module, num_tasks: int = 4) -> MultiheadFunction:
    heads = torch.zeros(num_tasks, FEATURES, dtype=torch.float64)
    return MultiheadFunction(NeuralRepresentation(module), heads)


def weight_of(function: MultiheadFunction) -> torch.Tensor:
    return function.representation.module.weight.detach()


def test_a_sample_is_held_out_by_its_index_whatever_comes_after_it():
    data, rule = linear_data(400), HeldOutStopping(share=0.2, first=100, fewest=1, most=40)
    held_out = rule.held_out(data)
    assert not held_out[:100].any()
    assert torch.bincount(data.tasks[held_out]).max() == 10
    for size in (150, 200, 399):
        shorter = linear_data(400)
        shorter.truncate(size)
        assert torch.equal(rule.held_out(shorter), held_out[:size])


def test_the_first_samples_of_a_task_are_trained_on_until_there_are_many_in_total():
    data = MultitaskDataset(50, torch.Size([1]), torch.float64)
    tasks = torch.cat([torch.zeros(200, dtype=torch.int64), torch.arange(50).repeat(6)])
    data.append(tasks, torch.zeros(500, 1), torch.zeros(500))
    rule = HeldOutStopping(share=0.5, first_of_task=40, first=400, fewest=1)
    held_out = rule.held_out(data)
    assert not held_out[:40].any()
    assert held_out[40:200].any()
    assert not held_out[200:400][tasks[200:400] > 0].any()
    assert held_out[400:].sum() > 20
    # A long log is learned in a first fit, however few samples its tasks have.
    of_first_fit = rule.held_out(data, is_first_fit=True)
    assert of_first_fit[200:400][tasks[200:400] > 0].any()


def test_only_a_first_fit_holds_out_samples_of_tasks_with_few():
    data, start = linear_data(200), start_at(network(1))
    few = replace(QUICK, first_of_task=100, first=1000)
    fit, steps = counting(VariableProjection(60, 60, 0.0, stopping=few))
    fit(data, start, PENALTY, random_stream(0, "fit"))
    assert len(steps) == 60 * QUICK.patience
    fit(data, start.with_heads(start.heads + 1), PENALTY, random_stream(0, "fit"))
    assert len(steps) == 60 * QUICK.patience + 60


def test_batches_have_no_held_out_sample_and_all_others():
    data = linear_data(200)
    held_out = QUICK.held_out(data)
    plan = VariableProjection().plan(
        data, nn.Identity(), random_stream(0, "plan"), steps=60, held_out=held_out
    )
    assert len(plan) == 60
    used = plan.samples[plan.present].unique()
    assert torch.equal(used, (~held_out).nonzero().squeeze(1))


def test_with_too_few_held_out_samples_a_fit_is_that_without_stopping():
    data, start = linear_data(40), start_at(network(1))
    plain = VariableProjection(steps=7)
    assert QUICK.held_out(data) is None
    one, other = (
        fit(data, start, PENALTY, random_stream(0, "fit"))
        for fit in (plain, replace(plain, stopping=QUICK))
    )
    assert torch.equal(weight_of(one), weight_of(other))


def test_the_checked_error_is_that_of_heads_without_the_sample():
    data, module = linear_data(120, noise=0.1), network(1)
    held_out = QUICK.held_out(data)
    check = HeldOutCheck.of(data, held_out)
    with torch.no_grad():
        features = module(data.inputs)
        found = check.error(module(check.inputs(data)), check.targets(data, 0.3), 0.5)
    expected = []
    for sample in held_out.nonzero().squeeze(1):
        others = data.tasks == data.tasks[sample]
        others[sample] = False
        x, y = features[others], data.targets[others] - 0.3
        head = torch.linalg.solve(x.T @ x + 0.5 * torch.eye(FEATURES), x.T @ y)
        expected.append((data.targets[sample] - 0.3 - features[sample] @ head) ** 2)
    assert found == pytest.approx(float(torch.stack(expected).mean()))


def test_a_check_has_a_bounded_number_of_rows():
    data = MultitaskDataset(300, torch.Size([1]), torch.float64)
    tasks = torch.arange(300).repeat(100)
    data.append(tasks, torch.zeros(len(tasks), 1), torch.zeros(len(tasks)))
    check = HeldOutCheck.of(data, HeldOutStopping().held_out(data))
    assert check.samples.numel() <= CHECKED_ROWS
    assert check.held_out.any(1).all()


def steps_until_stop(errors: list[float], settings: HeldOutStopping, bound: int = 1000) -> int:
    rule = StoppingRule(settings, usual_steps=40, bound=bound, num_samples=100)
    remaining = iter(errors)
    rule.is_best(0, next(remaining))
    while rule.next_steps:
        rule.is_best(rule.step + rule.next_steps, next(remaining))
    return rule.step


def test_a_fit_stops_when_the_lowest_error_is_old():
    rule = HeldOutStopping(check_every=10, patience=0.5, patience_growth=0.5, smallest_gain=0.01)
    assert steps_until_stop([1.0] * 9, rule) == 20
    assert steps_until_stop([1.0] + [0.995] * 9, rule) == 20  # not lower by one percent
    assert steps_until_stop([1.0, 2.0, 0.9] + [1.0] * 9, rule, bound=35) == 35
    falling = [0.9**k for k in range(11)]  # the lowest at step 100, then 50 more
    assert steps_until_stop([*falling, *[1.0] * 9], rule) == 150
    assert steps_until_stop([1.0] + [math.nan] * 9, rule) == 20


def test_the_bound_of_the_steps_grows_with_the_data():
    rule = HeldOutStopping(passes=20)
    assert rule.step_bound(240, 2**11, 1024) == 240 * 11
    assert rule.step_bound(240, 2**20, 1024) == 20 * 1024


def test_one_fit_with_stopping_learns_what_few_steps_do_not():
    data, start = linear_data(400, num_tasks=8), start_at(network(1), num_tasks=8)
    plain = VariableProjection(steps=20, max_steps=20, learning_rate=3e-2)
    long = replace(plain, stopping=replace(QUICK, passes=2000.0))
    few, many = (f(data, start, PENALTY, random_stream(0, "fit")) for f in (plain, long))
    assert squared_error(many, data) < 1e-2 * squared_error(few, data)


def counting(fit: VariableProjection) -> tuple[VariableProjection, list[int]]:
    steps = []

    def augment(inputs: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        steps.append(len(inputs))
        return inputs

    return replace(fit, augment=augment), steps


def test_a_start_that_does_not_improve_is_returned_after_the_patience():
    data = linear_data(200)
    start = start_at(network(1))
    for rate in (0.0, 1e200):  # no change, and weights that are not finite
        fit, steps = counting(VariableProjection(60, 60, rate, stopping=QUICK))
        fitted = fit(data, start, PENALTY, random_stream(0, "fit"))
        assert len(steps) == 60 * QUICK.patience
        assert torch.equal(weight_of(fitted), weight_of(start))
        assert not torch.equal(fitted.heads, start.heads)  # fitted to all samples


def test_a_fit_from_a_converged_fit_is_shorter():
    data, start = linear_data(400, noise=0.3), start_at(network(1))
    fit, steps = counting(
        VariableProjection(learning_rate=1e-2, stopping=replace(QUICK, passes=2000.0))
    )
    fitted = fit(data, start, PENALTY, random_stream(0, "fit"))
    cold = len(steps)
    fit(data, fitted, PENALTY, random_stream(1, "fit"))
    assert len(steps) - cold < cold / 2


def test_a_fit_with_stopping_depends_on_its_generator_only():
    data = linear_data(200, noise=0.1)
    start = start_at(network(1))
    start = replace(start, representation=NeuralRepresentation(Dropped(network(1))))
    fit = VariableProjection(stopping=QUICK)
    heads = []
    for seed in (0, 0, 1):
        torch.rand(3)
        heads.append(fit(data, start, PENALTY, random_stream(seed, "fit")).heads)
    assert torch.equal(heads[0], heads[1])
    assert not torch.equal(heads[0], heads[2])


class Dropped(nn.Module):
    """Dropout that draws from torch's global generator."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.dropout(self.module(x), 0.5, self.training)


@pytest.mark.parametrize("stopping", [QUICK, replace(QUICK, averaging=0.0)])
def test_the_networks_of_a_stack_train_and_stop_as_alone(stopping):
    seeds = (1, 2, 3)
    fit = VariableProjection(learning_rate=3e-2, batch_size=64, stopping=stopping)
    tasks = torch.arange(4).repeat(60)
    data = []
    for seed in seeds:
        own = linear_data(240, noise=0.1, seed=seed)
        same = MultitaskDataset(4, torch.Size([DIM]), torch.float64)
        same.append(tasks, own.inputs, own.targets)
        data.append(same)
    stack = NetworkStack([NeuralRepresentation(network(seed)) for seed in seeds])
    generators = [random_stream(seed, "fit") for seed in seeds]
    fit.fit_stack(stack, data, generators, offset=0.0, ridge=1e-2, feature_dim=FEATURES)
    lengths = []
    for seed, own, found in zip(seeds, data, stack.unstacked(), strict=True):
        counted, steps = counting(fit)
        alone = counted(own, start_at(network(seed)), PENALTY, random_stream(seed, "fit"))
        torch.testing.assert_close(found.module.weight.detach(), weight_of(alone))
        lengths.append(len(steps))
    assert len(set(lengths)) > 1  # they do not all stop at the same step


def test_progress_is_logged(caplog):
    fit = VariableProjection(stopping=QUICK)
    with caplog.at_level(logging.INFO, logger="gfucb.estimation"):
        fit(linear_data(200), start_at(network(1)), PENALTY, random_stream(0, "fit"))
    assert caplog.messages[0].startswith("fit to 200 samples: step 0 of at most ")
    assert "step 5 of" in caplog.messages[1]
    record = caplog.records[1]
    assert (record.num_samples, record.step) == (200, 5)
    lowest = f"lowest {record.lowest_error:.5g} at step {record.lowest_step}"
    assert record.message.endswith(f"held-out error {record.held_out_error:.5g}, {lowest}")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: HeldOutStopping(share=0.0), "share must be"),
        (lambda: HeldOutStopping(share=1.0), "share must be below 1"),
        (lambda: HeldOutStopping(averaging=1.0), "averaging must be below 1"),
        (lambda: HeldOutStopping(check_every=0), "check_every must be"),
        (lambda: HeldOutStopping(patience=-1), "patience must be"),
        (lambda: HeldOutStopping(passes=math.nan), "passes must be"),
        (lambda: VariableProjection(stopping=5), "stopping must be a HeldOutStopping or None"),
    ],
)
def test_settings_that_make_no_sense_are_refused(make, message):
    with pytest.raises(InvalidInputError, match=message):
        make()


@pytest.mark.parametrize("stopping", [None, QUICK])
def test_a_stacked_fit_is_freed_at_once(stopping):
    """A CUDA graph that the garbage collector frees during another capture breaks that capture."""
    data = linear_data(240)
    stack = NetworkStack([NeuralRepresentation(network(1))])
    fit = VariableProjection(steps=2, max_steps=2, stopping=stopping)
    gc.collect()
    gc.disable()
    try:
        training = StackedFit(
            fit, stack, [data], offset=0.0, ridge=1.0, generators=[random_stream(0, "fit")]
        )
        training.run()
        freed = weakref.ref(training)
        del training
        assert freed() is None
    finally:
        gc.enable()
