"""Representation classes: initial representations, saved states, fingerprints."""

import functools
import math

import pytest
import torch
from torch import nn

from gfucb import GFUCB, FiniteClass, LinearClass, NeuralClass
from gfucb.core.digests import digest_of
from gfucb.core.errors import InvalidInputError
from gfucb.core.random import global_randomness_from, random_stream
from gfucb.models import (
    DefaultNetworkClass,
    IdentityRepresentation,
    LinearRepresentation,
    NeuralRepresentation,
    RepresentationClass,
    as_representation_class,
    features_of,
)
from other_processes import printed_elsewhere, printed_here

INPUTS = torch.linspace(-1, 1, 12).reshape(4, 3)


def network(seed: int = 0, activation: type[nn.Module] = nn.ReLU) -> nn.Module:
    with global_randomness_from(random_stream(seed, "test network")):
        return nn.Sequential(nn.Linear(3, 5), activation(), nn.Linear(5, 2))


def matrix(seed: int = 0) -> torch.Tensor:
    return torch.randn(2, 3, generator=random_stream(seed, "matrix"), dtype=torch.float64)


def squares(inputs):
    return inputs.square()


def cubes(inputs):
    return inputs**3


CLASSES = {
    "finite": lambda: FiniteClass([LinearRepresentation(matrix(s)) for s in range(3)]),
    "linear": lambda: LinearClass(3, 2),
    "neural": lambda: NeuralClass(network(), "l2"),
    "default": DefaultNetworkClass,
}


def initial(known: RepresentationClass, seed: int = 0):
    return known.initial(INPUTS, random_stream(seed, "network"), "cpu")


@pytest.mark.parametrize("name", CLASSES)
def test_every_class_implements_the_protocol(name):
    assert isinstance(CLASSES[name](), RepresentationClass)


@pytest.mark.parametrize("name", CLASSES)
def test_a_saved_representation_is_restored_by_an_equal_class(name):
    known = CLASSES[name]()
    moved = initial(known)
    if isinstance(moved, NeuralRepresentation):
        with torch.no_grad():
            for weight in moved.module.parameters():
                weight.add_(0.1)
    elif name == "linear":
        moved = LinearRepresentation(matrix(1))
    else:
        moved = known.members[2]
    state = {n: tensor.clone() for n, tensor in known.state_of(moved).items()}
    restored = CLASSES[name]().restored(state, INPUTS, random_stream(0, "network"), "cpu")
    assert torch.equal(features_of(restored, INPUTS), features_of(moved, INPUTS))
    assert not torch.equal(features_of(restored, INPUTS), features_of(initial(known), INPUTS))


@pytest.mark.parametrize(
    ("known", "state", "message"),
    [
        (LinearClass(3, 2), {"matrix": torch.zeros(3, 3, dtype=torch.float64)}, r"\[3, 3\]"),
        (LinearClass(3, 2), {}, "'matrix'"),
        (FiniteClass([squares]), {"member": torch.tensor(1)}, "member"),
        (FiniteClass([squares]), {"member": torch.tensor(-1)}, "member"),
        (NeuralClass(nn.Linear(3, 2)), {"module.weight": torch.zeros(2, 3)}, "bias"),
    ],
)
def test_a_state_of_another_class_is_refused(known, state, message):
    with pytest.raises(InvalidInputError, match=message):
        known.restored(state, INPUTS, random_stream(0, "network"), "cpu")


def test_a_neural_class_copies_the_module_when_it_is_built():
    module = network()
    known = NeuralClass(module)
    before = known.fingerprint()
    features = features_of(initial(known), INPUTS)
    with torch.no_grad():
        module[0].weight.zero_()
    assert torch.equal(features_of(initial(known), INPUTS), features)
    assert known.fingerprint() == before
    initial(known).module[0].weight.data.zero_()
    assert torch.equal(features_of(initial(known), INPUTS), features)


def test_the_default_network_follows_the_seed_and_the_shape():
    known = as_representation_class(None)
    assert torch.equal(
        features_of(initial(known, seed=1), INPUTS), features_of(initial(known, seed=1), INPUTS)
    )
    assert not torch.equal(
        features_of(initial(known, seed=1), INPUTS), features_of(initial(known, seed=2), INPUTS)
    )
    assert features_of(initial(known), INPUTS).shape == (4, 128)


def test_the_default_network_refuses_inputs_it_does_not_read():
    with pytest.raises(InvalidInputError, match="1e\\+04"):
        DefaultNetworkClass().validate_inputs(torch.tensor([[1e4]]))
    with pytest.raises(InvalidInputError, match="Embedding"):
        DefaultNetworkClass().validate_inputs(torch.tensor([[1]]))


@pytest.mark.parametrize("given", ["linear", 3, FiniteClass, IdentityRepresentation()])
def test_what_is_no_class_is_refused(given):
    with pytest.raises(InvalidInputError, match="representation must be"):
        GFUCB(2, given)


def test_a_finite_class_refuses_members_that_are_not_functions():
    with pytest.raises(InvalidInputError, match="member"):
        FiniteClass([squares, 3])


def test_members_with_different_numbers_of_features_are_refused():
    known = FiniteClass([squares, lambda x: x[:, :2]])
    with pytest.raises(InvalidInputError, match=r"\[2, 3\]"):
        initial(known)


@pytest.mark.parametrize("name", CLASSES)
def test_equal_classes_have_equal_fingerprints(name):
    assert CLASSES[name]().fingerprint() == CLASSES[name]().fingerprint()


class Scaled:
    def __init__(self, scale: float) -> None:
        self.scale = scale

    def __call__(self, inputs):
        return self.scale * inputs

    def half(self, inputs):
        return 0.5 * self.scale * inputs


DIFFERENT = {
    "order": ([squares, cubes], [cubes, squares]),
    "number": ([squares], [squares, squares]),
    "function": ([squares], [cubes]),
    "matrix": ([LinearRepresentation(matrix(0))], [LinearRepresentation(matrix(1))]),
    "lambda": ([lambda x: x + 1], [lambda x: x + 2]),
    "default argument": ([lambda x, i=1: x + i], [lambda x, i=2: x + i]),
    "closure": ([(lambda c: lambda x: c * x)(1.0)], [(lambda c: lambda x: c * x)(2.0)]),
    "partial": (
        [functools.partial(torch.mul, other=2.0)],
        [functools.partial(torch.mul, other=3.0)],
    ),
    "attribute": ([Scaled(1.0)], [Scaled(2.0)]),
    "method": ([Scaled(1.0).half], [Scaled(2.0).half]),
    "module weights": ([network(0)], [network(1)]),
    "type": ([IdentityRepresentation()], [LinearRepresentation(torch.eye(3).double())]),
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_fingerprints_of_different_finite_classes_differ(name):
    first, second = DIFFERENT[name]
    assert FiniteClass(first).fingerprint() != FiniteClass(second).fingerprint()
    assert FiniteClass(first).fingerprint() == FiniteClass(list(first)).fingerprint()


def test_initial_weights_are_no_part_of_the_fingerprint_of_a_network():
    """A state holds all weights, so it restores into a network that started from others."""
    assert NeuralClass(network()).fingerprint() == NeuralClass(network(seed=1)).fingerprint()


def test_fingerprints_of_different_networks_differ():
    different = [
        NeuralClass(network()),
        NeuralClass(network(), "l2"),
        NeuralClass(network(activation=nn.Tanh)),
        NeuralClass(nn.Sequential(network())),
        NeuralClass(network().double()),
        DefaultNetworkClass(),
        DefaultNetworkClass(hidden=64),
        LinearClass(3, 2),
        LinearClass(4, 2),
    ]
    fingerprints = [known.fingerprint() for known in different]
    assert len(set(fingerprints)) == len(fingerprints)


def test_plain_attributes_of_layers_count():
    first, second = nn.Dropout(0.1), nn.Dropout(0.1)
    second.inplace_scale = 2.0
    assert digest_of(first) != digest_of(second)
    second = nn.Dropout(0.1).eval()
    assert digest_of(first) == digest_of(second)


@pytest.mark.slow
def test_a_fingerprint_is_the_same_in_another_process(capsys):
    code = (
        "import torch; from torch import nn; from gfucb.models import *\n"
        "known = FiniteClass([LinearRepresentation(torch.arange(6.).reshape(2, 3).double()),"
        " lambda x: x.square(), torch.relu, nn.Identity()])\n"
        "print(known.fingerprint(), LinearClass(3, 2).fingerprint())"
    )
    here = printed_here(code, capsys)
    assert printed_elsewhere(code) == here and "finite(4 members" in here


def test_reprs_are_short():
    many = FiniteClass([LinearRepresentation(matrix(s)) for s in range(50)])
    assert repr(many) == "FiniteClass(50 x LinearRepresentation)"
    assert repr(many.members[0]) == "LinearRepresentation(3 inputs -> 2 features)"
    assert len(repr(NeuralClass(network()))) < 100


def test_covering_numbers():
    finite = FiniteClass([nn.Identity(), nn.Identity(), nn.Identity()])
    assert finite.log_covering_number(0.1) == math.log(3)
    linear = LinearClass(input_dim=5, feature_dim=2)
    assert linear.log_covering_number(0.1) == pytest.approx(10 * math.log(1 + 20 * math.sqrt(2)))
    assert linear.log_covering_number(0.01) > linear.log_covering_number(0.1)


class Powers:
    """A class written by a user: x -> x^p for p in 1, 2, 3, without a list of members."""

    structure = "powers"
    members = None
    default_refit_growth = 1.0

    def validate_inputs(self, inputs):
        pass

    def initial(self, inputs, generator, device):
        return functools.partial(torch.pow, exponent=1)

    def state_of(self, representation):
        return {"power": torch.tensor(representation.keywords["exponent"])}

    def restored(self, state, inputs, generator, device):
        return functools.partial(torch.pow, exponent=int(state["power"]))

    def fingerprint(self):
        return "powers(1, 2, 3)"


def fit_powers(data, start, penalty, generator):
    from gfucb.estimation import best_on, squared_error

    powers = [functools.partial(torch.pow, exponent=p) for p in (1, 2, 3)]
    fits = [best_on(power, data, start, penalty) for power in powers]
    return min(fits, key=lambda fit: squared_error(fit, data))


def test_a_class_from_outside_is_learned_saved_and_restored():
    from gfucb.exploration import LastLayer

    def build():
        return GFUCB(2, Powers(), fit=fit_powers, action_selector=LastLayer(), ridge=1e-3)

    agent = build()
    inputs = torch.randn(40, 3, generator=random_stream(0, "inputs"), dtype=torch.float64)
    agent.learn(torch.arange(40) % 2, inputs, inputs.square().sum(1) / 10)
    restored = build()
    restored.load_state({name: tensor.clone() for name, tensor in agent.state().items()})
    for one in (agent, restored):
        center = one.confidence_set(inputs).center
        assert center.representation.keywords == {"exponent": 2}
    candidates = inputs.reshape(2, 20, 3)
    assert torch.equal(agent.decide(candidates).actions, restored.decide(candidates).actions)


def test_a_structure_without_defaults_names_what_to_pass():
    with pytest.raises(InvalidInputError, match=r"'powers'.*pass action_selector"):
        GFUCB(2, Powers())
    with pytest.raises(InvalidInputError, match=r"'powers'.*pass fit"):
        from gfucb.estimation.default_fits import default_fit

        default_fit(Powers())
