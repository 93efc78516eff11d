"""Cells whose noise has covariances of their own."""

import numpy as np
import pytest

from gfucb.environments.emissions import Emission
from gfucb.episodic.cell_clusters import fit_clusters
from gfucb.episodic.cell_covariances import CovariancePrior, Sums, with_own_covariances
from gfucb.episodic.cell_decoder import CovarianceCells, fit_decoder
from gfucb.episodic.observation_table import ObservationTable

STAGES, ROWS = 4, 90


def emitted(mixing: str, seed: int = 2003) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Observations [stage][n, column] of three latent states, and the states [stage][n]."""
    emission = Emission(3, 12, mixing, seed=seed)
    generator = np.random.default_rng(seed)
    states = [np.arange(ROWS) % 3 for _ in range(STAGES)]
    noise = generator.normal(size=(STAGES, ROWS, emission.num_coordinates))
    return [emission(own, h, noise[h]) for h, own in enumerate(states)], states


def are_same_partition(first: np.ndarray, second: np.ndarray) -> bool:
    pairs = {*zip(first.tolist(), second.tolist(), strict=True)}
    return len(pairs) == len({*first.tolist()}) == len({*second.tolist()})


def test_the_density_of_the_next_point_is_a_ratio_of_evidence():
    points = np.random.default_rng(0).normal(size=(7, 4))
    prior, zeros = CovariancePrior(4, 9.0), np.zeros(7, dtype=np.int64)
    few, all_points = (Sums.of(points[:n], zeros[:n], 1) for n in (6, 7))
    ratio = prior.log_evidence(all_points) - prior.log_evidence(few)
    np.testing.assert_allclose(prior.predictive(few).log_density(points[6:])[0], ratio)
    np.testing.assert_allclose(prior.log_evidence(Sums.of(points[:0], zeros[:0], 1)), 0, atol=1e-12)


def test_many_degrees_of_freedom_mean_one_covariance():
    generator = np.random.default_rng(1)
    points = generator.normal(size=(200, 2)) * [3.0, 1.0]
    sums = Sums.of(points, np.zeros(200, dtype=np.int64), 1)
    _, _, freedoms, scales = CovariancePrior(2, 1e7).posterior(sums)
    np.testing.assert_allclose(scales[0] / freedoms[0], np.eye(2), atol=1e-3)
    _, _, freedoms, scales = CovariancePrior(2, 4.0).posterior(sums)
    np.testing.assert_allclose(scales[0] / freedoms[0], np.cov(points.T), rtol=0.1, atol=0.1)


def test_noise_that_depends_on_the_state_gets_covariances_of_its_own():
    stages, states = emitted("nonlinear")
    pooled = fit_clusters(stages)
    own = with_own_covariances(stages, pooled)
    assert own is not None
    assert own.freedom - own.directions.shape[1] < 50
    for labels, latent in zip(own.labels, states, strict=True):
        assert are_same_partition(labels, latent)


def test_noise_with_one_covariance_keeps_the_clusters_as_they_are():
    stages, _ = emitted("hadamard")
    assert with_own_covariances(stages, fit_clusters(stages)) is None


@pytest.mark.parametrize("mixing", ["hadamard", "nonlinear"])
def test_decoders_find_the_states_of_new_observations(mixing):
    stages, states = emitted(mixing)
    tables = [ObservationTable(16, 1, np.dtype(np.float64)) for _ in range(STAGES)]
    for table, rows in zip(tables, stages, strict=True):
        table.keys.add(rows)
    decoder = fit_decoder(tables, [60] * STAGES, is_recurrent=False, seed=0)
    assert isinstance(decoder, CovarianceCells) == (mixing == "nonlinear")
    for stage, (rows, latent) in enumerate(zip(stages, states, strict=True)):
        cells = decoder.add(stage, rows[:60], decoder.num_cells(stage))
        decoder.recentre(stage, rows[:60], cells)
        new = decoder.add(stage, rows[60:], decoder.num_cells(stage))
        assert are_same_partition(np.append(cells, new), latent)
        nowhere = 30 * np.ones((1, 16))
        assert decoder.find(stage, nowhere, decoder.num_cells(stage))[0] == -1
        assert decoder.nearest(stage, nowhere, decoder.num_cells(stage))[0] >= 0


def test_cells_that_were_added_later_are_restored():
    stages, states = emitted("nonlinear", seed=2004)
    rows = [own[latent < 2] for own, latent in zip(stages, states, strict=True)]
    third = [own[latent == 2] for own, latent in zip(stages, states, strict=True)]
    clusters = with_own_covariances(rows, fit_clusters(rows))
    first, second = (CovarianceCells(clusters, rows) for _ in range(2))
    for stage, new in enumerate(third):
        known = first.num_cells(stage)
        cells = first.add(stage, new, known)
        assert (cells >= known).mean() > 0.5
        second.restore(stage, new, cells)
        found = [each.find(stage, new, each.num_cells(stage)) for each in (first, second)]
        np.testing.assert_array_equal(*found)
