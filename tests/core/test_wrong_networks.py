"""Networks of the user that return no features, or none that can be fitted."""

import pytest
import torch
from torch import nn

from gfucb import GFUCB
from gfucb.core.errors import InvalidInputError

CANDIDATES = torch.rand(3, 4, 5, generator=torch.Generator().manual_seed(0))


class Returning(nn.Module):
    """A network that returns something else than its features."""

    def __init__(self, change):
        super().__init__()
        self.linear, self.change = nn.Linear(5, 2), change

    def forward(self, x):
        return self.change(self.linear(x))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda y: (y, y), r"\[n, feature\], this one tuple; wrap a module that returns several"),
        (lambda y: None, "this one NoneType"),
        (lambda y: y.to(torch.complex64), "for 1 inputs this one returns torch.complex64"),
        (lambda y: y[:1], r"for 12 inputs this one returns torch.float32 of shape \[1, 2\]"),
        (lambda y: y.sum(), r"of shape \[\]"),
        (lambda y: y[:, :0], "at least one feature"),
    ],
)
def test_a_network_that_returns_no_features_is_refused(change, message):
    with pytest.raises(InvalidInputError, match=message):
        GFUCB(3, Returning(change)).decide(CANDIDATES)


@pytest.mark.parametrize("change", [lambda y: y.detach(), lambda y: y.long()])
def test_a_network_without_gradients_is_refused_before_it_has_learned(change):
    agent = GFUCB(3, Returning(change))
    decision = agent.decide(CANDIDATES)
    with pytest.raises(InvalidInputError, match="have no gradients"):
        agent.observe(decision, [0.1, 0.5, 0.9])
    assert agent.state() == {}
