"""One virtual environment for each package, from pinned requirements."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from .plan import Peer

REQUIREMENTS = Path(__file__).with_name("requirements")
STAMP = "requirements.sha256"


def python_of(peer: Peer, directory: Path) -> Path:
    """The interpreter of a package."""
    if peer.is_own:
        return Path(sys.executable)
    return directory / peer.name / "bin" / "python"


def make_environment(peer: Peer, directory: Path, say: Callable[[str], None]) -> None:
    """Make the environment of a package, unless it was made from the same requirements."""
    if peer.is_own:
        return
    files = _files(peer)
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()
    home = directory / peer.name
    stamp = home / STAMP
    if stamp.is_file() and stamp.read_text() == digest:
        return
    say(f"installing {peer.name} into {home}")
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(home)], check=True)
    for path in files:
        words = ["--no-deps"] if path.stem.endswith("-without-dependencies") else []
        command = [str(python_of(peer, directory)), "-m", "pip", "install", "--quiet", *words]
        subprocess.run([*command, "--requirement", str(path)], check=True)
    stamp.write_text(digest)


def _files(peer: Peer) -> list[Path]:
    """The requirements of a package; those that are installed without dependencies come last."""
    found = [REQUIREMENTS / f"{peer.name}.txt"]
    alone = REQUIREMENTS / f"{peer.name}-without-dependencies.txt"
    return [*found, alone] if alone.is_file() else found
