"""Constructing an agent with wrong settings: a sentence at once, not an error in a later call."""

import math

import pytest
import torch

import gfucb
from gfucb import (
    GFUCB,
    BatchedAgents,
    ConstantRadius,
    FiniteClass,
    LastLayer,
    LinearClass,
    VariableProjection,
)
from gfucb.core.errors import InvalidInputError, NotEnoughMemoryError
from gfucb.core.memory import memory_of_tasks
from gfucb.estimation import (
    AdamFit,
    Alternating,
    CalibratedRadius,
    Exhaustive,
    LogRadius,
    RandomShifts,
    ScaledRadius,
)
from gfucb.exploration import (
    Certified,
    DiagonalSampling,
    Enumerated,
    FineTuning,
    GradientBonus,
    HeadSampling,
    InverseGap,
    Linearised,
    PerturbedRewards,
)
from gfucb.models import (
    DefaultNetworkClass,
    FourierFeatures,
    HeadPenalty,
    IdentityRepresentation,
)
from gfucb.models.tangents import WeightSketch

NAN, INF = math.nan, math.inf


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_tasks": 0}, "num_tasks must be an integer of at least 1, got 0"),
        ({"num_tasks": 2.5}, "num_tasks must be an integer"),
        ({"num_tasks": True}, "num_tasks must be an integer"),
        ({"num_tasks": "3"}, "num_tasks must be an integer of at least 1, got '3'"),
        ({"seed": None}, "seed must be an integer, such as 0, got None"),
        ({"seed": 1.5}, "seed must be an integer"),
        ({"seed": True}, "seed must be an integer"),
        ({"squared_radius": 3.0}, r"such as ConstantRadius\(3\), got 3.0"),
        ({"squared_radius": "log"}, r"squared_radius must be a function .* got 'log'"),
        ({"squared_radius": ConstantRadius}, "got the class ConstantRadius; pass an instance"),
        ({"action_selector": "last"}, r"such as LastLayer\(\), got 'last'"),
        ({"action_selector": LastLayer}, "got the class LastLayer; pass an instance"),
        ({"fit": "adam"}, r"fit such as VariableProjection\(\), got 'adam'"),
        ({"fit": VariableProjection}, "got the class VariableProjection"),
        ({"ridge": 0.0}, "ridge must be a finite number of at least 1e-12.*, got 0.0"),
        ({"ridge": -1.0}, "ridge must be"),
        ({"ridge": 1e-300}, "ridge must be .* got 1e-300"),
        ({"ridge": NAN}, "ridge must be"),
        ({"ridge": INF}, "ridge must be"),
        ({"ridge": "1"}, "ridge must be .* got '1'"),
        ({"ridge": None}, "ridge must be .* got None"),
        ({"head_norm_bound": 0.0}, "head_norm_bound must be a number above 0"),
        ({"head_norm_bound": NAN}, "head_norm_bound"),
        ({"head_norm_bound": "1"}, "head_norm_bound"),
        ({"refit_growth": 0.9}, "refit_growth must be a number of at least 1, got 0.9"),
        ({"refit_growth": NAN}, "refit_growth"),
        ({"refit_growth": "fast"}, "refit_growth"),
        ({"value_range": (1.0, 0.0)}, "low < high"),
        ({"value_range": (0.0, INF)}, "low < high"),
        ({"value_range": (0,)}, r"value_range must be \(low, high\)"),
        ({"value_range": "01"}, r"value_range must be \(low, high\), .* got '01'"),
        ({"value_range": (-1e308, 1e308)}, r"at most 1e\+12 in magnitude"),
        ({"offset": 1e300}, r"offset .* at most 1e\+12"),
        ({"ridge": 1e300}, r"ridge .* at most 1e\+12"),
        ({"value_range": 1.0}, r"value_range must be \(low, high\)"),
        ({"offset": NAN}, "offset must be a finite number.*, got nan"),
        ({"offset": "0"}, "offset must be a finite number.*, got '0'"),
        ({"device": "abacus"}, "device 'abacus'"),
        ({"device": 1.5}, "device 1.5"),
        ({"device": 2**70}, "device 1180591620717411303424"),
        ({"representation": "resnet"}, "torch module.* got 'resnet'"),
        ({"representation": torch.nn.Linear}, "torch module"),
        ({"representation": torch.eye(3)}, "torch module"),
    ],
)
def test_wrong_settings_are_refused_with_what_was_expected(options, message):
    with pytest.raises(InvalidInputError, match=message):
        GFUCB(**({"num_tasks": 3} | options))


@pytest.mark.parametrize(
    "candidates", [torch.rand(1, 2, 3), torch.tensor([[0, 1]]), torch.rand(1, 2, 1, 8, 8)]
)
def test_more_tasks_than_memory_can_hold_are_refused_by_their_number(candidates):
    agent, message = GFUCB(2**60), f"here {2**60}: build it for those that exist"
    with pytest.raises(NotEnoughMemoryError, match=message):
        agent.decide(candidates, tasks=[0])
    with pytest.raises(NotEnoughMemoryError, match=message):
        agent.learn([0], candidates[0, :1], [1.0])


def test_an_agent_that_cannot_have_more_tasks_does_not_change():
    agent, candidates = GFUCB(2, seed=0), torch.rand(2, 2, 3)
    agent.observe(agent.decide(candidates), [0.0, 1.0])
    before = agent.decide(candidates)
    with pytest.raises(NotEnoughMemoryError, match=f"here {2**60 + 2}: build it"):
        agent.add_tasks(2**60)
    assert agent.num_tasks == 2
    assert torch.equal(agent.decide(candidates).optimistic_values, before.optimistic_values)
    agent.add_tasks(1)
    assert len(agent.decide(torch.rand(3, 2, 3)).actions) == 3


def test_other_errors_of_torch_are_not_about_memory():
    with pytest.raises(RuntimeError, match="no kernel"), memory_of_tasks(3):
        raise RuntimeError("no kernel")


@pytest.mark.parametrize("radius", [-1.0, NAN, INF, "3", None])
def test_a_radius_that_is_not_a_number_is_refused_by_its_round(radius):
    known = FiniteClass([IdentityRepresentation()])
    agent = GFUCB(2, known, squared_radius=lambda t: radius)
    with pytest.raises(InvalidInputError, match="the squared radius of round 1 must be"):
        agent.decide(torch.rand(2, 3, 4))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: VariableProjection(steps="3"), "steps must be an integer of at least 0, got '3'"),
        (lambda: VariableProjection(steps=-1), "steps must be"),
        (lambda: VariableProjection(learning_rate=NAN), "learning_rate must be a finite number"),
        (lambda: VariableProjection(batch_size=0), "batch_size must be an integer of at least 1"),
        (lambda: VariableProjection(loss="mse"), "loss must be one of .* got 'mse'"),
        (lambda: VariableProjection(augment="flip"), "augment must be a function"),
        (lambda: AdamFit(epochs=1.5), "epochs must be an integer"),
        (lambda: AdamFit(learning_rate="fast"), "learning_rate must be"),
        (lambda: AdamFit(stop_below=-1.0), "stop_below must be"),
        (lambda: FiniteClass(3), "list of representations, got int"),
        (lambda: FiniteClass(torch.nn.Linear(2, 2)), "got Linear; put a single one in a list"),
        (lambda: LinearClass("5", 2), "input_dim must be an integer"),
        (lambda: InverseGap(scale="a"), "scale must be a finite number"),
        (lambda: InverseGap(seed=None), "seed must be an integer"),
        (lambda: PerturbedRewards("a"), "reward_perturbation must be a finite number"),
        (lambda: LastLayer(joint="x"), "joint must be True or False, got 'x'"),
        (lambda: HeadSampling(seed=None), "seed must be an integer"),
        (lambda: DiagonalSampling(seed="a"), "seed must be an integer"),
        (lambda: Linearised(joint=1), "joint must be True or False, got 1"),
        (lambda: Linearised(sketch=64), r"such as WeightSketch\(64\), got 64"),
        (lambda: GradientBonus(weight_ridge=0), "weight_ridge must be a finite number above 0"),
        (lambda: Certified(weight_ridge="a"), "weight_ridge must be a finite number above 0"),
        (lambda: WeightSketch("a"), "dim of a sketch must be an integer"),
        (lambda: Enumerated("last"), r"selector must be .* got 'last'"),
        (lambda: FineTuning("a", 1.0, "sum", True), "learning_rate must be a finite number"),
        (lambda: FineTuning(0.1, 1.0, "max", True), "excess must be one of .* got 'max'"),
        (lambda: FineTuning(0.1, 1.0, "sum", None), "feasible_only must be True or False"),
        (lambda: FineTuning.stable(iterations=2.5), "iterations must be an integer"),
        (lambda: Alternating(iterations=-1), "iterations must be an integer of at least 0"),
        (lambda: Alternating(tolerance=NAN), "tolerance must be a finite number"),
        (lambda: Exhaustive("all"), "representations can be listed, got 'all'"),
        (lambda: RandomShifts(1.5), "pixels must be an integer of at least 1, got 1.5"),
        (lambda: LogRadius(c="a"), "c must be a finite number"),
        (lambda: ScaledRadius(3.0, 2.0), "radius must be a function of the round"),
        (lambda: CalibratedRadius(0.2, target_coverage="a"), "target_coverage must be"),
        (lambda: CalibratedRadius(0.2, target_coverage=1.0), "target_coverage must be below 1"),
        (lambda: HeadPenalty("a"), "ridge must be a finite number above 0"),
        (lambda: HeadPenalty(1.0, "a"), "head_norm_bound must be a number above 0"),
        (lambda: DefaultNetworkClass(hidden="a"), "hidden must be an integer"),
        (lambda: DefaultNetworkClass(dropout=2.0), "dropout must be .* of at most 1"),
        (lambda: FourierFeatures(0, 4), "num_directions must be an integer of at least 1"),
        (lambda: FourierFeatures(2, "a"), "feature_dim must be an integer"),
        (lambda: ConstantRadius(10**400), "value must be a finite number"),
        (lambda: GFUCB(torch.zeros(2)), "num_tasks must be an integer"),
        (lambda: GFUCB(10**30), "num_tasks must be an integer of at most"),
        (lambda: BatchedAgents(None), "list of agents, got NoneType"),
        (lambda: BatchedAgents(GFUCB(2)), "list of agents, got GFUCB"),
        (lambda: gfucb.save(3, "agent"), "agent must be an object with the methods state"),
    ],
)
def test_wrong_components_are_refused_with_what_was_expected(make, message):
    with pytest.raises(InvalidInputError, match=message):
        make()
