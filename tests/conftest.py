"""What all tests share: the settings of their processes, and fixtures.

Imports are in the fixtures: the process that only distributes the tests then loads no torch.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from finite_cases import FiniteCase

# Small problems run slower on many threads than on one. Processes that tests start inherit it.
os.environ["OMP_NUM_THREADS"] = "1"
# Tests start many processes: the first ones store the bytecode of the package, others read it.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# Files that take longest, the longest first. A process runs all tests of a file: these start
# first, so that no process is left with a long one when the others have finished.
LONG_FILES = (
    "test_site",
    "test_ray_engine",
    "test_reproductions",
    "test_processes",
    "test_documents",
    "test_audit",
    "test_extension",
    "test_results_directory",
    "test_kills",
    "test_default_regret",
    "test_fine_tuning",
    "test_calibration",
    "test_backups",
    "test_jobs",
    "test_release",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    ranks = {name: rank for rank, name in enumerate(LONG_FILES)}
    items.sort(key=lambda item: ranks.get(item.path.stem, len(ranks)))


@pytest.fixture
def finite_case() -> type[FiniteCase]:
    """A class: its instances are made from seeds."""
    from finite_cases import FiniteCase

    return FiniteCase


@pytest.fixture
def restored_registries() -> Iterator[Callable[[], None]]:
    """Forget what a test registers, at its end or when the test calls the fixture."""
    from gfucb.paper import REPRODUCTIONS
    from gfucb.runs import ACTION_SELECTORS, AGENTS, ENVIRONMENTS, FITS, POLICIES, PRESETS, plugins
    from gfucb.runs.engines import ENGINES

    registries = (AGENTS, ENVIRONMENTS, FITS, ACTION_SELECTORS, POLICIES, PRESETS, REPRODUCTIONS)
    tables = [table for r in (*registries, ENGINES) for table in (r._entries, r._origins)] + [
        plugins._loaded
    ]
    before = [dict(table) for table in tables]

    def restore() -> None:
        for table, content in zip(tables, before, strict=True):
            table.clear()
            table.update(content)

    yield restore
    restore()
