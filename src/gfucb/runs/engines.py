"""Engines: where the jobs of a sweep are computed.

An engine is added by a decorator; a plugin may do so:

    @register_engine("mine", description="Where it computes.")
    def mine(settings):
        return MyEngine(settings.processes)     # see `gfucb.runs.jobs.Engine`
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass

from gfucb.core.data_directories import DATA_DIR_VARIABLE
from gfucb.core.errors import InvalidInputError
from gfucb.runs.jobs import Engine, LocalEngine
from gfucb.runs.registry import Factory, Registry


@dataclass(frozen=True)
class EngineSettings:
    """How the jobs of a sweep are computed. The results do not depend on it.

    Attributes:
        processes: how many jobs at a time; None if the user did not say.
        default_processes: how many the command computes at a time on this machine.
        address: of a cluster.
        data_dir: the data directory of the jobs; by default that of the environment variable.
    """

    processes: int | None = None
    default_processes: int = 1
    address: str | None = None
    data_dir: str | None = None


@dataclass(frozen=True)
class EngineEntry:
    """An engine of the command line."""

    name: str
    factory: Callable[[EngineSettings], Engine]
    description: str


ENGINES: Registry[EngineEntry] = Registry("engine")


def register_engine(name: str, *, description: str = "") -> Callable[[Factory], Factory]:
    """Register the decorated factory (settings) -> engine under `name`."""

    def register(factory: Factory) -> Factory:
        ENGINES.register(name, EngineEntry(name, factory, description), factory)
        return factory

    return register


@register_engine("local", description="Processes of this machine, one thread each.")
def local(settings: EngineSettings) -> Engine:
    """Processes of this machine."""
    if settings.address is not None:
        raise InvalidInputError("engine local has no address; choose --engine ray")
    processes = settings.processes
    return LocalEngine(settings.default_processes if processes is None else processes)


@register_engine("ray", description="Tasks of Ray, on this machine or those of a cluster.")
def ray(settings: EngineSettings) -> Engine:
    """Ray: on this machine, or on the cluster at an address."""
    try:
        # Not at the top: Ray is optional.
        from gfucb.runs.ray_engine import RayEngine
    except ModuleNotFoundError as error:
        if error.name not in ("ray", "threadpoolctl"):
            raise
        raise InvalidInputError(
            f"engine ray needs {error.name}: pip install 'gfucb[experiments,ray]'"
        ) from error
    processes = settings.processes
    if processes is None and settings.address is None:
        processes = settings.default_processes
    data_dir = settings.data_dir or os.environ.get(DATA_DIR_VARIABLE)
    return RayEngine(settings.address, processes, data_dir)
