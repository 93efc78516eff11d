"""What a measurement on another machine says about that machine; needs torch only."""

from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path
from typing import Any

import torch


def provenance(commit: str | None) -> dict[str, Any]:
    """Code, versions and machine; the packages of the command line may be missing."""
    try:
        from gfucb.runs.provenance import current_provenance

        return current_provenance()
    except ImportError:
        words = ["git", "rev-parse", "HEAD"]
        found = subprocess.run(words, capture_output=True, text=True, check=False).stdout.strip()
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
        return {
            "commit": commit or found,
            "python": platform.python_version(),
            "device": names[0] if names else platform.machine(),
            "versions": {"torch": torch.__version__},
        }


def cpus() -> dict[str, Any]:
    """What the system says about its CPUs, as far as it does."""
    siblings = Path("/sys/devices/system/cpu").glob("cpu[0-9]*/topology/thread_siblings_list")
    quota = Path("/sys/fs/cgroup/cpu.max")
    return {
        "cpus": os.cpu_count(),
        "usable_cpus": len(os.sched_getaffinity(0)),
        "hardware_threads_of_a_core": sorted({path.read_text().strip() for path in siblings}),
        "cpu_quota": quota.read_text().strip() if quota.exists() else "",
        "load": os.getloadavg()[0],
    }


def stolen_seconds() -> float:
    """What other virtual machines took of the CPUs since the start."""
    words = Path("/proc/stat").read_text().splitlines()[0].split()
    return int(words[8]) / os.sysconf("SC_CLK_TCK") if len(words) > 8 else 0.0
