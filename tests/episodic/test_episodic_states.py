"""States of episodic agents: continuation, refused states, complete settings."""

import numpy as np
import pytest
import torch
from episodic_cases import (
    BACKUPS,
    ONE_HOT,
    check_continuation,
    small_network,
    states_equal,
    trained,
)

import gfucb
from gfucb import ConstantRadius, EpisodicGFUCB, FiniteClass, LastLayer, LinearClass, NeuralClass
from gfucb.core.errors import InvalidInputError, SavedStateError
from gfucb.environments import linear_mdps
from gfucb.episodic import LSVIUCB, UCBVI, EpisodicEpsilonGreedy, IndependentEpisodicAgents
from gfucb.episodic.backups import RandomisedBackup

CLASSES = {
    "finite": lambda environment: environment.representation_class,
    "linear": lambda environment: LinearClass(8, 3),
    "network": lambda environment: NeuralClass(small_network(8)),
    "default network": lambda environment: None,
}


@pytest.mark.slow
@pytest.mark.parametrize("known", CLASSES)
@pytest.mark.parametrize("share_stages", [False, True])
def test_every_class_continues_from_its_state(tmp_path, known, share_stages):
    environment = linear_mdps(num_tasks=2, horizon=3, num_states=5, num_actions=3, seed=4)

    def make():
        return EpisodicGFUCB(
            2,
            3,
            CLASSES[known](environment),
            seed=1,
            fit=gfucb.VariableProjection(steps=3) if "network" in known else None,
            share_stages=share_stages,
            next_targets=2,
        )

    check_continuation(make, environment, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("backup", BACKUPS)
@pytest.mark.parametrize("replan", ["determinant", "doubling", "every"])
def test_every_backup_continues_from_its_state(tmp_path, backup, replan):
    environment = linear_mdps(num_tasks=2, horizon=2, num_states=4, num_representations=3, seed=4)

    def make():
        known = environment.representation_class
        return EpisodicGFUCB(2, 2, known, backup=backup, replan=replan, seed=1)

    check_continuation(make, environment, tmp_path)


@pytest.mark.parametrize(
    "make",
    [
        lambda: EpisodicGFUCB(1, 3, ONE_HOT),
        lambda: LSVIUCB(1, 3),
        lambda: UCBVI(1, 3),
        lambda: IndependentEpisodicAgents(2, lambda seed: EpisodicGFUCB(1, 3, ONE_HOT)),
    ],
    ids=["gfucb", "lsvi", "ucbvi", "copies"],
)
def test_agent_with_an_empty_stage_is_restored(make, tmp_path):
    agent, other = make(), make()
    action_sets = torch.eye(3, dtype=torch.float64).expand(agent.num_tasks, 3, 3)
    agent.plan(action_sets)
    for _ in range(3):  # episodes that end after the first stage
        decision = agent.decide(0, action_sets)
        ended = torch.ones(agent.num_tasks, dtype=torch.bool)
        agent.observe(0, decision, torch.ones(agent.num_tasks), None, ended)
    agent.plan(action_sets)
    gfucb.save(agent, tmp_path / "agent")
    gfucb.restore(other, tmp_path / "agent")
    for stage in range(3):
        expected, found = agent.decide(stage, action_sets), other.decide(stage, action_sets)
        assert torch.equal(found.actions, expected.actions)
        torch.testing.assert_close(found.optimistic_values, expected.optimistic_values)


@pytest.mark.slow
def test_joint_members_are_restored_within_an_episode():
    environment = linear_mdps(num_tasks=2, horizon=3, num_states=5, num_actions=3, seed=4)
    agent, _ = trained("joint", episodes=6, environment=environment)
    restored = EpisodicGFUCB(
        2,
        3,
        environment.representation_class,
        backup="joint",
        seed=1,
        squared_radius=ConstantRadius(0.2),
    )
    episode = environment.episode(7)
    agent.plan(episode.offered()[1])
    decision = agent.decide(0, episode.offered()[1])
    outcome = episode.play(decision.actions)
    agent.observe(0, decision, outcome.rewards, outcome.next_candidates, outcome.ended)
    restored.load_state(agent.state())
    for stage in (1, 2):
        candidates = environment.inputs
        tasks = torch.zeros(environment.num_states, dtype=torch.int64)
        expected, found = (a.decide(stage, candidates, tasks) for a in (agent, restored))
        assert torch.equal(found.actions, expected.actions)
        torch.testing.assert_close(found.optimistic_values, expected.optimistic_values)
    fit_values = restored.plans[1].clip(restored.plans[1].center.values(candidates[:, 0], tasks))
    assert not torch.allclose(fit_values, found.optimistic_values)


def test_transitions_before_the_first_plan_are_saved():
    agent, other = EpisodicGFUCB(1, 2, ONE_HOT), EpisodicGFUCB(1, 2, ONE_HOT)
    inputs = torch.eye(3, dtype=torch.float64)
    decision = gfucb.Decision(torch.tensor([0]), torch.tensor([0]), inputs[:1], torch.zeros(1))
    agent.observe(0, decision, [0.5], inputs[None])
    other.load_state(agent.state())
    assert len(other.buffers[0]) == 1 and states_equal(agent.state(), other.state())
    assert not other.plans


def test_a_new_state_replaces_the_old_one():
    agent, environment = trained(episodes=3)
    new, _ = trained(episodes=0)
    agent.load_state(new.state())
    assert agent.state() == {} and agent.diagnostics() == {"plans": 0, "fits": 0}
    with pytest.raises(InvalidInputError, match="no plan yet"):
        agent.decide(0, environment.episode(1).offered()[1])


# -- Settings -----------------------------------------------------------------------------------


def network(activation):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return NeuralClass(torch.nn.Sequential(torch.nn.Linear(3, 2), activation))


class Scaled:
    """A representation with a parameter."""

    def __init__(self, factor):
        self.factor = factor

    def __call__(self, inputs):
        return self.factor * inputs


def gfucb_with(**options):
    return lambda: EpisodicGFUCB(1, 2, **({"representation": ONE_HOT} | options))


DIFFERENCES = [
    ({"squared_radius": ConstantRadius(0.1)}, {"squared_radius": ConstantRadius(50.0)}, "radius"),
    ({"backup": RandomisedBackup(1)}, {"backup": RandomisedBackup(3)}, "backup"),
    ({"backup": "literal"}, {"backup": "literal", "action_selector": LastLayer()}, "backup"),
    (
        {"representation": FiniteClass([Scaled(1.0), Scaled(2.0)])},
        {"representation": FiniteClass([Scaled(2.0), Scaled(1.0)])},
        "representation",
    ),
    (
        {"representation": network(torch.nn.Tanh())},
        {"representation": network(torch.nn.ReLU())},
        "representation",
    ),
    (
        {"representation": None, "fit": gfucb.VariableProjection(steps=2)},
        {"representation": None, "fit": gfucb.VariableProjection(steps=3)},
        "fit",
    ),
    ({"replan_growth": 2.0}, {"replan_growth": 3.0}, "replan"),
    ({"replan": "every"}, {"replan": "doubling"}, "replan"),
    ({"refit_growth": 2.0}, {"refit_growth": 3.0}, "refit_growth"),
    ({"reward_range": (0.0, 0.5)}, {"reward_range": None}, "value_ranges"),
    ({"head_norm_bound": 1.0}, {}, "head_norm_bound"),
    ({"warm_start": False}, {}, "warm_start"),
    ({"next_targets": 1}, {}, "next_targets"),
    ({"reward_weight": 1.0}, {}, "reward_weight"),
    ({"share_stages": True}, {}, "share_stages"),
    ({"offset": 0.5}, {}, "offset"),
    ({"seed": 1}, {}, "seed"),
]


@pytest.mark.parametrize(("saved", "other", "name"), DIFFERENCES)
def test_an_agent_with_other_settings_is_refused_by_name(tmp_path, saved, other, name):
    check_refused(gfucb_with(**saved), gfucb_with(**other), name, tmp_path)


def test_equal_numbers_of_different_types_are_the_same_setting():
    plain = gfucb_with(seed=3, replan_growth=2.0, offset=0.0, reward_weight=1.0, ridge=1.0)()
    numpy_numbers = gfucb_with(
        seed=np.int64(3), replan_growth=2, offset=np.float64(0), reward_weight=1, ridge=np.int64(1)
    )()
    assert plain.settings() == numpy_numbers.settings()


def epsilon_greedy(epsilon=0.1, seed=0, beta=0.3):
    return EpisodicEpsilonGreedy(LSVIUCB(1, 2, beta=beta), epsilon=epsilon, seed=seed)


def independent(beta=0.3):
    return IndependentEpisodicAgents(2, lambda seed: LSVIUCB(1, 2, beta=beta))


@pytest.mark.parametrize(
    ("make", "make_other", "name"),
    [
        (lambda: LSVIUCB(1, 2, beta=0.1), lambda: LSVIUCB(1, 2, beta=0.2), "beta"),
        (lambda: LSVIUCB(1, 2, ridge=0.1), lambda: LSVIUCB(1, 2, ridge=0.2), "ridge"),
        (lambda: LSVIUCB(1, 2), lambda: LSVIUCB(1, 3), "horizon"),
        (lambda: UCBVI(1, 2, bonus=1.0), lambda: UCBVI(1, 2, bonus=2.0), "bonus"),
        (epsilon_greedy, lambda: epsilon_greedy(epsilon=0.2), "epsilon"),
        (epsilon_greedy, lambda: epsilon_greedy(seed=1), "exploration_seed"),
        (epsilon_greedy, lambda: epsilon_greedy(beta=0.2), "agent.beta"),
        (independent, lambda: independent(beta=0.2), "agent.beta"),
    ],
)
def test_a_baseline_with_other_settings_is_refused_by_name(tmp_path, make, make_other, name):
    check_refused(make, make_other, name, tmp_path)


def check_refused(make, make_other, name, tmp_path):
    agent, other = make(), make_other()
    candidates = torch.eye(3, dtype=torch.float64).expand(agent.num_tasks, 3, 3)
    agent.plan(candidates)
    gfucb.save(agent, tmp_path / "agent")
    before = other.state()
    with pytest.raises(SavedStateError, match=name):
        gfucb.restore(other, tmp_path / "agent")
    assert states_equal(other.state(), before)
    same = make()
    gfucb.restore(same, tmp_path / "agent")
    assert states_equal(same.state(), agent.state())
