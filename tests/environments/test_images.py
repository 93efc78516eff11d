import gzip
import hashlib
import struct

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


def test_idx_files_are_read_packed_or_not(directory):
    data = load_mnist(directory)
    assert data.images.shape == (3, 4, 5) and data.images.dtype == torch.uint8
    assert data.images[2, 3, 4] == 59
    assert data.labels.tolist() == [7, 0, 9]
    assert len(load_mnist(directory, split="test").labels) == 3


def test_the_folder_may_come_from_the_environment(directory, monkeypatch):
    monkeypatch.setenv("GFUCB_DATA_DIR", str(directory))
    assert len(load_mnist().labels) == 3


def test_files_may_lie_in_a_subfolder(directory, tmp_path_factory):
    parent = tmp_path_factory.mktemp("parent")
    (parent / "mnist").symlink_to(directory)
    assert len(load_mnist(parent).labels) == 3


def test_no_folder_named(monkeypatch):
    monkeypatch.delenv("GFUCB_DATA_DIR", raising=False)
    with pytest.raises(DataFileError, match=r"--data-dir.*GFUCB_DATA_DIR"):
        load_mnist()


def test_a_missing_folder_says_where_was_looked_and_how_to_get_the_file(tmp_path):
    with pytest.raises(DataFileError) as error:
        load_mnist(tmp_path / "nowhere")
    text = str(error.value)
    assert "train-images-idx3-ubyte" in text
    assert f"no directory {tmp_path / 'nowhere'}" in text
    assert str(tmp_path / "nowhere" / "mnist" / "train-images-idx3-ubyte.gz") in text
    assert "gfucb fetch-mnist" in text


def test_a_missing_file_is_named(directory):
    (directory / "train-labels-idx1-ubyte.gz").unlink()
    with pytest.raises(DataFileError, match="train-labels-idx1-ubyte"):
        load_mnist(directory)


@pytest.mark.parametrize("kept", [3, 12, 40])
def test_a_torn_file_is_named(directory, kept):
    path = directory / "train-images-idx3-ubyte"
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(DataFileError, match=r"train-images-idx3-ubyte is torn"):
        load_mnist(directory)


def test_a_torn_gzip_file_is_named(directory):
    path = directory / "train-labels-idx1-ubyte.gz"
    path.write_bytes(path.read_bytes()[:-6])
    with pytest.raises(DataFileError, match=r"labels-idx1-ubyte\.gz is torn"):
        load_mnist(directory)


def test_a_file_of_another_kind_is_refused(directory):
    (directory / "train-images-idx3-ubyte").write_bytes(idx(np.zeros((3, 4))) + bytes(20))
    with pytest.raises(DataFileError, match=r"3 axes.*0x00000802, expected 0x00000803"):
        load_mnist(directory)


def test_images_and_labels_must_belong_together(directory):
    (directory / "train-labels-idx1-ubyte.gz").write_bytes(gzip.compress(idx(np.array([1, 2]))))
    with pytest.raises(DataFileError, match=r"3 images but .* 2 labels"):
        load_mnist(directory)


@pytest.fixture
def published(tmp_path, monkeypatch):
    """A source of four small files, whose checksums count as the published ones."""
    source, sums = tmp_path / "source", {}
    source.mkdir()
    for name in images.MNIST_FILES:
        content = gzip.compress(idx(np.zeros((2, 2, 2) if "images" in name else 2)), mtime=0)
        (source / f"{name}.gz").write_bytes(content)
        sums[name] = hashlib.sha256(content).hexdigest()
    monkeypatch.setattr(images, "MNIST_FILES", sums)
    return source


def test_fetching_checks_what_it_gets_and_keeps_what_is_there(published, tmp_path):
    target = tmp_path / "target"
    paths = fetch_mnist(target, source=published.as_uri())
    assert len(paths) == 4 and len(load_mnist(target).labels) == 2
    before = [path.stat().st_mtime_ns for path in paths]
    assert [p.stat().st_mtime_ns for p in fetch_mnist(target, "file:///nowhere")] == before


def test_a_download_with_a_wrong_checksum_is_not_kept(published, tmp_path):
    (published / "train-images-idx3-ubyte.gz").write_bytes(b"something else")
    with pytest.raises(DataFileError, match="not the published file"):
        fetch_mnist(tmp_path / "target", source=published.as_uri())
    assert list((tmp_path / "target").iterdir()) == []


def test_without_a_network_the_address_is_named(tmp_path):
    with pytest.raises(DataFileError, match=r"cannot download file:///nowhere/train"):
        fetch_mnist(tmp_path, source="file:///nowhere")


def test_the_embedded_digits():
    data = load_digits()
    assert data.images.shape == (1797, 8, 8) and data.images.dtype == torch.uint8
    assert int(data.images.max()) == 255
    assert sorted(data.labels.unique().tolist()) == list(range(10))
