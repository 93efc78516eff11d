"""Data files of the suite: found below one directory, or refused with a sentence."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gfucb.core.errors import DataFileError

JESTER, MUSHROOM, SCHOOL = (
    "jester5k/jester5k.npz",
    "mushroom/agaricus-lepiota.data",
    "school/school.npz",
)
CONTENTS = {
    JESTER: "ratings [user, joke] as a numpy archive, NaN where there is none",
    MUSHROOM: "the UCI Mushroom table",
    SCHOOL: "X [pupil, 28], y [pupil] and task [pupil] as a numpy archive",
}


def find_file(data_dir: str | Path | None, name: str) -> Path:
    """The path of a data file; `DataFileError` if it does not exist."""
    if data_dir is None:
        raise DataFileError(f"{name} ({CONTENTS[name]}) is read from a directory: pass --data")
    path = Path(data_dir) / name
    if not path.is_file():
        raise DataFileError(f"there is no file {path} ({CONTENTS[name]}); copy it there")
    return path


def archive(path: Path, *names: str) -> list[NDArray[np.float64]]:
    """Arrays of a numpy archive by name, as floats."""
    try:
        with np.load(path) as stored:
            return [stored[name].astype(np.float64) for name in names]
    except (OSError, ValueError, KeyError) as error:
        raise DataFileError(f"{path} is not a numpy archive of {', '.join(names)}") from error


@lru_cache(maxsize=4)
def jester_ratings(path: Path) -> Tensor:
    """Ratings [user, joke] in [-10, 10], NaN where a user did not rate a joke."""
    (ratings,) = archive(path, "ratings")
    return torch.from_numpy(ratings)


@lru_cache(maxsize=4)
def mushrooms(path: Path) -> tuple[Tensor, Tensor]:
    """One-hot columns [mushroom, 117] and whether it is edible [mushroom]."""
    lines = [line.split(",") for line in path.read_text().split()]
    table = np.array(lines)
    if table.ndim != 2 or table.shape[1] != 23:
        raise DataFileError(f"{path} is not a table of 23 columns")
    columns = [table[:, [j]] == np.unique(table[:, j]) for j in range(1, 23)]
    edible = torch.from_numpy(table[:, 0] == "e")
    return torch.from_numpy(np.concatenate(columns, 1).astype(np.float64)), edible


@lru_cache(maxsize=4)
def schools(path: Path) -> tuple[Tensor, Tensor, Tensor]:
    """Pupils [pupil, 28] with percentages as shares, scores in [0, 1], and schools [pupil]."""
    inputs, scores, tasks = archive(path, "X", "y", "task")
    pupils = torch.from_numpy(inputs)
    pupils[:, 3:5] /= 100
    return pupils, torch.from_numpy(scores / 70), torch.from_numpy(tasks.astype(np.int64))
