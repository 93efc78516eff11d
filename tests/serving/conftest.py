"""Fixtures of the serving tests."""

import pytest

from gfucb.models import table_sizes


@pytest.fixture(autouse=True)
def few_frequencies(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer features of tables: matrices are small, and tests are quick."""
    monkeypatch.setattr(table_sizes, "MOST_FREQUENCIES", table_sizes.FEWEST_FREQUENCIES)


class Clock:
    """A clock that moves only when a test moves it."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()
