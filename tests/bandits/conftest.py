"""Fixtures of the bandit tests."""

import pytest

from gfucb.models import table_features


@pytest.fixture
def few_frequencies(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer features of tables: matrices are small, and tests that compare agents are quick."""
    monkeypatch.setattr(table_features, "MOST_FREQUENCIES", table_features.FEWEST_FREQUENCIES)
