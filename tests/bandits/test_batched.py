"""Batched agents decide and learn as their replicas do alone."""

from dataclasses import replace

import pytest
import torch

from gfucb import (
    GFUCB,
    ConstantRadius,
    EpsilonGreedy,
    Greedy,
    LastLayer,
    Uniform,
    VariableProjection,
    multitask_greedy,
)
from gfucb.bandits import Grouped
from gfucb.bandits.batched import BatchedAgents
from gfucb.core.errors import InvalidInputError
from gfucb.core.random import random_stream
from gfucb.environments import ImageBandit, load_digits
from gfucb.estimation import LogRadius
from gfucb.models.nn.networks import default_network
from gfucb.runs.loop import play, play_batched

SEEDS = (0, 1, 2)
QUICK = VariableProjection(steps=8, batch_size=64)


def network(seed: int) -> torch.nn.Module:
    # Double precision: training amplifies rounding, and single would hide a real difference.
    return default_network((8, 8), random_stream(seed, "network"), hidden=16).double()


def make(seed: int, **options) -> GFUCB:
    return GFUCB(4, network(seed), seed=seed, fit=QUICK, **options)


def environments() -> list[ImageBandit]:
    return [ImageBandit(load_digits(), num_tasks=4, num_actions=5, seed=seed) for seed in SEEDS]


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"action_selector": LastLayer(joint=False)},
        {"squared_radius": LogRadius()},
        {"ridge": 0.3},
    ],
    ids=["default", "separate", "printed radius", "ridge"],
)
def test_replicas_decide_and_learn_as_they_do_alone(options):
    batched = BatchedAgents([make(seed, **options) for seed in SEEDS])
    together = list(play_batched(batched, environments(), num_rounds=25))
    for replica, (seed, environment) in enumerate(zip(SEEDS, environments(), strict=True)):
        alone = make(seed, **options)
        rows = list(play(alone, environment, num_rounds=25))
        for one, many in zip(rows, together, strict=True):
            for name in ("regret", "cumulative_regret", "reward", "fits"):
                assert many[replica][name] == pytest.approx(one[name], abs=1e-12)
        back = batched.unbatch()[replica]
        candidates = environment.round(99).candidates
        expected, found = alone.decide(candidates), back.decide(candidates)
        assert torch.equal(found.actions, expected.actions)
        torch.testing.assert_close(
            found.optimistic_values, expected.optimistic_values, rtol=1e-6, atol=1e-6
        )
        assert back.diagnostics()["fits"] == rows[-1]["fits"] > 3


def test_unbatched_agents_continue_alone():
    batched = BatchedAgents([make(seed) for seed in SEEDS])
    list(play_batched(batched, environments(), num_rounds=6))
    agents = batched.unbatch()
    rows = list(play(agents[1], environments()[1], num_rounds=12, rounds_done=6))
    alone = list(play(make(1), environments()[1], num_rounds=12))[6:]
    assert [r["regret"] for r in rows] == pytest.approx([r["regret"] for r in alone])


def test_greedy_replicas_have_no_bonus():
    batched = BatchedAgents([multitask_greedy(4, network(s), seed=s, fit=QUICK) for s in SEEDS])
    x = torch.rand(3, 4, 5, 8, 8, generator=random_stream(0, "x"))
    batched.observe(batched.decide(x), torch.rand(3, 4, generator=random_stream(0, "y")))
    decision = batched.decide(x)
    estimates = decision.prediction.mean.clamp(0, 1)
    torch.testing.assert_close(decision.optimistic_values, estimates)


@pytest.mark.slow
def test_only_a_replica_whose_environment_has_changed_is_refitted_early():
    def agents() -> list[GFUCB]:
        # Fits at 4, 8, .. 256 samples; the next would be at 512, round 128.
        return [make(seed, refit_growth=2.0) for seed in (0, 1)]

    batched, alone = BatchedAgents(agents()), agents()
    own = environments()[:2]
    for index in range(1, 100):
        rounds = [environment.round(index) for environment in own]
        decision = batched.decide(torch.stack([r.candidates for r in rounds]))
        rewards = torch.stack([r.rewards(a) for r, a in zip(rounds, decision.actions, strict=True)])
        if index > 66:
            rewards[1] += 3.0  # only in the environment of the second replica
        batched.observe(decision, rewards)
        for agent, round_, reward in zip(alone, rounds, rewards, strict=True):
            agent.observe(agent.decide(round_.candidates), reward)
    assert batched.num_fits == [agent.learner.num_fits for agent in alone]
    assert batched.num_fits[1] > batched.num_fits[0]


def test_agents_that_cannot_be_stacked_are_refused_with_the_reason():
    with pytest.raises(InvalidInputError, match="at least one agent"):
        BatchedAgents([])
    with pytest.raises(InvalidInputError, match="differ in ridge"):
        BatchedAgents([make(0), make(1, ridge=2.0)])
    with pytest.raises(InvalidInputError, match="select_batched"):
        from gfucb.exploration import FineTuning

        BatchedAgents([make(0, action_selector=FineTuning.stable())])
    learned = make(0)
    learned.learn([0], torch.rand(1, 8, 8), [0.5])
    with pytest.raises(InvalidInputError, match="learned anything"):
        BatchedAgents([learned])


def test_refused_rounds_change_nothing():
    batched = BatchedAgents([make(seed, action_selector=Greedy()) for seed in SEEDS])
    x = torch.rand(3, 4, 5, 8, 8, generator=random_stream(0, "x"))
    with pytest.raises(InvalidInputError, match=r"\[replica, task, action"):
        batched.decide(x[:2])
    decision = batched.decide(x)
    for bad in (torch.zeros(3, 3), torch.full((3, 4), float("nan"))):
        with pytest.raises(InvalidInputError, match="rewards"):
            batched.observe(decision, bad)
    assert batched.num_fits == [0, 0, 0]
    assert all(not agent.state() for agent in batched.unbatch())


@pytest.mark.parametrize("rounds_before", [0, 3])
def test_a_refit_that_fails_changes_nothing(rounds_before):
    fails = []

    def augment(inputs, generator):
        if fails and fails.pop():
            raise RuntimeError("no memory")
        return inputs + 1e-3 * torch.randn(inputs.shape, generator=generator, dtype=inputs.dtype)

    def batch() -> BatchedAgents:
        fit = VariableProjection(steps=4, augment=augment)
        return BatchedAgents(
            [GFUCB(4, nn_linear(seed), seed=seed, fit=fit, refit_growth=1.0) for seed in SEEDS]
        )

    def play_round(batched: BatchedAgents, index: int) -> torch.Tensor:
        generator = random_stream(0, "round", index)
        decision = batched.decide(torch.rand(3, 4, 5, 6, generator=generator))
        batched.observe(decision, torch.rand(3, 4, generator=generator))
        return decision.optimistic_values

    failed, smooth = batch(), batch()
    for index in range(rounds_before):
        play_round(failed, index), play_round(smooth, index)
    # The third step of the fit fails, when the weights have already moved.
    fails[:] = [True] + [False] * 2 * len(SEEDS)
    with pytest.raises(RuntimeError, match="no memory"):
        play_round(failed, rounds_before)
    assert failed.num_fits == [rounds_before] * 3
    for index in range(rounds_before, rounds_before + 3):
        assert torch.equal(play_round(failed, index), play_round(smooth, index))


def nn_linear(seed: int) -> torch.nn.Module:
    layer = torch.nn.Linear(6, 3).double()
    with torch.no_grad():
        layer.weight.normal_(generator=random_stream(seed, "layer"))
        layer.bias.zero_()
    return layer


def test_groups_of_an_environment_and_their_draws_are_those_of_grouped_agents():
    def alone(num_tasks: int, seed: int) -> EpsilonGreedy:
        agent = multitask_greedy(num_tasks, network(0), seed=seed, fit=QUICK)
        return EpsilonGreedy(agent, epsilon=0.4, seed=seed)

    expected = []
    for seed, environment in zip(SEEDS, environments(), strict=True):
        grouped = Grouped(4, alone, group_size=2, seed=seed)
        expected.append(list(play(grouped, environment, num_rounds=12)))
    seeds = [random_stream(s, "group", g).initial_seed() for s in SEEDS for g in range(2)]
    explorers = [alone(2, seed) for seed in seeds]
    batched = BatchedAgents([explorer.agent for explorer in explorers])
    together = play_batched(batched, environments(), num_rounds=12, explorers=explorers)
    for index, rows in enumerate(together):
        for environment, row in enumerate(rows):
            for name in ("regret", "reward", "cumulative_regret", "fits"):
                assert row[name] == pytest.approx(expected[environment][index][name], abs=1e-12)


def test_replicas_that_do_not_fit_the_environments_are_refused():
    batched = BatchedAgents([make(seed) for seed in SEEDS])
    with pytest.raises(InvalidInputError, match="3 replicas of 4 tasks cannot play 2 environments"):
        next(play_batched(batched, environments()[:2], num_rounds=1))


def test_batched_agents_choose_available_actions_only():
    batched = BatchedAgents([make(seed) for seed in SEEDS])
    x = torch.rand(3, 4, 5, 8, 8, generator=random_stream(0, "x"))
    available = torch.rand(3, 4, 5, generator=random_stream(1, "x")) < 0.3
    available[..., 2] = True
    decision = batched.decide(x, available)
    assert available.gather(2, decision.actions[..., None]).all()
    assert decision.optimistic_values.isfinite().all()


@pytest.mark.parametrize(
    ("one", "other", "name"),
    [
        ({}, {"ridge": 2.0}, "ridge: 1.0 and 2.0"),
        ({}, {"fit": VariableProjection(steps=9, batch_size=64)}, "fit"),
        ({}, {"fit": VariableProjection(steps=8, batch_size=64, epsilon=1e-4)}, "fit"),
        (
            {"squared_radius": ConstantRadius(0.1)},
            {"squared_radius": ConstantRadius(9.0)},
            r"squared_radius: .*0\.1.* and .*9\.0",
        ),
        ({}, {"action_selector": LastLayer(joint=False)}, "action_selector"),
        ({}, {"refit_growth": 2.0}, "refit_growth"),
        ({}, {"value_range": (0, 2)}, "(squared_radius|value_range)"),
    ],
)
def test_agents_with_different_settings_are_refused_by_name(one, other, name):
    def agent(seed: int, options: dict) -> GFUCB:
        return GFUCB(4, network(seed), seed=seed, **({"fit": QUICK} | options))

    with pytest.raises(InvalidInputError, match=f"they differ in {name}"):
        BatchedAgents([agent(0, one), agent(1, other)])


def test_agents_with_different_networks_are_refused_by_name():
    def agent(seed: int, activation: torch.nn.Module, width: int = 8) -> GFUCB:
        net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, width), activation)
        return GFUCB(4, net, seed=seed, fit=QUICK)

    BatchedAgents([agent(0, torch.nn.ReLU()), agent(1, torch.nn.ReLU())])
    with pytest.raises(InvalidInputError, match=r"differ in representation: .*ReLU.* and .*Tanh"):
        BatchedAgents([agent(0, torch.nn.ReLU()), agent(1, torch.nn.Tanh())])
    with pytest.raises(InvalidInputError, match="differ in representation"):
        BatchedAgents([agent(0, torch.nn.ReLU()), agent(1, torch.nn.ReLU(), width=9)])
    with pytest.raises(InvalidInputError, match="differ in num_tasks: 4 and 5"):
        BatchedAgents([GFUCB(4, fit=QUICK), GFUCB(5, fit=QUICK)])
    with pytest.raises(InvalidInputError, match="GFUCB agents, got Uniform"):
        BatchedAgents([Uniform(4)])
    with pytest.raises(InvalidInputError, match="different objects"):
        BatchedAgents([make(0)] * 2)


def numbers(name: str, *shape: int) -> torch.Tensor:
    return torch.rand(*shape, generator=random_stream(0, name))


def test_changed_decisions_are_refused_before_anything_is_learned():
    batched = BatchedAgents([make(seed) for seed in SEEDS])
    x, y = numbers("x", 3, 4, 5, 8, 8), numbers("y", 3, 4)
    decision = batched.decide(x)
    nan = float("nan")
    predicted = decision.prediction
    for changes, message in [
        ({"features": decision.features[:2]}, "features .* shape"),
        ({"features": decision.features * nan}, "features .* finite"),
        ({"inputs": decision.inputs * nan}, "inputs .* finite"),
        ({"prediction": replace(predicted, variance=predicted.variance * nan)}, "variances"),
        ({"prediction": replace(predicted, mean=predicted.mean[:, :3])}, "means"),
        ({"prediction": replace(predicted, variance=-predicted.variance - 1)}, "not be negative"),
        ({"prediction": None}, "Prediction"),
    ]:
        with pytest.raises(InvalidInputError, match=message):
            batched.observe(replace(decision, **changes), y)
    with pytest.raises(InvalidInputError, match="BatchedDecision, got int"):
        batched.observe(3, y)
    assert all(not agent.state() for agent in batched.unbatch())


def test_rewards_that_come_after_a_refit_are_learned_with_current_features():
    """A late reward has features of the network as it was; they are computed again."""
    batched = BatchedAgents([make(seed, refit_growth=1.0) for seed in SEEDS])
    late = batched.decide(numbers("late", 3, 4, 5, 8, 8))
    decision = batched.decide(numbers("x", 3, 4, 5, 8, 8))
    batched.observe(decision, numbers("y", 3, 4))
    assert batched.num_fits == [1, 1, 1]
    for agent in batched.agents:
        agent.learner.refit_growth = 1e9
    batched.observe(replace(late, features=torch.full_like(late.features, 1e3)), numbers("z", 3, 4))
    grams = batched._fit_state.statistics.grams
    assert float(grams.diagonal(dim1=-2, dim2=-1).max()) < 1e3


def test_batches_and_their_decisions_have_a_short_repr():
    batched = BatchedAgents([make(seed) for seed in SEEDS])
    decision = batched.decide(numbers("x", 3, 4, 5, 8, 8))
    batched.observe(decision, numbers("y", 3, 4))
    assert repr(batched) == "BatchedAgents(3 replicas of 4 tasks, samples=12)"
    assert repr(decision) == "BatchedDecision(3 replicas of 4 tasks)"
