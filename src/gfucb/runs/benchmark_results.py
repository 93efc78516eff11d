"""What a benchmark is made of: sizes, a clock, and ratios of what it showed.

Times of one machine say little about another; ratios of them do. On a CPU the clock is that of
this process alone, on one thread, so that other work on the machine counts on neither side; on a
GPU it is the wall clock, read when the device has finished.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any, Literal

import torch

from gfucb.core.errors import InvalidInputError
from gfucb.core.random import random_stream
from gfucb.environments import load_mnist
from gfucb.environments.image_bandit import NUM_CLASSES
from gfucb.environments.images import LabelledImages
from gfucb.runs.provenance import current_provenance, timestamp

# The paper's fine-tuning, section 6.2: iterations over all the data for one tuple of actions.
LITERAL_ITERATIONS = 200
# Random images where there is no MNIST: what they show does not matter to the clock.
NUM_RANDOM_IMAGES = 8192
IMAGE_SHAPE = (28, 28)


@dataclass(frozen=True)
class BenchSizes:
    """How large the measured problems are; the defaults are those the targets are for."""

    num_tasks: int = 10
    """M, where nothing else is said."""
    num_actions: int = 10
    """K, the number of candidates of a task."""
    stored_images: int = 6000
    """decision: samples an agent has stored when it decides."""
    decisions: int = 50
    """decision: repetitions, of which the median counts."""
    literal_iterations: int = 4
    """decision: iterations of the literal fine-tuning that are timed, at least 2; the time of 200
    is extrapolated linearly. 200 times them all."""
    early_rounds: tuple[int, int] = (100, 200)
    """growth: first and last of the rounds compared with."""
    late_rounds: tuple[int, int] = (1000, 2000)
    """growth: first and last of the rounds in question."""
    many_tasks: int = 1000
    """tasks: M of the large problem."""
    task_rounds: int = 60
    """tasks: rounds played with few and with many tasks."""
    catalogue_tasks: int = 2000
    """catalogue: tasks that share it."""
    catalogue_items: int = 50
    """catalogue: items they choose among."""
    batched_replicas: int | None = None
    """batched: copies in batch; by default 20 on a GPU, 4 on a CPU."""
    batched_rounds: int | None = None
    """batched: rounds they play; by default 600 on a GPU, 5 on a CPU."""
    batched_alone: int = 2
    """batched: copies played one after another; the time of all is extrapolated from them."""

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            numbers = value if isinstance(value, tuple) else (value,)
            if any(number is not None and number < 1 for number in numbers):
                raise InvalidInputError(f"{name} must be at least 1, got {value}")
        for name in ("early_rounds", "late_rounds"):
            first, last = getattr(self, name)
            if first > last:
                raise InvalidInputError(f"{name} must be (first, last), got {first} > {last}")
        if not 2 <= self.literal_iterations <= LITERAL_ITERATIONS:
            raise InvalidInputError(
                f"literal_iterations must lie between 2 and {LITERAL_ITERATIONS}, "
                f"got {self.literal_iterations}"
            )


QUICK_SIZES = BenchSizes(
    stored_images=60,
    decisions=5,
    literal_iterations=3,
    early_rounds=(2, 4),
    late_rounds=(5, 12),
    many_tasks=50,
    task_rounds=4,
    catalogue_tasks=40,
    catalogue_items=5,
    batched_replicas=2,
    batched_rounds=1,
    batched_alone=1,
)


@dataclass(frozen=True)
class Ratio:
    """One figure: what was measured on both sides, and whether it is as it should be.

    Attributes:
        numerator, denominator: what is compared, in words.
        above, below: the two measurements, in `unit`.
        target: what the ratio should be `at least` or `at most`; None where nothing is predicted.
        sizes: of the problem.
        remark: what a reader must know besides, for example what was extrapolated.
    """

    name: str
    numerator: str
    denominator: str
    above: float
    below: float
    unit: Literal["seconds", "bytes"] = "seconds"
    target: float | None = None
    bound: Literal["at least", "at most"] = "at least"
    sizes: Mapping[str, int] = field(default_factory=dict)
    remark: str = ""

    @property
    def value(self) -> float:
        """The ratio."""
        return self.above / self.below

    @property
    def holds(self) -> bool | None:
        """Whether the target is met; None where there is none."""
        if self.target is None:
            return None
        return self.value >= self.target if self.bound == "at least" else self.value <= self.target

    def record(self) -> dict[str, Any]:
        """For JSON, with value and verdict."""
        return {"name": self.name, "value": self.value, "holds": self.holds} | asdict(self)


@dataclass(frozen=True)
class Setting:
    """Where and on what to measure."""

    sizes: BenchSizes = field(default_factory=BenchSizes)
    device: str = "cpu"
    data_dir: str | None = None

    def __post_init__(self) -> None:
        try:
            torch.empty(0, device=self.device)
        except (RuntimeError, AssertionError) as error:
            raise InvalidInputError(
                f"device {self.device!r} cannot be used here: {error}"
            ) from error

    @cached_property
    def images(self) -> LabelledImages:
        """MNIST if there is a directory with it, otherwise random bytes of its shape."""
        if self.data_dir is not None:
            return load_mnist(self.data_dir)
        generator = random_stream(0, "bench", "images")
        shape = (NUM_RANDOM_IMAGES, *IMAGE_SHAPE)
        pixels = torch.randint(256, shape, generator=generator).to(torch.uint8)
        labels = torch.randint(NUM_CLASSES, (NUM_RANDOM_IMAGES,), generator=generator)
        return LabelledImages(pixels, labels)

    @property
    def is_gpu(self) -> bool:
        """Whether work is launched and not waited for."""
        return torch.device(self.device).type != "cpu"

    def now(self) -> float:
        """Seconds on the clock that counts here."""
        if self.is_gpu:
            torch.cuda.synchronize()
            return time.perf_counter()
        return time.process_time()

    def seconds(self, work: Callable[[], object]) -> float:
        """How long `work` takes."""
        begin = self.now()
        work()
        return self.now() - begin

    def describe(self) -> dict[str, Any]:
        """Provenance: versions, commit, device, threads, clock, data, sizes."""
        return current_provenance(self.device) | {
            "clock": "wall" if self.is_gpu else "CPU time of the process",
            "images": "random bytes" if self.data_dir is None else "MNIST",
            "measured": timestamp(),
            "sizes": asdict(self.sizes),
        }
