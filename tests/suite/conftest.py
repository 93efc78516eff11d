"""Small data files in the formats of the suite."""

import numpy as np
import pytest


@pytest.fixture(scope="session")
def data_dir(tmp_path_factory):
    directory = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    for name in ("jester5k", "mushroom", "school"):
        (directory / name).mkdir()
    ratings = rng.uniform(-10, 10, (40, 100)).astype(np.float32)
    ratings[:15, 60:] = np.nan  # the first 60 jokes are rated by all
    ratings[15, 3] = ratings[39, :30] = np.nan
    np.savez(directory / "jester5k" / "jester5k.npz", ratings=ratings)
    letters = np.array(list("abc"))[rng.integers(3, size=(60, 22))]
    classes = np.array(["e", "p"])[rng.integers(2, size=60)]
    lines = [",".join([kind, *row]) for kind, row in zip(classes, letters, strict=True)]
    (directory / "mushroom" / "agaricus-lepiota.data").write_text("\n".join(lines) + "\n")
    tasks = np.sort(np.concatenate([np.repeat(np.arange(4), 11), rng.integers(4, size=20)]))
    np.savez(
        directory / "school" / "school.npz",
        X=rng.integers(90, size=(64, 28)).astype(np.uint8),
        y=rng.integers(1, 71, size=64).astype(np.uint8),
        task=tasks.astype(np.int16),
    )
    return directory
