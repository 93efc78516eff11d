"""Agents made of other agents: prefixes, means of diagnostics."""

from types import SimpleNamespace

import torch

from gfucb.core.nested import below, mean_diagnostics, with_prefix


def reporting(**row: float) -> SimpleNamespace:
    return SimpleNamespace(diagnostics=lambda: row)


def test_a_diagnostic_is_the_mean_over_the_agents_that_report_it():
    agents = [reporting(fits=1, bonus=0.5), reporting(fits=4), reporting(fits=1, bonus=1.5)]
    assert mean_diagnostics(agents) == {"fits": 2.0, "bonus": 1.0}


def test_names_below_a_prefix_are_those_that_start_with_it():
    state = {"heads": torch.zeros(1), "1/heads": torch.ones(1)}
    nested = with_prefix("1/", state)
    assert set(nested) == {"1/heads", "1/1/heads"}
    found = below("1/", nested | {"11/heads": torch.zeros(2), "a1/heads": torch.zeros(2)})
    assert found.keys() == state.keys()
    assert all(torch.equal(found[name], state[name]) for name in state)
