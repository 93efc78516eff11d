"""Settings of episodic agents: refused values, defaults, ranges."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from gfucb.core.errors import InvalidInputError, UnknownNameError
from gfucb.core.validation.settings import validate_pair, validate_ranges
from gfucb.environments import tabular_lock, tabular_mdps
from gfucb.episodic import LSVIUCB, UCBVI, EpisodicGFUCB
from gfucb.episodic.episodic_settings import default_offset
from gfucb.estimation import Exhaustive
from gfucb.models import FiniteClass, IdentityRepresentation
from gfucb.runs import EpisodicAgentConfig, make_agent

NAN = math.nan
ONE_HOT = FiniteClass([IdentityRepresentation()])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: UCBVI(1, 2, bonus=NAN), "bonus must be a finite .* got nan"),
        (lambda: UCBVI(1, 2, bonus=-1.0), "bonus must be a finite number of at least 0, got -1"),
        (lambda: UCBVI(1, 2, value_range=(1, 0)), r"low < high, both finite, got \(1, 0\)"),
        (lambda: UCBVI(1, 2, value_range=(0, NAN)), "value_range"),
        (lambda: UCBVI(1, 2, value_range=3), r"value_range must be \(low, high\), got 3"),
        (lambda: LSVIUCB(1, 2, beta=NAN), "beta must be a finite .* got nan"),
        (lambda: LSVIUCB(1, 2, beta=-0.1), "beta must be a finite number of at least 0"),
        (lambda: LSVIUCB(1, 2, replan_growth=NAN), "replan_growth must be a finite"),
        (lambda: LSVIUCB(1, 2, value_range=(1, 1)), "value_range .* low < high"),
        (lambda: EpisodicGFUCB(1, 2, next_targets=-1), "next_targets must be an integer .* got -1"),
        (lambda: EpisodicGFUCB(1, 2, reward_weight=NAN), "reward_weight must be a finite"),
        (
            lambda: EpisodicGFUCB(2, 10**9),
            "horizon must be at most 100000, .* end",
        ),
        (lambda: EpisodicGFUCB(10**7, 3), "at most 10000000, got 10000000 times 3; divide the"),
        (lambda: EpisodicGFUCB(10**7, 3, ONE_HOT), "num_tasks times horizon must be at most"),
        (lambda: UCBVI(1, 10**9), "horizon must be at most 100000"),
        (lambda: LSVIUCB(10**9, 2), "num_tasks times horizon must be at most"),
        (lambda: validate_pair((0, 1, 2), "reward_range"), r"reward_range must be \(low, high\)"),
        (lambda: validate_ranges((1, 0), None), "value_range .* low < high"),
        (lambda: validate_ranges(None, (1, 0)), "reward_range .* low < high"),
        (lambda: validate_ranges((0, NAN), (0, 1)), "value_range .* both finite"),
        (lambda: validate_ranges((5, 20), (0, 1)), r"must overlap.* leave \(5, 1\)\. Widen"),
        (lambda: validate_ranges((0, 1), (1, 2)), r"must overlap.* leave \(1, 1\)"),
        (lambda: validate_ranges((-5, -2), (0, 1)), "must overlap"),
    ],
)
def test_invalid_settings_are_refused(make, message):
    with pytest.raises(InvalidInputError, match=message):
        make()


def test_overlapping_ranges_are_accepted():
    for value_range, reward_range in [((0, 1), (0, 0.25)), ((0, 1), (0, 1)), ((-2, 3), (-1, 1))]:
        validate_ranges(value_range, reward_range)
        agent = EpisodicGFUCB(1, 4, value_range=value_range, reward_range=reward_range)
        for stage in range(4):
            low, high = agent.range_of(stage)
            assert low < high
    validate_ranges(None, None)
    assert EpisodicGFUCB(1, 2, next_targets=np.int64(3)).fit_settings.next_targets == 3


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"representation": "tree"}, UnknownNameError, "'tree'; the known ones are: given, netw"),
        ({"next_targets": -1}, InvalidInputError, "next_targets"),
        ({"reward_weight": NAN}, InvalidInputError, "reward_weight"),
    ],
)
@pytest.mark.parametrize("name", ["gfucb-mdp", "independent-mdp", "fitted-q"])
def test_settings_of_the_command_line_are_validated(name, change, error, message):
    config = replace(EpisodicAgentConfig(name=name), **change)
    with pytest.raises(error, match=message):
        make_agent(config, tabular_lock(horizon=2), 0)


def test_default_offset():
    assert default_offset(None) == default_offset((0.0, 7.0)) == default_offset((-3.0, 1.0)) == 0.0
    assert default_offset((5.0, 10.0)) == 5.0


@pytest.mark.parametrize("low", [-7.0, -1.0, 0.0, 5.0])
def test_optimistic_value_without_samples_is_the_upper_end_of_the_range(low):
    """With a smaller value, the first action that pays would be chosen for ever."""
    transitions = np.ones((1, 2, 1))
    environment = tabular_mdps(
        [transitions],
        [[[low + 1.0, low + 4.0]]],
        horizon=1,
        reward_range=(low, low + 5.0),
        value_range=(low, low + 5.0),
    )
    agent = make_agent(EpisodicAgentConfig(), environment, 0)
    candidates = environment.episode(1).offered()[1]
    agent.plan(candidates)
    optimistic_values = agent.decide(0, candidates).optimistic_values
    assert low + 0.94 * 5.0 < float(optimistic_values[0]) <= low + 5.0
    for _ in range(2):
        agent.plan(candidates)
        decision = agent.decide(0, candidates)
        episode = environment.episode(1)
        agent.observe(0, decision, episode.play(decision.actions).rewards)
    assert len(agent.buffers[0].inputs) == 2


def test_optimistic_values_move_with_the_value_range():
    values = []
    for low in (0.0, 5.0):
        agent = EpisodicGFUCB(
            1, 1, ONE_HOT, value_range=(low, low + 5.0), offset=default_offset((low, low + 5.0))
        )
        candidates = torch.eye(3, dtype=torch.float64)[None]
        for reward in (1.0, 2.0, 3.0, 2.0):
            agent.plan(candidates)
            decision = agent.decide(0, candidates)
            agent.observe(0, decision, [low + reward])
            values.append(float(decision.optimistic_values[0]) - low)
    np.testing.assert_allclose(values[:4], values[4:], rtol=1e-12)


def test_the_exhaustive_fit_of_another_class_is_called_as_it_is():
    """The cached features of all members replace the fit of the agent's own class only."""
    members = [IdentityRepresentation(), lambda inputs: 2 * inputs, lambda inputs: -inputs]
    known, other = FiniteClass(members), FiniteClass(members[:2])
    for fit, is_own in ((Exhaustive(known), True), (Exhaustive(other), False)):
        settings = EpisodicGFUCB(1, 2, known, fit=fit).fit_settings
        assert (settings.exhaustive_features is not None) == is_own
