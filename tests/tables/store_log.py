"""A small log of stores with text, numbers, booleans, dates and missing values."""

from pathlib import Path

import numpy as np
import pandas as pd

PROMOTIONS = ("none", "coupon", "bundle")


def log(num_rows: int = 60, seed: int = 0) -> pd.DataFrame:
    draws = np.random.default_rng(seed)
    weather = draws.choice(["sun", "rain", "snow"], num_rows)
    visitors = draws.integers(100, 2000, num_rows).astype(float)
    visitors[draws.random(num_rows) < 0.1] = np.nan
    promotion = draws.choice(PROMOTIONS, num_rows)
    return pd.DataFrame(
        {
            "store": draws.choice(["Oslo", "Bergen", "Lima"], num_rows),
            "date": pd.Timestamp("2026-01-05")
            + pd.to_timedelta(draws.integers(0, 200, num_rows), "D"),
            "weather": np.where(draws.random(num_rows) < 0.1, None, weather),
            "holiday": draws.random(num_rows) < 0.2,
            "visitors": visitors,
            "promotion": promotion,
            "revenue": 100.0 + 50 * (promotion == "coupon") + draws.normal(0, 5, num_rows),
        }
    )


def write_csv(path: Path, table: pd.DataFrame) -> Path:
    table.to_csv(path, index=False)
    return path
