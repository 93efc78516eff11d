"""Run a benchmark on a machine without pandas and matplotlib, from a checkout.

    python3 benchmarks/without_extras.py benchmarks.episodic run --problems lock-6 --seeds 2

`gfucb.runs` loads the packages of reports when it is imported; its modules of jobs and stores do
not need them.
"""

from __future__ import annotations

import runpy
import sys
import types
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def main() -> None:
    """Stand in for the package `gfucb.runs`, then run the module."""
    sys.path[:0] = [str(ROOT / "src"), str(ROOT)]
    package = types.ModuleType("gfucb.runs")
    package.__path__ = [str(ROOT / "src" / "gfucb" / "runs")]
    sys.modules["gfucb.runs"] = package
    sys.argv = sys.argv[1:]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
