"""What `gfucb bench` measures, and the sizes of its problems."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from gfucb.core.errors import InvalidInputError

MEASUREMENTS = ("decision", "growth", "tasks", "subset", "catalogue", "batched")
# The paper's fine-tuning, section 6.2: iterations over all the data for one tuple of actions.
LITERAL_ITERATIONS = 200


@dataclass(frozen=True)
class BenchSizes:
    """Sizes of the measured problems; the targets hold for the defaults."""

    num_tasks: int = 10
    """M, unless a measurement has its own."""
    num_actions: int = 10
    """K, the number of candidates of a task."""
    stored_images: int = 6000
    """decision: number of samples that the agent has stored."""
    decisions: int = 50
    """decision: number of repetitions; the median is reported."""
    literal_iterations: int = 4
    """decision: iterations of the literal fine-tuning that are timed, 2 to 200; the time of 200
    is extrapolated linearly from fewer."""
    early_rounds: tuple[int, int] = (100, 200)
    """growth: first and last of the early rounds."""
    late_rounds: tuple[int, int] = (1000, 2000)
    """growth: first and last of the late rounds."""
    many_tasks: int = 1000
    """tasks: M of the large problem."""
    task_rounds: int = 60
    """tasks: number of rounds, with few and with many tasks."""
    catalogue_tasks: int = 2000
    """catalogue: number of tasks that share it."""
    catalogue_items: int = 50
    """catalogue: number of items."""
    batched_replicas: int | None = None
    """batched: number of replicas in the batch; by default 20 on a GPU, 4 on a CPU."""
    batched_rounds: int | None = None
    """batched: number of rounds; by default 600 on a GPU, 5 on a CPU."""
    batched_alone: int = 2
    """batched: runs timed one after another; the time of all is extrapolated from them."""

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
