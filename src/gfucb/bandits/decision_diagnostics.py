"""Diagnostics of a decision."""

from __future__ import annotations

from gfucb.core.records import Prediction, Row, Selection


def selection_diagnostics(selection: Selection, prediction: Prediction) -> Row:
    """Radius, mean bonus and violation; maybe the share of the variance due to phi."""
    row = {
        "squared_radius": selection.squared_radius,
        "bonus": float((selection.values - prediction.mean).mean()),
        "violation": selection.violation,
    }
    if selection.representation_widths is not None:
        share = selection.representation_widths.sum() / prediction.variance.sum()
        row["representation_share"] = float(share)
    return row
