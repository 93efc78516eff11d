"""The problem families of the suite: environment, length, and contenders of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from gfucb.environments import (
    ImageBandit,
    WheelBandit,
    finite_bandit,
    linear_bandit,
    load_digits,
    load_mnist,
)

from .contenders import DEFAULT
from .problems.classes import BundledTable, ImageClasses, TableClasses
from .problems.settings import (
    Doses,
    ManyArms,
    Prices,
    ShortRun,
    SimilarArms,
    SteadyContexts,
    Table,
)
from .problems.synthetic import FixedArms, RareRewards, Stores
from .problems.tables import JesterArms, JesterUsers, Mushroom, School
from .problems.variants import Columns, Drift, Outlier, Rescaled, WheelAfterWheels
from .problems.wide import DeepColumns

MakeEnvironment = Callable[[int, str | Path | None], Any]

NETWORKS = ("multitask-greedy", "gfucb-pooled")
INPUTS = tuple(
    f"{kind}-{s}" for kind in ("linear", "fourier") for s in ("task", "pooled", "shared")
)
ARMS = tuple(
    f"{kind}-arms-{s}" for kind in ("linear", "fourier") for s in ("task", "pooled", "shared")
)
# With one task, sharing makes no difference.
ONE_TASK = (
    "linear-task",
    "linear-arms-task",
    "fourier-task",
    "fourier-arms-task",
    "multitask-greedy",
)
ITEMS = ("linear-task", "linear-pooled", "linear-shared", "als", *NETWORKS)
DELTAS = (0.5, 0.7, 0.9, 0.95, 0.99)
LONG_ROUNDS = 20_000


@dataclass(frozen=True)
class Family:
    """Problems of one kind.

    Attributes:
        name: in commands, directories and tables.
        make: from (seed, data directory) to the environment.
        num_rounds: T.
        quick_rounds: T of the quick version; 0 leaves the family out of it.
        alternatives: contenders that the default is compared with.
        has_oracle: whether the true features make the rewards linear.
        reports_stuck: whether tasks can be stuck on a wrong arm.
    """

    name: str
    make: MakeEnvironment
    num_rounds: int
    quick_rounds: int
    alternatives: tuple[str, ...]
    has_oracle: bool = False
    reports_stuck: bool = False

    @property
    def contenders(self) -> tuple[str, ...]:
        """The default, the alternatives, and the limits of what is possible."""
        oracle = ("oracle-ucb",) if self.has_oracle else ()
        return (DEFAULT, *self.alternatives, *oracle, "uniform")


def digits(seed: int, data_dir: str | Path | None, *, num_tasks: int = 10) -> ImageBandit:
    """8 x 8 digits: ten iid images, uniform reward maps, noise 0.1."""
    return ImageBandit(
        load_digits(), num_tasks=num_tasks, reward_map="uniform", noise_scale=0.1, seed=seed
    )


def mnist(seed: int, data_dir: str | Path | None) -> ImageBandit:
    """MNIST images with the reward maps and the noise of figure 1 of the paper: ten tasks."""
    return ImageBandit(load_mnist(data_dir), num_tasks=10, seed=seed)


def wheel(seed: int, data_dir: str | Path | None, *, delta: float) -> WheelBandit:
    """One wheel."""
    return WheelBandit([delta], seed=seed)


def later_wheel(seed: int, data_dir: str | Path | None, *, delta: float) -> WheelAfterWheels:
    """A wheel after the log of 64 others."""
    return WheelAfterWheels(delta, seed)


def mushroom(seed: int, data_dir: str | Path | None) -> Mushroom:
    """Eat or leave."""
    return Mushroom(data_dir, seed=seed)


def jester_arms(seed: int, data_dir: str | Path | None) -> JesterArms:
    """Eight jokes as arms."""
    return JesterArms(data_dir, seed=seed)


def jester_users(seed: int, data_dir: str | Path | None, *, num_tasks: int) -> JesterUsers:
    """Users as tasks."""
    return JesterUsers(data_dir, num_tasks=num_tasks, seed=seed)


def school(seed: int, data_dir: str | Path | None) -> School:
    """Schools as tasks."""
    return School(data_dir, seed=seed)


def stores(seed: int, data_dir: str | Path | None) -> Stores:
    """Fifty stores, five promotions."""
    return Stores(seed=seed)


def fixed_arms(seed: int, data_dir: str | Path | None) -> FixedArms:
    """Twenty tasks with ten arms each."""
    return FixedArms(seed=seed)


def linear(seed: int, data_dir: str | Path | None) -> Rescaled:
    """Rewards that are linear in the inputs."""
    return Rescaled(linear_bandit(num_tasks=10, num_actions=10, seed=seed), value_range=(-1.0, 1.0))


def finite(seed: int, data_dir: str | Path | None) -> Rescaled:
    """Rewards that are linear in one of eight non-linear representations."""
    return Rescaled(finite_bandit(num_tasks=10, num_actions=10, seed=seed), value_range=(-1.0, 1.0))


def rare(seed: int, data_dir: str | Path | None) -> RareRewards:
    """Clicks."""
    return RareRewards(seed=seed)


def deep_columns(seed: int, data_dir: str | Path | None) -> DeepColumns:
    """Thirty columns in which rewards are those of a network."""
    return DeepColumns(seed=seed)


def digit_classes(seed: int, data_dir: str | Path | None) -> ImageClasses:
    """Which of ten digits is it?"""
    return ImageClasses(load_digits(), seed=seed)


def table_classes(seed: int, data_dir: str | Path | None, *, name: BundledTable) -> TableClasses:
    """Which class does a row of a small table have?"""
    return TableClasses(name, seed=seed)


def drift(seed: int, data_dir: str | Path | None) -> Drift:
    """Digits whose reward maps change after 200 rounds."""
    return Drift(digits(seed, data_dir), at=200)


def outlier(seed: int, data_dir: str | Path | None) -> Outlier:
    """Digits with one reward of about -999; regret of the other tasks."""
    return Outlier(digits(seed, data_dir))


def small_rewards(seed: int, data_dir: str | Path | None) -> Rescaled:
    """Digits with rewards in 0 .. 0.01, range not given."""
    return Rescaled(digits(seed, data_dir), scale=0.01, true_range=(0.0, 0.01))


def shifted_rewards(seed: int, data_dir: str | Path | None) -> Rescaled:
    """Digits with rewards in 100 .. 101, range not given."""
    return Rescaled(digits(seed, data_dir), offset=100.0, true_range=(100.0, 101.0))


def columns(seed: int, data_dir: str | Path | None, *, factor: float) -> Columns:
    """Digits as 64 float columns, one of them times `factor`."""
    return Columns(digits(seed, data_dir), column=20, factor=factor)


def small_table(seed: int, data_dir: str | Path | None, *, kind: type[Table]) -> Table:
    """A small synthetic problem."""
    return kind(seed=seed)


def _without_varying_contexts() -> list[Family]:
    one_task = ("linear-task", "fourier-task", "multitask-greedy")
    several = (*INPUTS, *NETWORKS)
    kinds: list[tuple[str, type[Table], int, int, tuple[str, ...], bool]] = [
        ("prices", Prices, 150, 30, several, False),
        ("doses", Doses, 150, 30, one_task, False),
        ("similar-arms", SimilarArms, 100, 20, several, True),
        ("many-arms", ManyArms, 200, 40, one_task, True),
        ("steady-contexts", SteadyContexts, 150, 0, (*ARMS, *several), False),
        ("short-run", ShortRun, 40, 40, one_task, False),
    ]
    return [
        Family(name, partial(small_table, kind=kind), rounds, quick, names, reports_stuck=stuck)
        for name, kind, rounds, quick, names, stuck in kinds
    ]


def _many_tasks() -> list[Family]:
    images = (*INPUTS, *NETWORKS)
    sizes = ((10, 200, 60), (30, 400, 0), (100, 200, 0))
    return [
        *(
            Family(f"digits-{m}", partial(digits, num_tasks=m), t, quick, images, has_oracle=True)
            for m, t, quick in sizes
        ),
        Family("mnist-10", mnist, 600, 0, images, has_oracle=True),
        Family("school", school, 100, 20, images),
        Family("stores", stores, 200, 30, (*ARMS, *images), has_oracle=True),
        Family("fixed-arms", fixed_arms, 300, 100, images, reports_stuck=True),
        Family("linear", linear, 200, 60, images, has_oracle=True),
        Family("finite", finite, 200, 0, images, has_oracle=True),
        Family("deep-columns", deep_columns, 200, 0, images, has_oracle=True),
        Family("rare-rewards", rare, 1000, 100, (*ARMS, *images)),
        Family("jester-users-300", partial(jester_users, num_tasks=300), 60, 20, ITEMS),
        Family("jester-users-1000", partial(jester_users, num_tasks=1000), 60, 0, ITEMS),
    ]


def _robustness() -> list[Family]:
    images = ("linear-task", "linear-shared", "fourier-task", "fourier-shared", "multitask-greedy")
    return [
        Family("drift", drift, 400, 0, images),
        Family("outlier", outlier, 200, 100, images),
        Family("rewards-0-0.01", small_rewards, 200, 0, images),
        Family("rewards-100-101", shifted_rewards, 200, 0, images),
        *(
            Family(f"columns-x{f}", partial(columns, factor=float(f)), 200, 0, images)
            for f in (1, 30, 200)
        ),
    ]


def _small_tables() -> list[Family]:
    tables: list[tuple[BundledTable, int]] = [("iris", 150), ("wine", 200), ("breast_cancer", 200)]
    return [
        Family(
            f"{name.replace('_', '-')}-classes",
            partial(table_classes, name=name),
            num_rounds,
            0,
            ONE_TASK,
            has_oracle=True,
        )
        for name, num_rounds in tables
    ]


def _one_task() -> list[Family]:
    after = ("linear-arms-task", "linear-arms-shared", "fourier-arms-pooled", "fourier-arms-shared")
    return [
        *(
            Family(f"wheel-{d:g}", partial(wheel, delta=d), 2000, quick, ONE_TASK, has_oracle=True)
            for d, quick in zip(DELTAS, (300, 0, 300, 0, 0), strict=True)
        ),
        *(
            Family(
                f"wheel-after-64-{d:g}",
                partial(later_wheel, delta=d),
                2000,
                0,
                (*after, "multitask-greedy"),
            )
            for d in DELTAS
        ),
        *(
            Family(f"wheel-long-{d:g}", partial(wheel, delta=d), LONG_ROUNDS, 0, ONE_TASK)
            for d in DELTAS[:-1]
        ),
        Family("mushroom", mushroom, 2000, 200, ONE_TASK, has_oracle=True),
        Family("jester-arms", jester_arms, 3839, 0, ONE_TASK),
        Family("digit-classes", digit_classes, 1000, 0, ONE_TASK, has_oracle=True),
        *_small_tables(),
    ]


FAMILIES = {
    family.name: family
    for family in (*_many_tasks(), *_without_varying_contexts(), *_one_task(), *_robustness())
}
