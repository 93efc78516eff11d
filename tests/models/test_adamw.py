"""AdamW by torch's fused function: the update of the paper (Loshchilov and Hutter 2019)."""

import torch

from gfucb.models.nn.adamw import FusedAdamW

RATE, DECAY, EPSILON = 0.01, 0.1, 1e-5


def test_its_steps_are_those_of_the_paper():
    generator = torch.Generator().manual_seed(0)
    draw = {"generator": generator, "dtype": torch.float64}
    weights = [torch.randn(3, 4, **draw), torch.randn(4, **draw), torch.randn(2, **draw)]
    optimiser = FusedAdamW(
        [w.requires_grad_() for w in weights],
        learning_rate=RATE,
        weight_decay=DECAY,
        epsilon=EPSILON,
    )
    expected = [w.detach().clone() for w in weights]
    first, second = [torch.zeros_like(w) for w in expected], [torch.zeros_like(w) for w in expected]
    for step in range(1, 6):
        optimiser.zero_grad()
        assert all(w.grad is None for w in weights)
        for index, w in enumerate(weights[:2]):  # the last one has no gradient and stays
            w.grad = torch.randn(w.shape, **draw)
            first[index] = 0.9 * first[index] + 0.1 * w.grad
            second[index] = 0.999 * second[index] + 0.001 * w.grad.square()
            root = (second[index] / (1 - 0.999**step)).sqrt() + EPSILON
            update = first[index] / (1 - 0.9**step) / root
            expected[index] = expected[index] * (1 - RATE * DECAY) - RATE * update
        optimiser.step()
        for w, same in zip(weights, expected, strict=True):
            torch.testing.assert_close(w.detach(), same, rtol=1e-12, atol=1e-14)
