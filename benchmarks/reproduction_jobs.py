"""Compute jobs of a reproduction, without its figure and verdicts, which need more packages.

    python benchmarks/without_extras.py benchmarks.reproduction_jobs lock --out DIRECTORY

Several of these commands may share a directory. `gfucb reproduce lock --out DIRECTORY`, on any
machine, then computes what is missing and writes the results.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from gfucb.paper import REPRODUCTIONS, Options, reproduce


def main(words: Sequence[str] | None = None) -> None:
    """Compute the jobs that the command line asks for."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.reproduction_jobs",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", choices=list(REPRODUCTIONS))
    parser.add_argument("--out", type=Path, required=True, help="results directory")
    parser.add_argument("--only", nargs="+", default=["*"], help="patterns of names of jobs")
    parser.add_argument("--quick", action="store_true", help="the small version")
    parser.add_argument("--data-dir", help="directory with the files of MNIST")
    parser.add_argument("--device", default="cpu", help="of the networks")
    given = parser.parse_args(words)
    for pattern in given.only:
        reproduce(
            given.name,
            REPRODUCTIONS[given.name],
            given.out,
            Options(quick=given.quick, data_dir=given.data_dir, device=given.device),
            advance=lambda done: print(f"{done} jobs", flush=True),
            only=pattern,
            only_jobs=True,
        )


if __name__ == "__main__":
    main()
