"""Run `main.py` of a BRIEE clone as it is, with small substitutes for gym and wandb.

    python benchmarks/peers/briee_launcher.py CLONE LOG [arguments of its main.py]

BRIEE was written for gym 0.14 and a numpy that still had `np.int`. It uses of gym a base class and
two spaces, and of wandb the log of its evaluations, which is appended to the file LOG as lines of
JSON with the seconds since the start. `benchmarks/peers/briee.py` calls this program.
"""

from __future__ import annotations

import json
import os
import resource
import runpy
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np


class Env:
    """gym.Env, as far as it is used."""

    def seed(self, seed: int | None = None) -> None:
        """The environment draws from numpy's global generator, which main.py seeds."""


class Discrete:
    """gym.spaces.Discrete, as far as it is used."""

    def __init__(self, n: int) -> None:
        self.n = n

    def seed(self, seed: int | None = None) -> None:
        """Actions are never drawn from the space."""


class Box:
    """gym.spaces.Box, as far as it is used."""

    def __init__(self, low: float, high: float, shape: tuple[int, ...], dtype: type) -> None:
        self.low, self.high, self.shape, self.dtype = low, high, shape, dtype


def cpu_seconds() -> float:
    """Of this process and of its workers that have ended."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def wandb_module(log_path: Path) -> ModuleType:
    """A module with wandb's `init` and `log`, which appends to a file."""
    start = time.monotonic()

    @contextmanager
    def init(**settings: Any) -> Iterator[None]:
        yield

    def log(values: Mapping[str, Any]) -> None:
        seconds = {"seconds": time.monotonic() - start, "cpu_seconds": cpu_seconds()}
        line = {name: float(value) for name, value in values.items()} | seconds
        with log_path.open("a") as stream:
            stream.write(json.dumps(line) + "\n")

    module = ModuleType("wandb")
    module.__dict__.update(init=init, log=log)
    return module


def main() -> None:
    """Install the substitutes, then run main.py in its own directory."""
    clone, log_path = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    gym, spaces = ModuleType("gym"), ModuleType("gym.spaces")
    spaces.__dict__.update(Discrete=Discrete, Box=Box)
    gym.__dict__.update(Env=Env, spaces=spaces)
    sys.modules |= {"gym": gym, "gym.spaces": spaces, "wandb": wandb_module(log_path)}
    for name, kind in (("int", int), ("float", float)):  # aliases that numpy has removed
        if name not in np.__dict__:
            setattr(np, name, kind)
    os.chdir(clone)
    sys.path.insert(0, str(clone))
    sys.argv = ["main.py", *sys.argv[3:]]
    runpy.run_path(str(clone / "main.py"), run_name="__main__")


if __name__ == "__main__":
    main()
