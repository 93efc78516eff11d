"""Checks of everything that comes in from outside, before any state changes."""
