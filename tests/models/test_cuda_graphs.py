"""CudaGraphed work is the work."""

import pytest
import torch

from gfucb.core.errors import InvalidInputError
from gfucb.models.nn.cuda_graphs import WARM_UPS, CudaGraphed


def doubled(times: int, device: str) -> float:
    """One, doubled this many times."""
    number = torch.ones((), device=device)

    def double() -> None:
        number.mul_(2)

    repeated = CudaGraphed(double, number.device)
    for _ in range(times):
        repeated()
    return float(number)


@pytest.mark.parametrize("times", [1, WARM_UPS, WARM_UPS + 1, WARM_UPS + 5])
def test_on_a_cpu_every_call_runs_the_work(times):
    assert doubled(times, "cpu") == 2**times


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("times", [1, WARM_UPS, WARM_UPS + 1, WARM_UPS + 5])
def test_on_a_gpu_every_call_has_the_effect_of_the_work_once(times):
    assert doubled(times, "cuda") == 2**times


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_work_that_reads_values_from_the_device_is_refused():
    number = torch.ones((), device="cuda")
    repeated = CudaGraphed(lambda: print(number.item()), number.device)
    for _ in range(WARM_UPS):
        repeated()
    with pytest.raises(InvalidInputError, match="must not read values"):
        repeated()
