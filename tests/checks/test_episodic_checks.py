"""Checks of episodic agents and environments: shipped ones pass, broken ones fail."""

import math
from dataclasses import replace

import pytest
import torch
from check_cases import COUNTER, FEW_STEPS, network

import gfucb
from gfucb import (
    FiniteClass,
    environments,
    episodic,
)
from gfucb.checks import (
    CheckError,
    check_episodic_agent,
    check_episodic_environment,
)
from gfucb.models import IdentityRepresentation

# Episodic agents.

ONE_HOT = FiniteClass([IdentityRepresentation()])

EPISODIC_AGENTS = {
    "EpisodicGFUCB, default": lambda: episodic.EpisodicGFUCB(2, 3, value_range=(0, 3)),
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


EVALUATION = {
    "EpisodeBatch",
    "GreedyEvaluation",
    "SolvedCriterion",
    "evaluate_greedy",
    "greedy_policy",
}


def test_no_exported_episodic_agent_is_left_out():
    agents = set(episodic.__all__) - EVALUATION
    assert {name.split(",")[0] for name in EPISODIC_AGENTS} == agents


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
    "combination lock": lambda seed: environments.combination_lock(seed=seed, num_tasks=2),
    "linear": lambda seed: environments.linear_mdps(seed=seed),
    "rich lock": lambda seed: environments.rich_lock(seed=seed),
    "simplex lock": lambda seed: environments.combination_lock(4, temperature=0.2, seed=seed),
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


def test_what_is_no_function_and_what_is_no_episodic_agent_is_named():
    with pytest.raises(CheckError, match=r"a function that returns a new agent, .* got UCBVI"):
        check_episodic_agent(episodic.UCBVI(1, 2))
    with pytest.raises(CheckError, match="no horizon and no is_markov and no plan_index"):
        check_episodic_agent(lambda: gfucb.GFUCB(1))
    with pytest.raises(CheckError, match=r"from the seed to an environment, .* got TabularMDPs"):
        check_episodic_environment(environments.tabular_lock(seed=0))
