"""What a Ray worker does: it computes one job and yields messages.

A worker may be on another machine. It gets the plugins as text, and the data files as bytes from
Ray's object store, one transfer for each machine.
"""

from __future__ import annotations

import platform
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ray
import scipy.linalg  # noqa: F401  (loads its BLAS, so that `threadpool_limits` finds it)
from threadpoolctl import threadpool_limits

from gfucb.core.data_directories import copied_directory
from gfucb.core.errors import InvalidInputError
from gfucb.runs.jobs import Job
from gfucb.runs.plugins import PluginSource, load_plugin_sources
from gfucb.runs.pool import one_thread
from gfucb.runs.provenance import current_provenance
from gfucb.runs.remote_runs import Failed, Message, described, messages

# Larger data directories are not sent.
LARGEST_DATA = 500 * 2**20
MOST_FILES = 1000


@dataclass(frozen=True)
class Files:
    """The files of a data directory: their content by relative path."""

    contents: Mapping[str, bytes]

    @classmethod
    def read(cls, directory: str) -> Files | None:
        """All files below a directory; None if it does not exist or is too large to be sent."""
        contents: dict[str, bytes] = {}
        size = 0
        for path in sorted(Path(directory).rglob("*")):
            if path.is_file():
                size += path.stat().st_size
                if size > LARGEST_DATA or len(contents) == MOST_FILES:
                    return None
                contents[path.relative_to(directory).as_posix()] = path.read_bytes()
        return cls(contents) if contents else None

    def write(self, directory: Path) -> None:
        """Write them below another directory."""
        for name, content in self.contents.items():
            path = directory / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)


@dataclass(frozen=True)
class Context:
    """What all jobs of a sweep have in common.

    Attributes:
        version, commit: of the package where the jobs were made.
        plugins: to be imported before a job is read.
        device: where networks are.
        report_seconds: rows are sent this often.
        data_dir: the data directory of the jobs.
        files: a reference to its `Files` in the object store; nothing if workers see its disk.
    """

    version: str
    commit: str
    plugins: tuple[PluginSource, ...] = ()
    device: str = "cpu"
    report_seconds: float = 0.5
    data_dir: str = ""
    files: tuple[ray.ObjectRef[Files], ...] = ()


def compute(
    context: Context, reference: list[ray.ObjectRef[Job]], saved: bytes | None
) -> Iterator[Message]:
    """Compute a job after the checkpoint `saved`.

    Args:
        context: common to all jobs.
        reference: the job, in a list: Ray would read the job itself before its plugins are there.
        saved: the content of the file of a checkpoint.
    """
    with threadpool_limits(limits=1), one_thread(), _local_copy(context):
        try:
            provenance = current_provenance(context.device)
            require_same_code(context, provenance)
            load_plugin_sources(context.plugins)
            job = ray.get(reference[0])
        except Exception as error:  # for example, the machine lacks a module of the job
            yield Failed(described(error))
            return
        origin = {"engine": f"ray {ray.__version__}", "node": platform.node()}
        yield from messages(job, saved, provenance | origin, context.report_seconds)


def require_same_code(context: Context, own: Mapping[str, Any]) -> None:
    """Refuse a machine with another version of the package: its rows could differ."""
    commits = {context.commit, own["commit"]} - {""}  # empty where there is no checkout
    if own["gfucb"] != context.version or len(commits) > 1:
        raise InvalidInputError(
            f"machine {platform.node()} has gfucb {own['gfucb']} {own['commit']}, the jobs were "
            f"made by gfucb {context.version} {context.commit}; install the same on all machines"
        )


@contextmanager
def _local_copy(context: Context) -> Iterator[None]:
    """Read the data from a temporary directory while this context is open, if they were sent."""
    if not context.files:
        yield
        return
    with tempfile.TemporaryDirectory(prefix="gfucb-data-") as name:

        def copy() -> Path:
            ray.get(context.files[0]).write(Path(name))
            return Path(name)

        with copied_directory(context.data_dir, copy):
            yield
