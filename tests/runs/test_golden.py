"""Guards against accidental change: a short run in a linear environment, kept as a file.

If a change of numbers is meant, rewrite the file with `python tests/experiments/test_golden.py` and
say in the changelog by how much it moved.
"""

import csv
import tempfile
from pathlib import Path

import pytest

from gfucb.runs import BanditAgentConfig, RunConfig, SyntheticBanditConfig, run, store

GOLDEN = Path(__file__).with_name("golden_linear_rows.csv")
CONFIG = RunConfig(
    SyntheticBanditConfig("linear", num_tasks=3, num_actions=4),
    BanditAgentConfig(),
    num_rounds=15,
    seed=7,
)


def rows_of_a_fresh_run(directory: Path) -> list[dict[str, str]]:
    for _ in run(CONFIG, directory):
        pass
    return store.read_rows(directory)


def test_a_short_run_gives_the_rows_it_always_gave(tmp_path):
    fresh = rows_of_a_fresh_run(tmp_path / "run")
    with GOLDEN.open(newline="") as file:
        kept = list(csv.DictReader(file))
    assert len(fresh) == len(kept)
    for mine, golden in zip(fresh, kept, strict=True):
        assert mine.keys() == golden.keys()
        for name, value in golden.items():
            # Another processor may round otherwise; a change of decisions moves far more.
            assert float(mine[name]) == pytest.approx(float(value), rel=1e-6, abs=1e-6), name


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as directory:
        rows_of_a_fresh_run(Path(directory) / "run")
        GOLDEN.write_bytes((Path(directory) / "run" / "rows.csv").read_bytes())
