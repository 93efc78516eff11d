"""Fixtures of the bandit tests."""

import pytest

from gfucb.models import table_sizes


@pytest.fixture
def few_frequencies(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer features of tables: matrices are small, and tests that compare agents are quick."""
    monkeypatch.setattr(table_sizes, "MOST_FREQUENCIES", table_sizes.FEWEST_FREQUENCIES)
