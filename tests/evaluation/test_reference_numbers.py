"""Our estimates against those of coba and vw-estimators on one log.

The numbers and versions are in benchmarks/off_policy_reference.json, and the script next to it
made them.
"""

import json
from pathlib import Path

import pytest
import torch

from gfucb.environments import with_actions
from gfucb.evaluation import LoggedDecisions, evaluate

REFERENCE = json.loads(
    (Path(__file__).parents[2] / "benchmarks" / "off_policy_reference.json").read_text()
)
VW, COBA = REFERENCE["vw-estimators"], REFERENCE["coba"]


@pytest.fixture(scope="module")
def log():
    columns = REFERENCE["log"]
    contexts = torch.tensor(columns["contexts"], dtype=torch.float64)
    return LoggedDecisions(
        columns["actions"], columns["probabilities"], columns["rewards"], with_actions(contexts, 3)
    )


def test_estimates_from_weights_are_equal(log):
    result = evaluate(log, REFERENCE["log"]["policy"], estimators=["ips", "snips"])
    assert result["ips"].value == pytest.approx(VW["ips"], rel=1e-12)
    assert result["ips"].value == pytest.approx(COBA["ips"], rel=1e-12)
    assert result["snips"].value == pytest.approx(VW["snips"], rel=1e-12)
    assert result["ips"].interval == pytest.approx(VW["gaussian"], rel=1e-12)
    assert result["ips"].sequence == pytest.approx(VW["cs"], rel=1e-9)


@pytest.mark.slow
def test_estimates_from_models_agree_within_their_errors(log):
    """The models differ: coba's is one pass of a linear regression of Vowpal Wabbit."""
    result = evaluate(log, REFERENCE["log"]["policy"], estimators=["dm", "dr"], folds=2)
    error = result["dr"].standard_error
    assert result["dr"].value == pytest.approx(COBA["dr"], abs=error)
    assert result["dr"].value == pytest.approx(REFERENCE["exact"], abs=2 * error)
    distance = abs(result["dm"].value - REFERENCE["exact"])
    assert distance < abs(COBA["dm"] - REFERENCE["exact"])
