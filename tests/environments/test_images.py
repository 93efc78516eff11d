"""Image files: reading, downloading and refused files."""

import gzip
import hashlib
import os
import struct
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch

from gfucb.core.errors import DataFileError
from gfucb.environments import fetch_mnist, images, load_digits, load_mnist


def idx(array: np.ndarray) -> bytes:
    header = struct.pack(f">I{array.ndim}I", 0x0800 + array.ndim, *array.shape)
    return header + array.astype(np.uint8).tobytes()


@pytest.fixture
def directory(tmp_path):
    pixels = np.arange(3 * 4 * 5).reshape(3, 4, 5)
    for prefix in ("train", "t10k"):
        (tmp_path / f"{prefix}-images-idx3-ubyte").write_bytes(idx(pixels))
        compressed = gzip.compress(idx(np.array([7, 0, 9])))
        (tmp_path / f"{prefix}-labels-idx1-ubyte.gz").write_bytes(compressed)
    return tmp_path


def test_idx_files_are_read_with_and_without_gzip(directory):
    data = load_mnist(directory)
    assert data.images.shape == (3, 4, 5) and data.images.dtype == torch.uint8
    assert data.images[2, 3, 4] == 59
    assert data.labels.tolist() == [7, 0, 9]
    assert len(load_mnist(directory, split="test").labels) == 3


def test_directory_from_environment_variable(directory, monkeypatch):
    monkeypatch.setenv("GFUCB_DATA_DIR", str(directory))
    assert len(load_mnist().labels) == 3


def test_files_in_a_subdirectory(directory, tmp_path_factory):
    parent = tmp_path_factory.mktemp("parent")
    (parent / "mnist").symlink_to(directory)
    assert len(load_mnist(parent).labels) == 3


def test_no_directory_given(monkeypatch):
    monkeypatch.delenv("GFUCB_DATA_DIR", raising=False)
    with pytest.raises(DataFileError, match=r"--data-dir.*GFUCB_DATA_DIR"):
        load_mnist()


def test_missing_directory_lists_paths_and_the_fetch_command(tmp_path):
    with pytest.raises(DataFileError) as error:
        load_mnist(tmp_path / "nowhere")
    text = str(error.value)
    assert "train-images-idx3-ubyte" in text
    assert f"no directory {tmp_path / 'nowhere'}" in text
    assert str(tmp_path / "nowhere" / "mnist" / "train-images-idx3-ubyte.gz") in text
    assert "gfucb fetch-mnist" in text


def test_missing_file_is_named(directory):
    (directory / "train-labels-idx1-ubyte.gz").unlink()
    with pytest.raises(DataFileError, match="train-labels-idx1-ubyte"):
        load_mnist(directory)


@pytest.mark.parametrize("num_bytes", [3, 12, 40])
def test_truncated_file_is_named(directory, num_bytes):
    path = directory / "train-images-idx3-ubyte"
    path.write_bytes(path.read_bytes()[:num_bytes])
    with pytest.raises(DataFileError, match=r"train-images-idx3-ubyte is truncated"):
        load_mnist(directory)


def test_truncated_gzip_file_is_named(directory):
    path = directory / "train-labels-idx1-ubyte.gz"
    path.write_bytes(path.read_bytes()[:-6])
    with pytest.raises(DataFileError, match=r"labels-idx1-ubyte\.gz is truncated"):
        load_mnist(directory)


def test_file_with_another_magic_number_is_refused(directory):
    (directory / "train-images-idx3-ubyte").write_bytes(idx(np.zeros((3, 4))) + bytes(20))
    with pytest.raises(DataFileError, match=r"3 axes.*0x00000802, expected 0x00000803"):
        load_mnist(directory)


def test_numbers_of_images_and_labels_must_agree(directory):
    (directory / "train-labels-idx1-ubyte.gz").write_bytes(gzip.compress(idx(np.array([1, 2]))))
    with pytest.raises(DataFileError, match=r"3 images but .* 2 labels"):
        load_mnist(directory)


@pytest.fixture
def published(tmp_path, monkeypatch):
    """Four small files whose checksums replace the published ones."""
    source, sums = tmp_path / "source", {}
    source.mkdir()
    for name in images.MNIST_FILES:
        content = gzip.compress(idx(np.zeros((2, 2, 2) if "images" in name else 2)), mtime=0)
        (source / f"{name}.gz").write_bytes(content)
        sums[name] = hashlib.sha256(content).hexdigest()
    monkeypatch.setattr(images, "MNIST_FILES", sums)
    return source


def test_fetch_downloads_missing_files_only(published, tmp_path):
    target = tmp_path / "target"
    paths = fetch_mnist(target, source=published.as_uri())
    assert len(paths) == 4 and len(load_mnist(target).labels) == 2
    before = [path.stat().st_mtime_ns for path in paths]
    assert [p.stat().st_mtime_ns for p in fetch_mnist(target, "file:///nowhere")] == before


def test_download_with_wrong_checksum_is_discarded(published, tmp_path):
    (published / "train-images-idx3-ubyte.gz").write_bytes(b"something else")
    with pytest.raises(DataFileError, match="not the published file"):
        fetch_mnist(tmp_path / "target", source=published.as_uri())
    assert list((tmp_path / "target").iterdir()) == []


def test_two_processes_may_fetch_into_one_directory(published, tmp_path, monkeypatch):
    both, replace = threading.Barrier(2), os.replace

    def replaced(source: Path, target: Path) -> None:
        both.wait(timeout=60)  # both have written their file
        replace(source, target)

    def download(address: str) -> bytes:
        both.wait(timeout=60)  # neither has found the file of the other
        return (published / address.rpartition("/")[2]).read_bytes()

    monkeypatch.setattr(os, "replace", replaced)
    monkeypatch.setattr(images, "_download", download)
    with ThreadPoolExecutor(2) as threads:
        fetched = [threads.submit(fetch_mnist, tmp_path / "target") for _ in range(2)]
    assert fetched[0].result() == fetched[1].result()
    assert len(list((tmp_path / "target").iterdir())) == 4


def test_failed_download_names_the_address(tmp_path):
    with pytest.raises(DataFileError, match=r"cannot download file:///nowhere/train"):
        fetch_mnist(tmp_path, source="file:///nowhere")


def test_sklearn_digits():
    data = load_digits()
    assert data.images.shape == (1797, 8, 8) and data.images.dtype == torch.uint8
    assert int(data.images.max()) == 255
    assert sorted(data.labels.unique().tolist()) == list(range(10))
