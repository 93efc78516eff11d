"""Checks of bandit agents and environments: shipped ones pass, broken ones fail."""

import math
from dataclasses import replace

import pytest
import torch
from check_cases import COUNTER, FEW_STEPS, ROTATIONS, network

from gfucb import (
    GFUCB,
    EpsilonGreedy,
    FiniteClass,
    Randomised,
    Uniform,
    bandits,
    environments,
    linucb,
    multitask_greedy,
)
from gfucb.checks import (
    CheckError,
    check_bandit_agent,
    check_bandit_environment,
)
from gfucb.core.records import BanditRound

# Bandit agents. `tests/runs/test_config.py` runs the check on all registered agents.


def finite_agent(**options) -> GFUCB:
    return GFUCB(3, FiniteClass(ROTATIONS), **options)


BANDIT_AGENTS = {
    "GFUCB": lambda: finite_agent(),
    "EpsilonGreedy": lambda: EpsilonGreedy(finite_agent(), epsilon=0.5),
    "Grouped": lambda: bandits.Grouped(3, lambda tasks, seed: GFUCB(tasks, FiniteClass(ROTATIONS))),
    "LinearUCB": lambda: bandits.LinearUCB(3, sharing="hierarchical"),
    "PooledTasks": lambda: bandits.PooledTasks(3, bandits.LinearUCB(1)),
    "Randomised": lambda: Randomised(finite_agent(), epsilon=0.5, holdback=0.1),
    "Uniform": lambda: Uniform(3),
    "linucb": lambda: linucb(3),
    "multitask_greedy": lambda: multitask_greedy(3, fit=FEW_STEPS),
    "neural_linear_ts": lambda: bandits.neural_linear_ts(3, fit=FEW_STEPS),
    "neural_linear_ucb": lambda: bandits.neural_linear_ucb(3, fit=FEW_STEPS),
    "neural_ts": lambda: bandits.neural_ts(3, network(), fit=FEW_STEPS),
    "neural_ucb": lambda: bandits.neural_ucb(3, network(), fit=FEW_STEPS),
    "perturbed_rewards": lambda: bandits.perturbed_rewards(3, fit=FEW_STEPS),
    "squarecb": lambda: bandits.squarecb(3, fit=FEW_STEPS),
}


def test_no_exported_bandit_agent_is_left_out():
    others = {"BatchedAgents", "Randomisation", "Discounting", "DriftDetection", "SlidingWindow"}
    assert set(bandits.__all__) - others == set(BANDIT_AGENTS)


@pytest.mark.parametrize("name", BANDIT_AGENTS)
def test_shipped_bandit_agents_pass(name):
    check_bandit_agent(BANDIT_AGENTS[name])


class LearnsWhenItDecides(GFUCB):
    def decide(self, candidates, tasks=None, available=None):
        decision = super().decide(candidates, tasks, available)
        self.learn([0], decision.inputs[:1], [0.5])
        return decision


class IgnoresTheMask(GFUCB):
    def decide(self, candidates, tasks=None, available=None):
        decision = super().decide(candidates, tasks, available)
        only = len(decision) == 1
        return replace(decision, actions=decision.actions * 0) if only else decision


class AcceptsAnyReward(GFUCB):
    def observe(self, decision, rewards):
        rewards = torch.as_tensor(rewards).double().nan_to_num(0.0, 1.0)[: len(decision)]
        super().observe(decision, rewards)


class LearnsBeforeItRefuses(GFUCB):
    def observe(self, decision, rewards):
        self.learn(decision.tasks, decision.inputs, torch.zeros(len(decision)))
        super().observe(decision, rewards)


class ForgetsItsState(GFUCB):
    def load_state(self, state):
        super().load_state({})


class DecidesByCount(GFUCB):
    count = 0

    def decide(self, candidates, tasks=None, available=None):
        DecidesByCount.count += 1
        shift = torch.full((len(candidates), 3), DecidesByCount.count % 3)
        mask = torch.arange(3) == shift if available is None else available
        return super().decide(candidates, tasks, mask)


class ReturnsOtherInputs(GFUCB):
    def decide(self, candidates, tasks=None, available=None):
        decision = super().decide(candidates, tasks, available)
        return replace(decision, inputs=decision.inputs + 1)


class NamesItselfByAddress(GFUCB):
    def settings(self):
        return super().settings() | {"identity": str(id(self))}


class CountsWithTensors(GFUCB):
    def diagnostics(self):
        return {"fits": torch.tensor(1)}


BROKEN_BANDIT_AGENTS = {
    "decide changed what": LearnsWhenItDecides,
    "not available": IgnoresTheMask,
    "were accepted": AcceptsAnyReward,
    "changed the agent": LearnsBeforeItRefuses,
    "restored agent": ForgetsItsState,
    "decided differently": DecidesByCount,
    "inputs of a decision": ReturnsOtherInputs,
    "different settings": NamesItselfByAddress,
    "diagnostics": CountsWithTensors,
}


@pytest.mark.parametrize("message", BROKEN_BANDIT_AGENTS)
def test_a_broken_bandit_agent_fails(message):
    broken = BROKEN_BANDIT_AGENTS[message]
    with pytest.raises(CheckError, match=message):
        check_bandit_agent(lambda: broken(3, FiniteClass(ROTATIONS)))


# Bandit environments.


def images(seed: int):
    return environments.ImageBandit(environments.load_digits(), num_tasks=3, seed=seed)


@pytest.mark.parametrize(
    "make",
    [
        images,
        lambda seed: environments.finite_bandit(seed=seed),
        lambda seed: environments.linear_bandit(seed=seed),
        lambda seed: environments.WheelBandit([0.5, 0.9], seed=seed),
    ],
    ids=["images", "finite", "linear", "wheel"],
)
def test_shipped_bandit_environments_pass(make):
    check_bandit_environment(make)


class ChangedRounds:
    """A finite bandit whose rounds are changed by a function of (round, index)."""

    num_tasks = 4

    def __init__(self, seed, change):
        self.inner, self.change = environments.finite_bandit(seed=seed), change

    def round(self, round_index):
        return self.change(self.inner.round(round_index), round_index)

    def describe(self):
        return {}


class NoisyByAction(BanditRound):
    def rewards(self, actions):
        return super().rewards(actions) + actions.double()


def noisy_by_action(round_, index):
    return NoisyByAction(round_.candidates, round_.mean_rewards, round_.noise, round_.true_features)


BROKEN_ROUNDS = {
    "round 1 is different": lambda r, i: replace(r, noise=r.noise + next(COUNTER)),
    "all rounds are equal": lambda r, i: environments.finite_bandit(seed=len(r.noise)).round(1),
    "mean plus the noise": noisy_by_action,
    "noise must be finite": lambda r, i: replace(r, noise=r.noise * math.inf),
    r"\[task, action, \*input\]": lambda r, i: replace(r, candidates=r.candidates[:1]),
}


@pytest.mark.parametrize("message", BROKEN_ROUNDS)
def test_a_broken_bandit_environment_fails(message):
    change = BROKEN_ROUNDS[message]
    # An environment whose rounds are all equal must still depend on the seed.
    if message == "all rounds are equal":
        seeds = {}

        def make(seed):
            first = environments.finite_bandit(seed=seed).round(1)
            return ChangedRounds(seed, lambda r, i: seeds.setdefault(seed, first))
    else:

        def make(seed):
            return ChangedRounds(seed, change)

    with pytest.raises(CheckError, match=message):
        check_bandit_environment(make)


def test_an_agent_instead_of_a_function_is_named():
    with pytest.raises(CheckError, match=r"a function that returns a new agent, .* got GFUCB"):
        check_bandit_agent(finite_agent())


def test_an_environment_without_a_seed_fails():
    with pytest.raises(CheckError, match="seed has no effect"):
        check_bandit_environment(lambda seed: environments.finite_bandit(seed=0))
