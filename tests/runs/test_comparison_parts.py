"""A comparison in parts: seeds computed by several commands, and who computed them."""

import json

import pandas as pd

import gfucb
from gfucb.runs.store import read_provenance


def test_seeds_computed_in_parts_are_the_comparison_of_all(tmp_path):
    how = {"num_rounds": 2}
    agents = ["uniform"]
    for seeds in (range(1), range(1, 2)):
        gfucb.compare("digits", agents, seeds=seeds, out=tmp_path / "runs", **how)
    joined = gfucb.compare("digits", agents, seeds=range(2), out=tmp_path / "runs", **how)
    alone = gfucb.compare("digits", agents, seeds=range(2), **how)
    order = ["agent", "seed", "round"]
    columns = [*order, "regret"]
    tables = [r.rows.sort_values(order, ignore_index=True)[columns] for r in (joined, alone)]
    pd.testing.assert_frame_equal(*tables, check_dtype=False)

    joined.save(tmp_path / "all")
    own = {"started", "finished", "cpu_seconds"}
    run = tmp_path / "runs" / "uniform" / "seed=1"
    stated = {k: v for k, v in read_provenance(run).items() if k not in own}
    assert json.loads((tmp_path / "all" / "provenance.json").read_text()) == stated

    other = read_provenance(run) | {"commit": "of another machine"}
    (run / "provenance.json").write_text(json.dumps(other))
    gfucb.compare("digits", agents, seeds=range(2), out=tmp_path / "runs", **how).save(tmp_path)
    found = json.loads((tmp_path / "provenance.json").read_text())["computed_by"]
    assert [record["commit"] for record in found].count("of another machine") == 1
    assert len(found) == 2
