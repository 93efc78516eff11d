"""Checks of everything that comes in from outside, before any state changes.

`settings` checks what a component is constructed with, `bandits` and `episodes` what an agent is
called with, `states` the tensors of a saved state. `arrays` converts numbers of any kind.
"""
