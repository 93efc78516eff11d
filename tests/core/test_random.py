"""Named random streams."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from gfucb.core.random import (
    exclusive_randomness_from,
    global_randomness_from,
    random_actions,
    random_stream,
)
from gfucb.models.nn.networks import default_network


def draws(*stream: str | int) -> list[float]:
    return torch.rand(3, generator=random_stream(*stream), dtype=torch.float64).tolist()


def test_streams_differ_in_the_seed_and_in_every_name():
    streams = [
        (0, "fit"),
        (1, "fit"),
        (0, "noise"),
        (0, "fit", 1),
        (0, "fit", "1"),
        (0, "fit", 1, 2),
        (0, "fit", 1, 3),
        (0, "fit", 12),
        (0, "fi", "t"),
    ]
    assert len({tuple(draws(*stream)) for stream in streams}) == len(streams)
    assert all(draws(*stream) == draws(*stream) for stream in streams)


def test_streams_are_the_same_in_every_version():
    """Stored runs continue with the draws they began with."""
    assert random_stream(3, "round", 7).initial_seed() == 6399901211979812610


def test_the_global_generator_has_its_former_state_after_a_block():
    torch.manual_seed(5)
    expected = torch.rand(2).tolist()
    torch.manual_seed(5)
    with global_randomness_from(random_stream(0, "layers")):
        inside = torch.rand(2).tolist()
    assert torch.rand(2).tolist() == expected != inside
    torch.manual_seed(6)
    with global_randomness_from(random_stream(0, "layers")):
        assert torch.rand(2).tolist() == inside


@pytest.mark.parametrize("seed", range(5))
def test_random_actions_are_available(seed):
    available = torch.tensor([[False, True, False], [True, False, True]])
    actions = random_actions(available, random_stream(seed, "actions"))
    assert bool(available[torch.arange(2), actions].all())


def test_networks_made_in_several_threads_have_the_weights_of_one():
    def weights(_: int) -> torch.Tensor:
        network = default_network((30,), random_stream(0, "network"))
        return torch.cat([p.detach().flatten() for p in network.parameters()])

    alone = weights(0)
    with ThreadPoolExecutor(4) as threads:
        for found in threads.map(weights, range(40)):
            torch.testing.assert_close(found, alone, rtol=0, atol=0)


def test_threads_leave_the_global_generator_as_it_was_after_short_blocks():
    torch.manual_seed(5)
    before = torch.get_rng_state()

    def draw(index: int) -> torch.Tensor:
        with exclusive_randomness_from(random_stream(index, "weights")):
            return torch.rand(100)

    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(draw, [1, 2] * 20))
    assert torch.equal(torch.get_rng_state(), before)
    assert all(torch.equal(draws, found[index % 2]) for index, draws in enumerate(found))
