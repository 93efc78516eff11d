"""Bandit environments of the suite that are not part of the library."""
