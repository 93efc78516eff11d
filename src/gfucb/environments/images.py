"""Labelled images: the digits of scikit-learn, and files in MNIST format from a directory."""

from __future__ import annotations

import gzip
import hashlib
import os
import urllib.error
import urllib.request
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gfucb.core.data_directories import DATA_DIR_VARIABLE, data_directory
from gfucb.core.errors import DataFileError
from gfucb.core.files import atomic_write

MNIST_SOURCE = "https://ossci-datasets.s3.amazonaws.com/mnist"
# File name -> sha256 of its .gz form, as published.
MNIST_FILES = {
    "train-images-idx3-ubyte": "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
    "train-labels-idx1-ubyte": "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
    "t10k-images-idx3-ubyte": "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
    "t10k-labels-idx1-ubyte": "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
}
# Where the files may be, relative to the data directory.
SUBDIRECTORIES = ("", "mnist", "MNIST/raw")

Split = Literal["train", "test"]


@dataclass(frozen=True, eq=False)
class LabelledImages:
    """Images as bytes, 0 to 255, and the class of each."""

    images: Tensor  # [image, height, width], uint8
    labels: Tensor  # [image], int64


def load_digits() -> LabelledImages:
    """The 1797 8 x 8 digits of scikit-learn, their 17 grey levels scaled to bytes."""
    from sklearn.datasets import load_digits as sklearn_digits

    pixels, labels = sklearn_digits(return_X_y=True)
    images = torch.from_numpy(np.rint(pixels * (255 / 16)).astype(np.uint8)).reshape(-1, 8, 8)
    return LabelledImages(images, torch.from_numpy(labels.astype(np.int64)))


def load_mnist(
    data_dir: str | os.PathLike[str] | None = None, split: Split = "train"
) -> LabelledImages:
    """MNIST, or any data in its format, from a directory.

    Args:
        data_dir: the directory; by default the one the environment variable GFUCB_DATA_DIR names.
        split: `train` reads the train-* files, `test` the t10k-* files; .gz or unpacked.
    """
    directory = data_directory(data_dir)
    if directory is None:
        raise DataFileError(
            "MNIST is read from a directory: pass --data-dir or set the environment variable "
            f"{DATA_DIR_VARIABLE}; `gfucb fetch-mnist --data-dir DIRECTORY` downloads the files"
        )
    prefix = "train" if split == "train" else "t10k"
    image_file = find_idx(directory, f"{prefix}-images-idx3-ubyte")
    label_file = find_idx(directory, f"{prefix}-labels-idx1-ubyte")
    images, labels = read_idx(image_file, num_axes=3), read_idx(label_file, num_axes=1)
    if len(images) != len(labels):
        raise DataFileError(
            f"{image_file} has {len(images)} images but {label_file} has {len(labels)} labels; "
            "the two files are not from one data set"
        )
    return LabelledImages(torch.from_numpy(images), torch.from_numpy(labels.astype(np.int64)))


def find_idx(directory: Path, name: str) -> Path:
    """The file `name` or `name`.gz in the directory or one of its usual subdirectories."""
    paths = [directory / sub / (name + end) for sub in SUBDIRECTORIES for end in ("", ".gz")]
    for path in paths:
        if path.is_file():
            return path
    looked = "\n  ".join(str(path) for path in paths)
    reason = "" if directory.is_dir() else f"; there is no directory {directory}"
    raise DataFileError(
        f"cannot find {name}{reason}. Looked for\n  {looked}\n"
        f"Copy it there, or download it with `gfucb fetch-mnist --data-dir {directory}`"
    )


def read_idx(path: Path, num_axes: int) -> NDArray[np.uint8]:
    """Read an IDX file of bytes: big-endian magic 0x0000 08 axes, the sizes, then the bytes."""
    try:
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except (OSError, EOFError, zlib.error) as error:
        raise DataFileError(
            f"{path} is truncated or not a gzip file: {error}; download it again"
        ) from error
    header = 4 * (1 + num_axes)
    if len(content) < header:
        raise DataFileError(
            f"{path} is truncated: {len(content)} bytes, the header alone has {header}"
        )
    numbers = np.frombuffer(content, dtype=">u4", count=1 + num_axes)
    magic = 0x0800 + num_axes
    if numbers[0] != magic:
        raise DataFileError(
            f"{path} is not an IDX file of bytes with {num_axes} axes: it starts with "
            f"{int(numbers[0]):#010x}, expected {magic:#010x}"
        )
    shape = tuple(int(n) for n in numbers[1:])
    expected = header + int(np.prod(shape, dtype=np.int64))
    if len(content) != expected:
        raise DataFileError(
            f"{path} is truncated or damaged: its header states {expected} bytes, it has "
            f"{len(content)}; download it again"
        )
    return np.frombuffer(content, dtype=np.uint8, offset=header).reshape(shape).copy()


def fetch_mnist(data_dir: str | os.PathLike[str], source: str = MNIST_SOURCE) -> list[Path]:
    """Download the missing ones of the four MNIST files; return the paths of all four.

    The checksum of every file is verified. A download with a wrong checksum is discarded; files
    that exist are not replaced.
    """
    directory = Path(data_dir)
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except FileExistsError as error:
        raise DataFileError(f"{directory} is no directory; name one for the files") from error
    paths = []
    for name, sha256 in MNIST_FILES.items():
        path = directory / f"{name}.gz"
        _fetch(path, f"{source}/{name}.gz", sha256)
        paths.append(path)
    return paths


def _fetch(path: Path, address: str, sha256: str) -> None:
    """Download a file unless it exists, and verify its checksum."""
    exists = path.exists()
    content = path.read_bytes() if exists else _download(address)
    found = hashlib.sha256(content).hexdigest()
    if found != sha256:
        raise DataFileError(
            f"{path if exists else address} is not the published file: its sha256 is {found}, "
            f"expected {sha256}"
        )
    if not exists:
        atomic_write(path, lambda temporary: temporary.write_bytes(content))


def _download(address: str) -> bytes:
    try:
        with urllib.request.urlopen(address, timeout=60) as response:
            return bytes(response.read())
    except (urllib.error.URLError, OSError) as error:
        raise DataFileError(
            f"cannot download {address}: {error}; where there is no network, copy the file by hand"
        ) from error
