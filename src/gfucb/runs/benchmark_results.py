"""Clock and results of a benchmark.

Results are ratios, because times of one machine say little about another. On a CPU the clock is
the CPU time of this process on one thread, which does not count other work on the machine. On a
GPU it is the wall clock, read after the device has finished.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any, Literal

import torch

from gfucb.core.errors import InvalidInputError
from gfucb.core.random import random_stream
from gfucb.core.records import Row
from gfucb.environments import load_mnist
from gfucb.environments.image_bandit import NUM_CLASSES
from gfucb.environments.images import LabelledImages
from gfucb.runs.benchmark_sizes import BenchSizes

# Random images replace MNIST where it is absent: the cost does not depend on their content.
NUM_RANDOM_IMAGES = 8192
IMAGE_SHAPE = (28, 28)


@dataclass(frozen=True)
class Ratio:
    """A ratio of two measurements, and whether it meets its target.

    Attributes:
        numerator, denominator: descriptions of the two sides.
        above, below: the two measurements, in `unit`.
        target: the ratio should be `at least` or `at most` this; None if there is no target.
        sizes: the sizes of the problem.
        remark: more information, for example what was extrapolated.
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
        """Whether the target is met; None if there is no target."""
        if self.target is None:
            return None
        return self.value >= self.target if self.bound == "at least" else self.value <= self.target

    def row(self) -> Row:
        """A row of rows.csv: the fields, value and verdict; sizes as JSON."""
        holds = "" if self.holds is None else str(self.holds)
        fields: dict[str, Any] = {"name": self.name, "value": self.value, "holds": holds}
        fields |= asdict(self) | {"sizes": json.dumps(dict(self.sizes))}
        return {name: "" if value is None else value for name, value in fields.items()}

    @classmethod
    def from_row(cls, row: Mapping[str, str]) -> Ratio:
        """The ratio of a row that was read from rows.csv."""
        fields: dict[str, Any] = {k: v for k, v in row.items() if k not in ("value", "holds")}
        numbers = {"above": float(row["above"]), "below": float(row["below"])}
        target = float(row["target"]) if row["target"] else None
        return cls(**(fields | numbers | {"target": target, "sizes": json.loads(row["sizes"])}))


@dataclass(frozen=True)
class Setting:
    """Sizes, device and data of the measurements."""

    sizes: BenchSizes = field(default_factory=BenchSizes)
    device: str = "cpu"
    data_dir: str | None = None

    def require_device(self) -> None:
        """Refuse a device that this machine does not have."""
        try:
            torch.empty(0, device=self.device)
        except (RuntimeError, AssertionError) as error:
            raise InvalidInputError(
                f"device {self.device!r} is not available on this machine: {error}"
            ) from error

    @cached_property
    def images(self) -> LabelledImages:
        """MNIST if its directory is given, otherwise random images of the same shape."""
        if self.data_dir is not None:
            return load_mnist(self.data_dir)
        generator = random_stream(0, "bench", "images")
        shape = (NUM_RANDOM_IMAGES, *IMAGE_SHAPE)
        pixels = torch.randint(256, shape, generator=generator).to(torch.uint8)
        labels = torch.randint(NUM_CLASSES, (NUM_RANDOM_IMAGES,), generator=generator)
        return LabelledImages(pixels, labels)

    @property
    def is_gpu(self) -> bool:
        """Whether calls return before the device has finished."""
        return torch.device(self.device).type != "cpu"

    def now(self) -> float:
        """Seconds on the clock of this device."""
        if self.is_gpu:
            torch.cuda.synchronize()
            return time.perf_counter()
        return time.process_time()

    def seconds(self, work: Callable[[], object]) -> float:
        """How long `work` takes."""
        started = self.now()
        work()
        return self.now() - started

    def settings(self) -> dict[str, Any]:
        """What config.json records: sizes, device, clock and data."""
        return {
            "sizes": self.sizes,
            "device": self.device,
            "clock": "wall" if self.is_gpu else "CPU time of the process",
            "images": "random bytes" if self.data_dir is None else "MNIST",
        }
