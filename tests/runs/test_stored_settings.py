"""A run that was stored before a setting existed is read with the default of the setting."""

import json
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from matplotlib.figure import Figure

import gfucb
from gfucb.core.errors import RunDirectoryError
from gfucb.paper import Options, Reproduction, reproduce
from gfucb.runs import BanditAgentConfig, FiniteBanditConfig, RunConfig, load_rows
from gfucb.runs.jobs import Job
from gfucb.runs.single import run, run_job_of
from gfucb.runs.stored_settings import default_settings, first_difference, plain_settings

SMALL = FiniteBanditConfig(num_tasks=2, num_actions=2)
RUN = RunConfig(SMALL, BanditAgentConfig("uniform"), num_rounds=2)


@dataclass(frozen=True)
class Inner:
    size: int = 3
    names: tuple[str, ...] = field(default_factory=lambda: ("a",))


@dataclass(frozen=True)
class Outer:
    needed: int
    inner: Inner = field(default_factory=Inner)


def forget(path: Path, *names: str) -> None:
    """Remove a setting from a JSON file, as if it had been written before the setting existed."""
    content = json.loads(path.read_text())
    section = content
    for name in names[:-1]:
        section = section[name]
    del section[names[-1]]
    path.write_text(json.dumps(content))


def test_settings_and_defaults_have_the_same_nesting():
    settings = {"given": Outer(1, Inner(7)), "more": {"own": Inner(5)}, "number": 2}
    assert plain_settings(settings) == {
        "given": {"needed": 1, "inner": {"size": 7, "names": ["a"]}},
        "more": {"own": {"size": 5, "names": ["a"]}},
        "number": 2,
    }
    inner = {"size": 3, "names": ["a"]}
    assert default_settings(settings) == {"given": {"inner": inner}, "more": {"own": inner}}


@pytest.mark.parametrize(("size", "expected"), [(3, ""), (4, "inner.size = 3, not 4")])
def test_an_absent_setting_is_its_default(size, expected):
    own = plain_settings(Outer(1, Inner(size)))
    stored = {"needed": 1, "inner": {"names": ["a"]}}
    assert first_difference(stored, own, default_settings(Outer(1))) == expected


def test_a_run_continues_without_a_setting_that_was_added_later(tmp_path):
    list(run(RUN, tmp_path / "run"))
    forget(tmp_path / "run" / "config.json", "agent", "gap_scale")
    assert run_job_of(RUN, "run").directory(tmp_path).is_finished()
    other = replace(RUN, agent=replace(RUN.agent, gap_scale=3.0))
    with pytest.raises(RunDirectoryError, match=r"agent\.gap_scale = 10\.0, not 3\.0"):
        run_job_of(other, "run").directory(tmp_path).is_finished()


def test_a_comparison_from_python_accepts_runs_without_a_later_setting(tmp_path):
    settings = {"seeds": [0], "num_rounds": 2, "out": tmp_path}
    first = gfucb.compare(SMALL, ["uniform"], **settings)
    config = tmp_path / "uniform" / "seed=0" / "config.json"
    forget(config, "environment", "num_representations")
    forget(config, "agent", "gap_scale")
    again = gfucb.compare(SMALL, ["uniform"], **settings)
    assert (first.rows["regret"] == again.rows["regret"]).all()
    with pytest.raises(RunDirectoryError, match=r"environment\.num_representations = 8, not 9"):
        gfucb.compare(replace(SMALL, num_representations=9), ["uniform"], **settings)


def test_rows_are_loaded_if_one_run_lacks_a_setting_that_others_have_at_its_default(tmp_path):
    for seed in (0, 1):
        list(run(replace(RUN, seed=seed), tmp_path / str(seed)))
    forget(tmp_path / "0" / "config.json", "environment", "num_representations")
    assert len(load_rows(tmp_path)) == 4
    other = replace(RUN, environment=replace(SMALL, num_representations=9), seed=2)
    list(run(other, tmp_path / "2"))
    with pytest.raises(RunDirectoryError, match="another environment"):
        load_rows(tmp_path)


def test_a_reproduction_continues_without_a_setting_that_was_added_later(tmp_path):
    computed = []

    def compute():
        computed.append(1)
        return [{"value": 1}]

    def claim(size):
        jobs = [Job("one", compute)]
        return Reproduction(
            "claim",
            lambda options: jobs,
            lambda rows: Figure(),
            lambda rows: [],
            config=lambda options: {"sizes": Inner(size)},
        )

    reproduce("claim", claim(3), tmp_path, Options())
    forget(tmp_path / "provenance.json", "settings", "config", "sizes", "size")
    forget(tmp_path / "provenance.json", "settings", "quick")
    forget(tmp_path / "jobs" / "one" / "config.json", "config", "sizes", "size")
    reproduce("claim", claim(3), tmp_path, Options())
    assert computed == [1]
    with pytest.raises(RunDirectoryError, match=r"config\.sizes\.size = 3, not 4"):
        reproduce("claim", claim(4), tmp_path, Options())
