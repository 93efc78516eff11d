"""States that are closer than the noise of single observations separates."""

import numpy as np
import pytest

from gfucb.environments.emissions import Emission
from gfucb.episodic.cell_clusters import fit_clusters
from gfucb.episodic.cell_decoder import fit_decoder
from gfucb.episodic.cell_overlaps import with_overlapping_cells
from gfucb.episodic.observation_table import ObservationTable

STAGES = 3


def observed(noise_scale: float, states: np.ndarray) -> list[np.ndarray]:
    """Observations [stage][n, column] of latent states [n]."""
    emission = Emission(3, 12, "hadamard", noise_scale=noise_scale, seed=2000)
    generator = np.random.default_rng(2000)
    noise = generator.normal(size=(STAGES, len(states), emission.num_coordinates))
    return [emission(states, stage, noise[stage]) for stage in range(STAGES)]


def decoded(labels: np.ndarray, states: np.ndarray) -> np.ndarray:
    """The most frequent state of the cell of each observation."""
    return np.array([np.bincount(states[labels == cell]).argmax() for cell in labels])


def test_evidence_finds_states_that_distances_do_not_separate():
    states = np.arange(240) % 3
    stages = observed(0.3, states)
    pooled = fit_clusters(stages)
    found = with_overlapping_cells(stages, pooled)
    assert all(labels.max() < 2 for labels in pooled.labels)
    for labels in found.labels:
        assert labels.max() == 2 and (decoded(labels, states) == states).mean() > 0.95


@pytest.mark.parametrize("noise_scale", [0.1, 0.2])
def test_states_that_distances_separate_stay_as_they_are(noise_scale):
    stages = observed(noise_scale, np.arange(120) % 3)
    assert with_overlapping_cells(stages, fit_clusters(stages)) is None


def test_a_rare_state_is_found_among_more_observations():
    states = np.arange(360) % 2
    states[::20] = 2
    tables = [ObservationTable(16, 1, np.dtype(np.float64)) for _ in range(STAGES)]
    for table, rows in zip(tables, observed(0.3, states), strict=True):
        table.keys.add(rows)
    decoder = fit_decoder(tables, [360] * STAGES, is_recurrent=False, seed=0)
    for stage, table in enumerate(tables):
        cells = decoder.nearest(stage, table.keys.rows[:360], decoder.num_cells(stage))
        is_right = decoded(cells, states) == states
        assert is_right.mean() > 0.97 and is_right[states == 2].mean() > 0.7
