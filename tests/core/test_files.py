"""Atomic replacement of files."""

import os
import threading
from pathlib import Path

import pytest

from gfucb.core.files import atomic_write, is_temporary


def test_content_is_replaced_and_nothing_else_is_left(tmp_path):
    path = tmp_path / "file.txt"
    for text in ("old", "new"):
        atomic_write(path, lambda temporary, text=text: temporary.write_text(text))
        assert path.read_text() == text
    assert [entry.name for entry in tmp_path.iterdir()] == ["file.txt"]


def test_a_failed_write_leaves_the_old_content_and_no_temporary_file(tmp_path):
    path = tmp_path / "file.txt"
    path.write_text("old")

    def fail(temporary: Path) -> None:
        temporary.write_text("half")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        atomic_write(path, fail)
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file.txt"]


def test_two_writers_of_one_path_never_mix_their_bytes(tmp_path):
    path = tmp_path / "file.txt"
    both_have_written = threading.Barrier(2)

    def write(letter: str) -> None:
        def slowly(temporary: Path) -> None:
            temporary.write_text(letter * 1000)
            both_have_written.wait(timeout=60)

        atomic_write(path, slowly)

    threads = [threading.Thread(target=write, args=(letter,)) for letter in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert path.read_text() in ("a" * 1000, "b" * 1000)


def test_file_and_directory_are_synced_before_and_after_the_replacement(tmp_path, monkeypatch):
    events: list[str] = []
    sync, replace = os.fsync, os.replace

    def synced(descriptor: int) -> None:
        events.append("directory" if os.path.isdir(f"/dev/fd/{descriptor}") else "file")
        sync(descriptor)

    def replaced(source: Path, target: Path) -> None:
        events.append("replace")
        replace(source, target)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", replaced)
    atomic_write(tmp_path / "file.txt", lambda temporary: temporary.write_text("new"))
    assert events == ["file", "replace", "directory"]


def test_files_get_the_permissions_of_any_new_file(tmp_path):
    (tmp_path / "plain").write_text("")
    atomic_write(tmp_path / "atomic", lambda temporary: temporary.write_text(""))
    assert (tmp_path / "atomic").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_temporary_names_are_recognised(tmp_path):
    names: list[Path] = []
    atomic_write(tmp_path / "a", lambda path: (names.append(path), path.write_text("")))
    assert is_temporary(names[0]) and not is_temporary(tmp_path / "a")
