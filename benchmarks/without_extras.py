"""Run a module of a checkout on a machine without pandas and matplotlib.

    python3 benchmarks/without_extras.py benchmarks.episodic run --problems lock-6 --seeds 2
    python3 benchmarks/without_extras.py benchmarks.reproduction_jobs lock --out DIRECTORY

What computes rows does not need these packages, but modules of reports name them.
"""

from __future__ import annotations

import runpy
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("pandas", "matplotlib")


class StandIns(MetaPathFinder, Loader):
    """Stands in for packages that are not installed: modules whose names are empty classes."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The specification of a module of these packages; None for all others."""
        if fullname.partition(".")[0] in PACKAGES:
            return ModuleSpec(fullname, self, is_package=True)
        return None

    def exec_module(self, module: ModuleType) -> None:
        """Give the module a class for every public name that is asked for."""

        def placeholder(name: str) -> type:
            if name.startswith("__"):
                raise AttributeError(name)
            return type(name, (), {})

        vars(module)["__getattr__"] = placeholder


def main() -> None:
    """Install the finder after all others, then run the module."""
    sys.path[:0] = [str(ROOT / "src"), str(ROOT)]
    sys.meta_path.append(StandIns())
    sys.argv = sys.argv[1:]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
