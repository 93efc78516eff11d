"""The draws of selectors that explore at random."""

from dataclasses import replace

import torch

from gfucb.exploration.draws import generator_for


def test_draws_depend_on_seed_selector_number_of_samples_and_tasks_only(finite_case):
    case, more = finite_case(0, num_rounds=2), finite_case(0, num_rounds=3)
    few, many = case.confidence_set(1.0), more.confidence_set(2.0)
    all_rows = case.action_sets()
    first = replace(
        all_rows,
        candidates=all_rows.candidates[:1],
        tasks=all_rows.tasks[:1],
        available=all_rows.available[:1],
    )
    streams = [
        generator_for(0, "squarecb", few, all_rows),
        generator_for(1, "squarecb", few, all_rows),
        generator_for(0, "neural-ts", few, all_rows),
        generator_for(0, "squarecb", many, all_rows),
        generator_for(0, "squarecb", few, first),
        generator_for(0, "squarecb", few, replace(first, tasks=first.tasks + 1)),
    ]
    draws = [float(torch.rand((), generator=stream)) for stream in streams]
    assert len(set(draws)) == len(draws)
    again = generator_for(0, "squarecb", few, case.action_sets(index=7))
    assert float(torch.rand((), generator=again)) == draws[0]
