"""Every check passes on every shipped implementation, and fails on a broken one for its reason."""

import math
from dataclasses import dataclass, replace

import pytest
import torch
from torch import nn

from gfucb import (
    GFUCB,
    ConstantRadius,
    EpsilonGreedy,
    FiniteClass,
    Uniform,
    VariableProjection,
    bandits,
    environments,
    episodic,
    estimation,
    exploration,
    linucb,
    multitask_greedy,
)
from gfucb.checks import (
    CheckError,
    check_action_selector,
    check_bandit_agent,
    check_bandit_environment,
    check_episodic_agent,
    check_episodic_environment,
    check_fit,
    check_squared_radius,
)
from gfucb.core.protocols import ActionSelector
from gfucb.core.records import BanditRound
from gfucb.estimation import AdamFit, Alternating, Exhaustive, LogRadius, ScaledRadius, best_on
from gfucb.models import IdentityRepresentation, LinearRepresentation, NeuralRepresentation
from gfucb.theory.lemma_radii import CorrectedRadius, PrintedRadius

FEW_STEPS = VariableProjection(steps=2)
ROTATIONS = [
    LinearRepresentation(torch.eye(4, dtype=torch.float64)[rows]) for rows in ([0, 1], [2, 3])
]


# Action selectors.

SELECTORS = {
    "Certified": exploration.Certified(),
    "DiagonalSampling": exploration.DiagonalSampling(),
    "DiagonalUCB": exploration.DiagonalUCB(),
    "Enumerated": exploration.Enumerated(exploration.LastLayer()),
    "ExactFinite": exploration.ExactFinite(),
    "FineTuning": exploration.FineTuning.stable(iterations=5),
    "FineTuning, printed sum": exploration.FineTuning.literal_sum(iterations=5),
    "FineTuning, printed mean": exploration.FineTuning.literal_mean(iterations=5),
    "GradientBonus": exploration.GradientBonus(),
    "Greedy": exploration.Greedy(),
    "HeadSampling": exploration.HeadSampling(),
    "InverseGap": exploration.InverseGap(),
    "LastLayer": exploration.LastLayer(),
    "LastLayer, each row": exploration.LastLayer(joint=False),
    "Linearised": exploration.Linearised(),
    "Linearised, each row": exploration.Linearised(joint=False),
    "PerturbedRewards": exploration.PerturbedRewards(),
}


def test_no_exported_selector_is_left_out():
    assert {name.split(",")[0] for name in SELECTORS} == set(exploration.__all__)


@pytest.mark.parametrize("name", SELECTORS)
def test_shipped_selectors_pass(name):
    check_action_selector(SELECTORS[name])


@dataclass
class Changed(ActionSelector):
    """The greedy selection, changed by a function of (confidence set, action sets, selection)."""

    change: object

    def __call__(self, confidence_set, action_sets):
        selection = exploration.Greedy()(confidence_set, action_sets)
        return self.change(confidence_set, action_sets, selection)


def unavailable_actions(confidence_set, action_sets, selection):
    actions = action_sets.available.to(torch.int8).argmin(1)
    values = action_sets.values_of(confidence_set.center).gather(1, actions[:, None]).squeeze(1)
    return replace(selection, actions=actions, values=values)


def worst_actions(confidence_set, action_sets, selection):
    values = action_sets.values_of(confidence_set.center)
    actions = values.masked_fill(~action_sets.available, torch.inf).argmin(1)
    return replace(selection, actions=actions, values=values.gather(1, actions[:, None])[:, 0])


def far_function(confidence_set, action_sets, selection):
    far = confidence_set.center.with_heads(confidence_set.center.heads + 100)
    inputs = action_sets.inputs_of(selection.actions)
    return replace(selection, function=far, values=far.values(inputs, action_sets.tasks))


def changed_data(confidence_set, action_sets, selection):
    confidence_set.data.targets.add_(1.0)
    return selection


COUNTER = iter(range(1000))

BROKEN_SELECTORS = {
    "not available": unavailable_actions,
    "outside the confidence set": far_function,
    "less than the": worst_actions,
    "not those of the function": lambda c, a, s: replace(s, values=s.values + 1),
    "must return a function": lambda c, a, s: replace(s, function=None),
    "two different": lambda c, a, s: replace(s, function=None, values=s.values + next(COUNTER)),
    "changed the confidence set": changed_data,
    "squared_radius": lambda c, a, s: replace(s, squared_radius=c.squared_radius + 1),
    "shape of the actions": lambda c, a, s: replace(s, function=None, values=s.values[:1]),
    "integers": lambda c, a, s: replace(s, actions=s.actions.double()),
}


@pytest.mark.parametrize("message", BROKEN_SELECTORS)
def test_a_broken_selector_fails(message):
    with pytest.raises(CheckError, match=message):
        check_action_selector(Changed(BROKEN_SELECTORS[message]))


def test_a_selector_that_claims_less_may_do_less():
    class Modest(Changed):
        returns_member = False
        is_optimistic = False

    check_action_selector(Modest(far_function))
    check_action_selector(Modest(worst_actions))


# Fits.


def network(input_dim: int = 4) -> nn.Module:
    """The same network at every call, built without torch's global generator."""
    module = nn.utils.skip_init(nn.Linear, input_dim, 2, dtype=torch.float64)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.linspace(-1, 1, parameter.numel()).view_as(parameter))
    return module


FITS = {
    "Exhaustive": (Exhaustive(FiniteClass(ROTATIONS)), ROTATIONS[0], True),
    "AdamFit": (AdamFit(epochs=2), NeuralRepresentation(network()), False),
    "VariableProjection": (FEW_STEPS, NeuralRepresentation(network()), False),
    "Alternating": (Alternating(), ROTATIONS[0], True),
}


def test_no_exported_fit_is_left_out():
    exported = {
        name
        for name in estimation.__all__
        if "penalty" in getattr(getattr(estimation, name).__call__, "__annotations__", {})
    }
    assert exported == set(FITS)


@pytest.mark.parametrize("name", FITS)
def test_shipped_fits_pass(name):
    fit, representation, decreases_error = FITS[name]
    check_fit(fit, representation, decreases_error=decreases_error)


def best(data, start, penalty):
    return best_on(start.representation, data, start, penalty)


def fit_that_changes_the_start(data, start, penalty, generator):
    start.representation.module.weight.data.add_(0.1)
    return best(data, start, penalty)


def fit_with_other_heads(data, start, penalty, generator):
    fitted = best(data, start, penalty)
    return fitted.with_heads(fitted.heads * 1.01)


def fit_that_draws_globally(data, start, penalty, generator):
    torch.rand(1)
    return best(data, start, penalty)


def fit_that_counts(data, start, penalty, generator):
    module = network()
    module.weight.data.mul_(1 + next(COUNTER))
    return best_on(NeuralRepresentation(module), data, start, penalty)


def fit_with_another_offset(data, start, penalty, generator):
    return best(data, replace(start, offset=0.0), penalty)


def fit_of_a_poor_representation(data, start, penalty, generator):
    module = network()
    module.weight.data.mul_(1e-9)
    module.bias.data.zero_()
    return best_on(NeuralRepresentation(module), data, start, penalty)


BROKEN_FITS = {
    "changed the data or the start": fit_that_changes_the_start,
    "not the minimisers": fit_with_other_heads,
    "global generator": fit_that_draws_globally,
    "two fits with equal generators": fit_that_counts,
    "offset or the value range": fit_with_another_offset,
    "larger than the": fit_of_a_poor_representation,
}


@pytest.mark.parametrize("message", BROKEN_FITS)
def test_a_broken_fit_fails(message):
    with pytest.raises(CheckError, match=message):
        check_fit(BROKEN_FITS[message], NeuralRepresentation(network()))


# Radii.


LEMMA = {
    "num_tasks": 3,
    "feature_dim": 2,
    "log_covering_number": 4.0,
    "cover_scale": 0.01,
    "failure_probability": 0.1,
}


@pytest.mark.parametrize(
    "radius",
    [
        ConstantRadius(2.0),
        LogRadius(),
        ScaledRadius(LogRadius(), 3.0),
        PrintedRadius(**LEMMA),
        CorrectedRadius(**LEMMA, noise_scale=0.5, ridge=0.7),
    ],
    ids=lambda radius: type(radius).__name__,
)
def test_shipped_radii_pass(radius):
    check_squared_radius(radius)


@pytest.mark.parametrize(
    ("radius", "message"),
    [
        (lambda t: -1.0, "not negative"),
        (lambda t: math.nan, "finite"),
        (lambda t: math.inf if t == 700 else 1.0, "round 700"),
        (lambda t: "1", "'1'"),
        (lambda t: float(next(COUNTER)), "changes between calls"),
    ],
)
def test_a_broken_radius_fails(radius, message):
    with pytest.raises(CheckError, match=message):
        check_squared_radius(radius, num_rounds=800 if message == "round 700" else 5)


# Bandit agents. `tests/runs/test_config.py` runs the check on all registered agents.


def finite_agent(**options) -> GFUCB:
    return GFUCB(3, FiniteClass(ROTATIONS), **options)


BANDIT_AGENTS = {
    "GFUCB": lambda: finite_agent(),
    "EpsilonGreedy": lambda: EpsilonGreedy(finite_agent(), epsilon=0.5),
    "Grouped": lambda: bandits.Grouped(3, lambda tasks, seed: GFUCB(tasks, FiniteClass(ROTATIONS))),
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
    assert set(bandits.__all__) - {"BatchedAgents"} == set(BANDIT_AGENTS)


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
    ],
    ids=["images", "finite", "linear"],
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
    r"\[task, action\]": lambda r, i: replace(r, candidates=r.candidates[:1]),
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


def test_an_environment_without_a_seed_fails():
    with pytest.raises(CheckError, match="seed has no effect"):
        check_bandit_environment(lambda seed: environments.finite_bandit(seed=0))


# Episodic agents.

ONE_HOT = FiniteClass([IdentityRepresentation()])

EPISODIC_AGENTS = {
    "EpisodicGFUCB": lambda: episodic.EpisodicGFUCB(2, 3, ONE_HOT),
    "EpisodicGFUCB, network": lambda: episodic.EpisodicGFUCB(2, 2, network(6), fit=FEW_STEPS),
    "EpisodicGFUCB, literal": lambda: episodic.EpisodicGFUCB(2, 3, ONE_HOT, backup="literal"),
    "EpisodicGFUCB, joint": lambda: episodic.EpisodicGFUCB(2, 2, ONE_HOT, backup="joint"),
    "EpisodicEpsilonGreedy": lambda: episodic.EpisodicEpsilonGreedy(
        episodic.LSVIUCB(2, 3), epsilon=0.5
    ),
    "IndependentEpisodicAgents": lambda: episodic.IndependentEpisodicAgents(
        2, lambda seed: episodic.UCBVI(1, 3)
    ),
    "LSVIUCB": lambda: episodic.LSVIUCB(2, 3),
    "UCBVI": lambda: episodic.UCBVI(2, 3),
    "fitted_q": lambda: episodic.fitted_q(2, 3, ONE_HOT),
    "lsvi_ucb": lambda: episodic.lsvi_ucb(2, 3),
    "randomised_lsvi": lambda: episodic.randomised_lsvi(2, 3),
}


def test_no_exported_episodic_agent_is_left_out():
    assert {name.split(",")[0] for name in EPISODIC_AGENTS} == set(episodic.__all__)


@pytest.mark.parametrize("name", EPISODIC_AGENTS)
def test_shipped_episodic_agents_pass(name):
    check_episodic_agent(EPISODIC_AGENTS[name])


class PlansWhenItDecides(episodic.UCBVI):
    def decide(self, stage, candidates, tasks=None):
        self.plan(candidates, tasks)
        return super().decide(stage, candidates, tasks)


class PlansWhenItObserves(episodic.UCBVI):
    def observe(self, stage, decision, rewards, next_candidates=None, ended=None):
        super().observe(stage, decision, rewards, next_candidates, ended)
        self.plan(decision.inputs[:, None], decision.tasks)


class LearnsEpisodesBeforeItRefuses(episodic.UCBVI):
    def observe(self, stage, decision, rewards, next_candidates=None, ended=None):
        self.plan_index += 1
        super().observe(stage, decision, rewards, next_candidates, ended)
        self.plan_index -= 1


class AcceptsAnyTransition(episodic.UCBVI):
    def observe(self, stage, decision, rewards, next_candidates=None, ended=None):
        rewards = torch.as_tensor(rewards).nan_to_num(0.0)
        super().observe(stage, decision, rewards, next_candidates, ended)


class ForgetsItsPlan(episodic.UCBVI):
    def load_state(self, state):
        super().load_state(state)
        self.plan_index = 0


class ForgetsItsSamples(episodic.UCBVI):
    def load_state(self, state):
        self.plan_index = int(state["plan_index"])


class RandomByCount(episodic.UCBVI):
    is_markov = False
    count = 0

    def decide(self, stage, candidates, tasks=None):
        RandomByCount.count += 1
        decision = super().decide(stage, candidates, tasks)
        actions = torch.full_like(decision.actions, RandomByCount.count % 2)
        inputs = candidates[torch.arange(len(actions)), actions]
        return replace(decision, actions=actions, inputs=inputs)


class ReturnsOtherTasks(episodic.UCBVI):
    def decide(self, stage, candidates, tasks=None):
        decision = super().decide(stage, candidates, tasks)
        return replace(decision, tasks=decision.tasks.flip(0))


class IsNotMarkov(episodic.UCBVI):
    def __init__(self, *sizes):
        super().__init__(*sizes)
        self.seen = 0

    def observe(self, stage, decision, rewards, next_candidates=None, ended=None):
        super().observe(stage, decision, rewards, next_candidates, ended)
        self.seen += 1

    def decide(self, stage, candidates, tasks=None):
        decision = super().decide(stage, candidates, tasks)
        actions = torch.full_like(decision.actions, self.seen % 2)
        inputs = candidates[torch.arange(len(actions)), actions]
        return replace(decision, actions=actions, inputs=inputs)


BROKEN_EPISODIC_AGENTS = {
    "decide changed what": PlansWhenItDecides,
    "without a call of plan": PlansWhenItObserves,
    "changed the agent": LearnsEpisodesBeforeItRefuses,
    "NaN rewards were accepted": AcceptsAnyTransition,
    "plan_index 0 instead": ForgetsItsPlan,
    "restored agent decides": ForgetsItsSamples,
    "decided differently": RandomByCount,
    "tasks and inputs of a decision": ReturnsOtherTasks,
    "without a new plan": IsNotMarkov,
}


@pytest.mark.parametrize("message", BROKEN_EPISODIC_AGENTS)
def test_a_broken_episodic_agent_fails(message):
    with pytest.raises(CheckError, match=message):
        check_episodic_agent(lambda: BROKEN_EPISODIC_AGENTS[message](2, 3))


# Episodic environments.

EPISODIC_ENVIRONMENTS = {
    "linear": lambda seed: environments.linear_mdps(seed=seed),
    "rich lock": lambda seed: environments.rich_lock(seed=seed),
    "tabular lock": lambda seed: environments.tabular_lock(seed=seed),
}


@pytest.mark.parametrize("name", EPISODIC_ENVIRONMENTS)
def test_shipped_episodic_environments_pass(name):
    check_episodic_environment(EPISODIC_ENVIRONMENTS[name])


def test_gymnasium_environments_pass():
    gymnasium = pytest.importorskip("gymnasium")
    from gfucb.environments.gymnasium import GymnasiumMDPs

    def make(seed):
        lakes = [gymnasium.make("FrozenLake-v1", is_slippery=slip) for slip in (False, True)]
        return GymnasiumMDPs(lakes, horizon=8, seed=seed)

    check_episodic_environment(make)


class ChangedEpisodes:
    """A tabular lock with a change of its outcomes, or of its episodes."""

    def __init__(self, seed, change_outcome=None, change_episode=None):
        self.inner = environments.tabular_lock(seed=seed)
        self.num_tasks, self.num_actions = self.inner.num_tasks, self.inner.num_actions
        self.horizon = self.inner.horizon
        self.change_outcome, self.change_episode = change_outcome, change_episode

    def episode(self, episode_index):
        episode = self.inner.episode(episode_index)
        if self.change_outcome:
            play = episode.play
            episode.play = lambda actions: self.change_outcome(play(actions))
        if self.change_episode:
            self.change_episode(episode)
        return episode

    def describe(self):
        return {}


def without_refusal(episode):
    play, (tasks, _) = episode.play, episode.offered()
    episode.play = lambda actions: play(actions[: len(tasks)].clamp(0, 1))


def offer_other_candidates(episode):
    offered = episode.offered
    episode.offered = lambda: (offered()[0], offered()[1] + next(COUNTER))


BROKEN_EPISODES = {
    "booleans": {"change_outcome": lambda o: replace(o, ended=o.ended.double())},
    "finite numbers": {"change_outcome": lambda o: replace(o, rewards=o.rewards * math.nan)},
    "next candidates must": {
        "change_outcome": lambda o: replace(o, next_candidates=o.next_candidates[:, :1])
    },
    "continues after": {"change_outcome": lambda o: replace(o, ended=torch.zeros_like(o.ended))},
    "different after other": {
        "change_outcome": lambda o: replace(o, rewards=o.rewards + next(COUNTER))
    },
    "candidates of the next stage": {"change_episode": offer_other_candidates},
    "were accepted": {"change_episode": without_refusal},
}


@pytest.mark.parametrize("message", BROKEN_EPISODES)
def test_a_broken_episodic_environment_fails(message):
    with pytest.raises(CheckError, match=message):
        check_episodic_environment(lambda seed: ChangedEpisodes(seed, **BROKEN_EPISODES[message]))


def test_an_episodic_environment_without_a_seed_fails_unless_declared():
    def make(seed):
        return environments.tabular_lock(seed=0)

    with pytest.raises(CheckError, match="seed has no effect"):
        check_episodic_environment(make)
    check_episodic_environment(make, depends_on_seed=False)
