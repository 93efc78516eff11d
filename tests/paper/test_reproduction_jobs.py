"""Jobs of a reproduction, computed on a machine without the packages of figures."""

import importlib
import sys

import pytest
from benchmarks import reproduction_jobs, without_extras

from gfucb.paper import Options, reproduce
from gfucb.paper.lock import LOCK
from gfucb.runs.store import is_finished

QUICK = Options(quick=True)


def test_jobs_are_computed_and_nothing_is_drawn(tmp_path):
    one, other = "gfucb-cells-H=3-seed=0", "gfucb-mdp-H=3-seed=0"
    words = ["lock", "--quick", "--out", str(tmp_path), "--only", one, other]
    reproduction_jobs.main(words)
    assert is_finished(tmp_path / "jobs" / one) and is_finished(tmp_path / "jobs" / other)
    assert {path.name for path in tmp_path.iterdir()} - {".lock"} == {"jobs", "provenance.json"}


def test_a_finished_directory_is_not_drawn_either(tmp_path, monkeypatch):
    some = [job for job in LOCK.jobs(QUICK) if "H=3" in job.name][:1]
    monkeypatch.setitem(vars(LOCK), "jobs", lambda options: some)
    assert reproduce("lock", LOCK, tmp_path, QUICK, only_jobs=True) == []
    assert not (tmp_path / "verdict.md").exists()


def test_stand_ins_are_used_only_for_missing_packages_of_reports(monkeypatch):
    monkeypatch.setattr(without_extras, "PACKAGES", ("absent_package",))
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, without_extras.StandIns()])
    monkeypatch.setattr(sys, "modules", dict(sys.modules))
    module = importlib.import_module("absent_package.part")
    assert isinstance(module.Figure, type)
    with pytest.raises(AttributeError):
        _ = module.__version__
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("another_absent_package")
