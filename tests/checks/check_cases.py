"""Components that the tests of several checks use."""

import torch
from torch import nn

from gfucb import VariableProjection
from gfucb.models import LinearRepresentation

FEW_STEPS = VariableProjection(steps=2)
ROTATIONS = [
    LinearRepresentation(torch.eye(4, dtype=torch.float64)[rows]) for rows in ([0, 1], [2, 3])
]


# Action selectors.
COUNTER = iter(range(1000))


def network(input_dim: int = 4) -> nn.Module:
    """The same network at every call, built without torch's global generator."""
    module = nn.utils.skip_init(nn.Linear, input_dim, 2, dtype=torch.float64)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.linspace(-1, 1, parameter.numel()).view_as(parameter))
    return module
