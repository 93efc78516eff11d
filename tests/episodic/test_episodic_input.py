"""What episodic agents are called with: refused before anything changes."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from episodic_cases import ONE_HOT, states_equal, trained

import gfucb
from gfucb import ConstantRadius, Decision, EpisodicGFUCB
from gfucb.core.errors import InvalidInputError, UnknownNameError
from gfucb.episodic import LSVIUCB, UCBVI, EpisodicEpsilonGreedy, IndependentEpisodicAgents


def test_invalid_input_is_refused_before_any_change():
    agent, environment = trained(episodes=3)
    candidates = environment.episode(9).offered()[1]
    decision = agent.decide(0, candidates)
    before = agent.state()
    cases = [
        (lambda: agent.observe(3, decision, [0, 0]), "numbered 0 to 2"),
        (lambda: agent.observe(0, decision, [0.0]), r"shape \[2\]"),
        (lambda: agent.observe(0, decision, [0.0, float("nan")], candidates), "finite"),
        (lambda: agent.observe(0, decision, [0.0, 0.0]), "needs next_candidates"),
        (lambda: agent.observe(0, decision, [0.0, 0.0], candidates[:, :, :3]), "next_candidates"),
        (lambda: agent.observe(0, decision, [0.0, 0.0], candidates * np.inf), "finite"),
        (lambda: agent.observe(0, decision, [0, 0], candidates, [0, 1]), "booleans"),
        (lambda: agent.observe(0, decision, [0, 0], candidates, [[True], [True, False]]), "ended"),
        (lambda: agent.observe(0, "all", [0, 0], candidates), "a Decision, got str"),
        (lambda: agent.decide(-1, candidates), "numbered 0 to 2"),
        (lambda: agent.decide(0, candidates[:1]), "one row for each of the 2 tasks"),
    ]
    for act, message in cases:
        with pytest.raises(InvalidInputError, match=message):
            act()
    after = agent.state()
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_invalid_settings_are_refused():
    with pytest.raises(UnknownNameError, match="joint, literal, pointwise, randomised"):
        EpisodicGFUCB(1, 2, backup="optimistic")
    for options, message in [
        ({"horizon": 0}, "horizon"),
        ({"replan": "never"}, "determinant"),
        ({"replan_growth": 1.0}, "above 1"),
        ({"value_range": (1, 0)}, "low < high"),
    ]:
        with pytest.raises(InvalidInputError, match=message):
            EpisodicGFUCB(**({"num_tasks": 1, "horizon": 2} | options))
    with pytest.raises(InvalidInputError, match="no plan yet"):
        EpisodicGFUCB(1, 2).decide(0, torch.rand(1, 2, 3, generator=torch.Generator()))


@pytest.mark.parametrize("make", [lambda: EpisodicGFUCB(1, 3, ONE_HOT), lambda: LSVIUCB(1, 3)])
def test_other_shapes_are_refused_before_any_change(make):
    agent, action_sets = make(), torch.eye(3, dtype=torch.float64)[None]
    agent.plan(action_sets)
    decision = agent.decide(0, action_sets)
    agent.observe(0, decision, [1.0], action_sets)
    before = agent.state()
    with pytest.raises(InvalidInputError, match="pad action sets to one length"):
        agent.observe(0, decision, [1.0], action_sets[:, :2])
    longer = Decision(decision.tasks, decision.actions, torch.rand(1, 4), torch.zeros(1))
    with pytest.raises(InvalidInputError, match="has learned from"):
        agent.observe(0, longer, [1.0], torch.rand(1, 3, 4))
    for ask in (
        lambda: agent.plan(torch.rand(1, 3, 7)),
        lambda: agent.decide(0, torch.rand(1, 3, 7)),
    ):
        with pytest.raises(InvalidInputError, match="has planned for inputs"):
            ask()
    after = agent.state()
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)
    agent.plan(action_sets)


@pytest.mark.parametrize(
    ("first", "following", "message"),
    [
        (torch.int64, torch.full((1, 3, 4), 0.5), "float32 .* int64, which cannot hold 0.5"),
        (torch.uint8, torch.full((1, 3, 4), 300), "int64 .* uint8, which cannot hold 300"),
        (torch.float16, torch.full((1, 3, 4), 1e6), "float32 .* float16, which cannot hold 1000"),
    ],
)
def test_observations_that_their_type_would_change_are_refused(first, following, message):
    candidates = torch.ones(1, 3, 4, dtype=first)
    for agent in (EpisodicGFUCB(1, 3), UCBVI(1, 3)):
        agent.plan(candidates)
        decision = agent.decide(0, candidates)
        with pytest.raises(InvalidInputError, match=message):
            agent.observe(0, decision, [0.0], following)
        agent.observe(0, decision, [0.0], following, True)  # the episode of the only row has ended
        agent.observe(0, decision, [0.0], torch.full((1, 3, 4), 2.0))


def gfucb_with(**options):
    return lambda: EpisodicGFUCB(**({"num_tasks": 1, "horizon": 2} | options))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (gfucb_with(squared_radius=3.0), "squared_radius must be a function of the episode"),
        (gfucb_with(squared_radius=0.0), "squared_radius must be a function of the episode"),
        (gfucb_with(squared_radius=ConstantRadius), "pass an instance, such as ConstantRadius"),
        (
            gfucb_with(squared_radius=gfucb.CalibratedRadius(initial_radius=0.2)),
            "squared_radius must be",
        ),
        (gfucb_with(backup=3), "backup, if not one of .*'pointwise'.* got 3"),
        (gfucb_with(backup=None), "backup, if not one of"),
        (gfucb_with(fit="adam"), "fit must be a least-squares fit, .* got 'adam'"),
        (gfucb_with(action_selector="last"), "action_selector must be .* got 'last'"),
        (gfucb_with(representation="tree"), "representation must be a torch module"),
        (gfucb_with(seed=None), "seed must be an integer, .* got None"),
        (gfucb_with(seed=1.5), "seed must be an integer, .* got 1.5"),
        (gfucb_with(replan=2), "replan must be 'determinant', 'doubling' or 'every', got 2"),
        (gfucb_with(replan_growth="2"), "replan_growth must be a finite number above 1, got '2'"),
        (gfucb_with(refit_growth=0.5), "refit_growth must be a number of at least 1, got 0.5"),
        (gfucb_with(ridge=1e-300), "ridge must be"),
        (gfucb_with(ridge="0.1"), "ridge must be"),
        (gfucb_with(head_norm_bound=-1.0), "norm_bound"),
        (gfucb_with(offset=float("nan")), "offset must be a finite number, got nan"),
        (gfucb_with(share_stages="yes"), "share_stages must be True or False, got 'yes'"),
        (gfucb_with(warm_start=1), "warm_start must be True or False, got 1"),
        (gfucb_with(next_targets=1.5), "next_targets must be an integer of at least 0, got 1.5"),
        (gfucb_with(reward_weight=-1.0), "reward_weight must be"),
        (gfucb_with(value_range=3), "value_range must be"),
        (lambda: LSVIUCB(1, 2, ridge=0.0), "ridge must be"),
        (lambda: LSVIUCB(1, 2, beta="0.3"), "beta must be"),
        (lambda: UCBVI(1, 2, bonus=None), "bonus must be"),
        (lambda: gfucb.episodic.lsvi_ucb(1, 2, beta=-1.0), "beta must be"),
        (lambda: gfucb.episodic.randomised_lsvi(1, 2, noise_scale=-1.0), "noise_scale must be"),
        (lambda: gfucb.episodic.fitted_q(1, 2, epsilon=2.0), "epsilon must be"),
        (lambda: EpisodicEpsilonGreedy(3), "agent must be an object with the methods plan"),
        (lambda: EpisodicEpsilonGreedy(UCBVI(1, 2), seed=None), "seed must be an integer"),
        (lambda: IndependentEpisodicAgents(2, 3), "make_agent must be a function"),
        (lambda: IndependentEpisodicAgents(2, lambda seed: 3), "the result of make_agent must be"),
        (lambda: IndependentEpisodicAgents(2, lambda seed: UCBVI(2, 2)), "for one task"),
        (lambda: gfucb.episodic.backups.RandomisedBackup(0), "num_samples must be"),
    ],
)
def test_arguments_of_a_wrong_type_are_refused_at_construction(make, message):
    with pytest.raises(InvalidInputError, match=message):
        make()


AGENTS = {
    "gfucb": lambda: EpisodicGFUCB(2, 3, ONE_HOT),
    "lsvi": lambda: LSVIUCB(2, 3),
    "ucbvi": lambda: UCBVI(2, 3),
    "epsilon": lambda: EpisodicEpsilonGreedy(LSVIUCB(2, 3), epsilon=0.5),
    "independent": lambda: IndependentEpisodicAgents(2, lambda seed: LSVIUCB(1, 3)),
}
CANDIDATES = torch.eye(3, dtype=torch.float64).expand(2, 3, 3)


def planned(name):
    agent = AGENTS[name]()
    agent.plan(CANDIDATES)
    return agent, agent.decide(0, CANDIDATES)


@pytest.mark.parametrize("name", AGENTS)
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"inputs": torch.zeros(1, 3, dtype=torch.float64)}, "inputs"),
        ({"inputs": torch.full((2, 3), torch.nan, dtype=torch.float64)}, "finite"),
        ({"inputs": torch.full((2, 3), 1e200, dtype=torch.float64)}, "magnitude"),
        ({"tasks": torch.tensor([0, 5])}, "numbered 0 to 1"),
        ({"tasks": torch.tensor([0])}, "tasks"),
        ({"actions": torch.tensor([0])}, "actions"),
        ({"optimistic_values": torch.zeros(1)}, "optimistic_values"),
        ({"optimistic_values": torch.tensor([0.0, torch.nan])}, "finite"),
    ],
)
def test_altered_decisions_are_refused_before_any_change(name, change, message):
    agent, decision = planned(name)
    before = agent.state()
    with pytest.raises(InvalidInputError, match=message):
        agent.observe(0, replace(decision, **change), [0.5, 0.5], CANDIDATES)
    assert states_equal(agent.state(), before)


@pytest.mark.parametrize("name", AGENTS)
def test_large_magnitudes_are_refused_before_any_change(name):
    agent, decision = planned(name)
    before = agent.state()
    for rewards, candidates in [([1e30, 0.0], CANDIDATES), ([0.0, 0.0], 1e200 * CANDIDATES)]:
        with pytest.raises(InvalidInputError, match="magnitude"):
            agent.observe(0, decision, rewards, candidates)
    for act in (agent.plan, lambda candidates: agent.decide(0, candidates)):
        with pytest.raises(InvalidInputError, match="magnitude"):
            act(1e200 * CANDIDATES)
    assert states_equal(agent.state(), before)


@pytest.mark.parametrize("name", AGENTS)
def test_decide_changes_nothing(name):
    agent, decision = planned(name)
    before = agent.state()
    for _ in range(3):
        again = agent.decide(0, CANDIDATES)
        assert torch.equal(again.actions, decision.actions)
    assert states_equal(agent.state(), before)


def test_epsilon_greedy_draws_again_after_an_observation():
    agent = EpisodicEpsilonGreedy(UCBVI(2, 3), epsilon=1.0)
    agent.plan(CANDIDATES)
    actions = []
    for _ in range(10):
        decision = agent.decide(0, CANDIDATES)
        actions.append(decision.actions.tolist())
        agent.observe(0, decision, [0.0, 0.0], CANDIDATES)
    assert len({tuple(row) for row in actions}) > 3


def test_a_refused_row_leaves_all_independent_agents_unchanged():
    agent, decision = planned("independent")
    agent.agents[1].observe(0, decision[[0]], [0.5], torch.zeros(1, 4, 3, dtype=torch.float64))
    before = agent.state()
    with pytest.raises(InvalidInputError, match="pad action sets"):
        agent.observe(0, decision, [0.5, 0.5], CANDIDATES)
    assert states_equal(agent.state(), before)


def test_inputs_of_a_plan_must_have_the_shape_of_earlier_observations():
    for name in ("gfucb", "lsvi"):
        agent, (_, decision) = AGENTS[name](), planned(name)
        agent.observe(0, decision, [0.5, 0.5], CANDIDATES)
        with pytest.raises(InvalidInputError, match=r"learned from inputs of shape \[3\]"):
            agent.plan(torch.zeros(2, 3, 7, dtype=torch.float64))


def test_a_failed_plan_does_not_change_the_agent():
    calls = []

    def failing_fit(data, start, penalty, generator):
        calls.append(len(data))
        if len(calls) == 6:  # the first stage of the third plan, after two other stages
            raise InvalidInputError("no fit")
        return start

    agent = EpisodicGFUCB(2, 3, torch.nn.Linear(3, 2), fit=failing_fit, replan="every")
    candidates = CANDIDATES.float()
    for _ in range(2):
        agent.plan(candidates)
        for stage in range(3):
            decision = agent.decide(stage, candidates)
            agent.observe(stage, decision, [0.5, 0.1 * stage], candidates)
        candidates = 1.5 * candidates
    before = agent.state()
    with pytest.raises(InvalidInputError, match="no fit"):
        agent.plan(candidates)
    assert len(calls) == 6
    assert states_equal(agent.state(), before)


def test_repr_is_short():
    for name, make in AGENTS.items():
        text = repr(make())
        assert len(text) < 160 and "0x" not in text, name
    assert repr(EpisodicGFUCB(2, 3)) == (
        "EpisodicGFUCB(num_tasks=2, horizon=3, learned cells, 0 transitions, 0 plans)"
    )


@pytest.mark.parametrize("make", [EpisodicGFUCB, LSVIUCB, UCBVI])
def test_actions_of_a_decision_that_are_no_numbers_of_actions_are_refused(make):
    agent = make(2, 2)
    x = torch.eye(3).repeat(2, 1, 1)
    agent.plan(x)
    decision = agent.decide(0, x)
    for actions in (decision.actions - 5, decision.actions * 0.5):
        with pytest.raises(InvalidInputError, match="numbers of actions from 0"):
            agent.observe(0, replace(decision, actions=actions), [0.0, 1.0], x)


@pytest.mark.parametrize("make", [EpisodicGFUCB, LSVIUCB, UCBVI])
def test_names_of_a_state_that_are_no_texts_are_refused(make):
    with pytest.raises(InvalidInputError, match="texts, got 3"):
        make(2, 2).load_state({3: torch.zeros(1)})
