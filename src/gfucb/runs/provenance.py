"""Which code, versions and machine computed something: one format for all results."""

from __future__ import annotations

import importlib.metadata
import platform
import subprocess
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import torch

import gfucb

PACKAGES = ("torch", "numpy", "scipy", "scikit-learn", "safetensors")


def current_provenance(device: str = "cpu") -> dict[str, Any]:
    """Versions, commit and machine of this process; `device` is where networks are."""
    commit, uncommitted_changes = _checkout()
    return {
        "gfucb": gfucb.__version__,
        "commit": commit,
        "uncommitted_changes": uncommitted_changes,
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        "device": device_name(device),
        "threads": torch.get_num_threads(),
        "versions": {name: importlib.metadata.version(name) for name in PACKAGES},
    }


def timestamp() -> str:
    """The present time, UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


@cache
def device_name(device: str) -> str:
    """The model of a processor or GPU, such as "NVIDIA H200"."""
    if torch.device(device).type == "cuda":
        return torch.cuda.get_device_name(device)
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or platform.machine())


# Once in a process: the code that runs was imported then, whatever is committed later.
@cache
def _checkout() -> tuple[str, bool]:
    """The commit of this package, empty without a checkout, and whether files differ from it."""
    changes = _git("status", "--porcelain", "--untracked-files=no")
    return _git("rev-parse", "HEAD"), bool(changes)


def _git(*arguments: str) -> str:
    try:
        return subprocess.run(
            ["git", *arguments],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""
