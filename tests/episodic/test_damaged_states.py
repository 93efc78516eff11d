"""Damaged states are refused with a sentence, and the agent does not change."""

import pytest
import torch
from episodic_cases import ONE_HOT, small_network, states_equal

from gfucb import EpisodicGFUCB, NeuralClass, VariableProjection
from gfucb.core.errors import InvalidInputError
from gfucb.environments import tabular_lock
from gfucb.episodic import LSVIUCB, UCBVI, EpisodicEpsilonGreedy, IndependentEpisodicAgents
from gfucb.runs.loop import play_episode

# Together they take seconds.
pytestmark = pytest.mark.slow

ENVIRONMENT = tabular_lock(horizon=3, num_tasks=2, seed=1)


def with_network():
    fit = VariableProjection(steps=2)
    return EpisodicGFUCB(2, 3, NeuralClass(small_network(6)), fit=fit)


AGENTS = {
    "gfucb": lambda: EpisodicGFUCB(2, 3, ONE_HOT, replan="every"),
    "network": with_network,
    "joint": lambda: EpisodicGFUCB(2, 3, ONE_HOT, backup="joint"),
    "lsvi": lambda: LSVIUCB(2, 3),
    "ucbvi": lambda: UCBVI(2, 3),
    "epsilon": lambda: EpisodicEpsilonGreedy(LSVIUCB(2, 3), epsilon=0.5),
    "independent": lambda: IndependentEpisodicAgents(2, lambda seed: LSVIUCB(1, 3)),
}


def trained_agent(name, episodes=4):
    agent = AGENTS[name]()
    for index in range(1, episodes + 1):
        play_episode(agent, ENVIRONMENT.episode(index), 3, 2)
    return agent


def replaced(name, change):
    return lambda state: state | {name: change(state[name].clone())}


def first_set_to(value):
    def change(tensor):
        tensor.view(-1)[0] = value
        return tensor

    return change


def without(name):
    return lambda state: {key: tensor for key, tensor in state.items() if key != name}


NAN, FAR = float("nan"), 10**6
BUFFER_DAMAGES = [
    (replaced("1/buffer.rewards", first_set_to(NAN)), "rewards.* finite"),
    (replaced("1/buffer.rewards", first_set_to(1e30)), "rewards.* between"),
    (replaced("1/buffer.rewards", lambda t: t[:-1]), "shape"),
    (replaced("1/buffer.rewards", lambda t: t.float()), "float64"),
    (replaced("1/buffer.inputs", first_set_to(NAN)), "inputs.* finite"),
    (replaced("1/buffer.inputs", lambda t: t[:, :2]), "next_observations|different"),
    (replaced("1/buffer.inputs", lambda t: t[:1].expand_as(t).contiguous()), "twice|between"),
    (replaced("1/buffer.inputs.tasks", first_set_to(FAR)), "tasks.* between"),
    (replaced("1/buffer.input_indices", first_set_to(FAR)), "input_indices.* between"),
    (replaced("1/buffer.input_indices", first_set_to(-1)), "input_indices.* between"),
    (replaced("1/buffer.next_indices", first_set_to(FAR)), "next_indices.* between"),
    (replaced("1/buffer.next_indices", first_set_to(-2)), "next_indices.* between"),
    (replaced("1/buffer.next_observations", first_set_to(NAN)), "next_observations.* finite"),
    (without("1/buffer.rewards"), "no tensor 'rewards'"),
    (without("1/buffer.next_observations"), "no tensor 'next_observations'"),
    (lambda state: state | {"1/buffer.extra": torch.zeros(1)}, "unexpected tensor 'extra'"),
    (lambda state: state | {"1/extra": torch.zeros(1)}, "unexpected tensor"),
    (lambda state: state | {"7/buffer.rewards": torch.zeros(1)}, "unexpected tensor"),
    (lambda state: state | {"extra": torch.zeros(1)}, "unexpected tensor 'extra'"),
    (lambda state: [*state], "dictionary of named tensors"),
    (replaced("plan_index", lambda t: t - FAR), "plan_index.* between"),
    (without("plan_index"), "no tensor 'plan_index'"),
]
GAIN_DAMAGES = [
    (replaced("gains", first_set_to(NAN)), "gains.* finite"),
    (replaced("gains", first_set_to(-1.0)), "gains.* between"),
    (replaced("gains", lambda t: t[:1]), "gains.* shape"),
]
GFUCB_DAMAGES = [
    (replaced("2/targets", first_set_to(NAN)), "targets.* finite"),
    (replaced("2/targets", lambda t: torch.cat([t, t])), "targets.* samples"),
    (without("2/targets"), "2/targets"),
    (replaced("2/fit.counters", first_set_to(-1)), "fit.counters.* between"),
    (without("2/fit.counters"), "fit.counters"),
    (replaced("start.candidates", first_set_to(NAN)), "start.candidates.* finite"),
    (replaced("start.candidates", lambda t: t[..., :2]), "start.candidates.* shape"),
    (replaced("start.tasks", first_set_to(FAR)), "start.tasks.* between"),
    (without("start.tasks"), "start.tasks"),
]
PLAN_DAMAGES = [
    (replaced("plan_index", lambda t: t + 2**60), "plan_index.* between"),
]
GFUCB_CHANGES = [
    (replaced("1/targets", first_set_to(0.7)), "'1/targets' of the state do not follow"),
    (replaced("2/targets", first_set_to(1e200)), "'2/targets' of the state do not follow"),
    (replaced("1/targets", lambda t: t[:-1]), "gains' .* not those|do not follow|counters"),
    (replaced("gains", lambda t: 3 * t + 1), "'gains' of the state are not those"),
    (replaced("1/fit.counters", first_set_to(FAR)), "'1/fit.counters' of the state give 1000000"),
    (replaced("1/fit.counters", lambda t: t + FAR), "'1/fit.counters' of the state give"),
    (replaced("start.candidates", lambda t: t.half()), "start.candidates.* must be torch.float"),
    (replaced("start.candidates", lambda t: t.bool()), "start.candidates.* real numbers"),
]
LSVI_CHANGES = [
    (replaced("1/heads", first_set_to(1e90)), "'1/heads' of the state do not follow"),
    (replaced("1/heads", lambda t: t + 1), "'1/heads' of the state do not follow"),
    (replaced("1/inverses", lambda t: 2 * t), "'1/inverses' of the state do not follow"),
    (replaced("gains", lambda t: 3 * t + 1), "'gains' of the state are not those"),
    (replaced("num_samples", lambda t: t + FAR), "'num_samples' of the state gives"),
    (replaced("num_samples", lambda t: t - 1), "do not follow|are not those|between"),
]
UCBVI_CHANGES = [
    (replaced("2/values", first_set_to(0.5)), "'2/values' of the state do not follow"),
    (replaced("2/values", lambda t: t[:-1]), "values of stage 2, but"),
    (replaced("num_samples", lambda t: t + FAR), "'num_samples' of the state gives"),
]
MEMBER = "0/fit.representation.member"
CASES = [
    *(("gfucb", *case) for case in [*BUFFER_DAMAGES, *GAIN_DAMAGES, *GFUCB_DAMAGES]),
    ("gfucb", replaced(MEMBER, lambda t: t + 1), "member"),
    ("gfucb", lambda s: s | {"0/fit.representation.extra": torch.zeros(1)}, "extra"),
    *(("lsvi", *case) for case in [*BUFFER_DAMAGES, *GAIN_DAMAGES]),
    ("lsvi", replaced("2/heads", first_set_to(NAN)), "heads.* finite"),
    ("lsvi", replaced("2/heads", lambda t: t[:, :2]), "shape"),
    ("lsvi", replaced("2/inverses", first_set_to(NAN)), "inverses.* finite"),
    ("lsvi", without("2/heads"), "heads"),
    *(("ucbvi", *case) for case in BUFFER_DAMAGES),
    ("ucbvi", replaced("2/values", first_set_to(NAN)), "values.* finite"),
    ("ucbvi", replaced("2/values", first_set_to(5.0)), "values.* between"),
    ("ucbvi", replaced("2/values", lambda t: torch.cat([t, t])), "values for"),
    *(("gfucb", *case) for case in [*PLAN_DAMAGES, *GFUCB_CHANGES]),
    *(("joint", *case) for case in [*PLAN_DAMAGES, *GFUCB_CHANGES]),
    *(("network", *case) for case in [*PLAN_DAMAGES, *GFUCB_CHANGES]),
    *(("lsvi", *case) for case in [*PLAN_DAMAGES, *LSVI_CHANGES]),
    *(("ucbvi", *case) for case in [*PLAN_DAMAGES, *UCBVI_CHANGES]),
    ("epsilon", replaced("num_observations", lambda t: t - FAR), "num_observations.* between"),
    ("epsilon", replaced("agent/2/heads", first_set_to(NAN)), "heads.* finite"),
    ("epsilon", lambda state: state | {"extra": torch.zeros(1)}, "unexpected tensor 'extra'"),
    ("independent", replaced("1/2/heads", first_set_to(NAN)), "heads.* finite"),
    ("independent", lambda state: state | {"2/extra": torch.zeros(1)}, "unexpected tensor"),
]


@pytest.mark.parametrize(("name", "damage", "message"), CASES)
def test_damaged_state_is_refused_and_the_agent_does_not_change(name, damage, message):
    state, agent = trained_agent(name).state(), trained_agent(name, episodes=2)
    before, candidates = agent.state(), ENVIRONMENT.episode(9).offered()[1]
    decision = agent.decide(0, candidates)
    with pytest.raises(InvalidInputError, match=message):
        agent.load_state(damage(state))
    assert states_equal(agent.state(), before)
    after = agent.decide(0, candidates)
    assert torch.equal(after.actions, decision.actions)
    assert torch.equal(after.optimistic_values, decision.optimistic_values)


def test_weights_that_are_not_finite_are_refused():
    agent = trained_agent("network", episodes=2)
    state = agent.state()
    name = next(name for name in state if name.startswith("1/fit.representation."))
    with pytest.raises(InvalidInputError, match="finite"):
        agent.load_state(replaced(name, first_set_to(NAN))(state))
    assert states_equal(agent.state(), state)


def test_weights_with_which_plans_would_not_be_finite_are_refused():
    agent = trained_agent("network")
    state = agent.state()
    weights = [name for name in state if name.startswith("1/fit.representation.")]
    assert weights
    for name in weights:
        with pytest.raises(InvalidInputError, match=r"do not follow|not finite|infinite|definite"):
            agent.load_state(replaced(name, lambda t: torch.full_like(t, 1e30))(state))
        assert states_equal(agent.state(), state)


@pytest.mark.parametrize("name", AGENTS)
def test_restored_agents_do_not_share_memory_with_the_state(name):
    agent, state = AGENTS[name](), trained_agent(name).state()
    agent.load_state(state)
    before = {key: tensor.clone() for key, tensor in agent.state().items()}
    for tensor in state.values():
        tensor.zero_()
    assert states_equal(agent.state(), before)
