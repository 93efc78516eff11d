"""The directories of reproductions: what is made, kept, signed, restored and refused."""

import json
import shutil
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

import pandas as pd
import pytest
from matplotlib.figure import Figure

from gfucb.cli.main import main
from gfucb.core.errors import InvalidInputError, RunDirectoryError
from gfucb.paper import (
    REPRODUCTIONS,
    Job,
    Options,
    Reproduction,
    Verdict,
    driver,
    reproduce,
)
from gfucb.paper.driver import make
from gfucb.paper.lock import sweep as lock
from gfucb.paper.results_directory import ResultsDirectory, csv_of, write


def small(calls):
    """A reproduction of two jobs that notes when they are made."""

    def make(name):
        calls.append(name)
        return [{"name": name, "value": len(name)}]

    return Reproduction(
        "Names have lengths.",
        lambda options: [Job(name, lambda name=name: make(name)) for name in ("one", "three")],
        lambda rows: Figure(),
        lambda rows: [Verdict("long", str(rows["value"].sum()), bool(rows["value"].sum() == 8))],
    )


def asked_of_small() -> dict:
    return {"name": "names", **asdict(Options()), "config": {}}


def test_a_reproduction_makes_only_what_is_missing_and_gives_the_same_bytes(tmp_path):
    calls: list[str] = []
    out = tmp_path / "out"
    verdicts = reproduce("names", small(calls), out, Options())
    assert calls == ["one", "three"] and verdicts[0].holds
    before = (out / "rows.csv").read_bytes()
    (out / "jobs" / "three.csv").unlink()
    reproduce("names", small(calls), out, Options())
    assert calls == ["one", "three", "three"]
    assert (out / "rows.csv").read_bytes() == before
    assert len(pd.read_csv(out / "rows.csv")) == 2


def test_any_number_of_processes_gives_the_same_bytes(tmp_path):
    def jobs(options):
        make = partial(lock.tabular_rows, "gfucb-mdp", 3, num_episodes=20, is_curve=True)
        return [Job(f"seed={seed}", partial(make, seed=seed)) for seed in range(3)]

    locks = replace(small([]), jobs=jobs, verdicts=lambda rows: [])
    for processes in (1, 2):
        done: list[int] = []
        out = tmp_path / str(processes)
        reproduce("locks", locks, out, Options(), processes=processes, advance=done.append)
        assert done == [0, 1, 2, 3]
        (maker,) = json.loads((out / "provenance.json").read_text())["made"]
        assert sorted(maker["jobs"]) == ["seed=0", "seed=1", "seed=2"]
        assert maker["cpu_seconds"] > 0  # of other processes too
    for name in ("rows.csv", *(f"jobs/seed={seed}.csv" for seed in range(3)), "verdict.json"):
        assert (tmp_path / "1" / name).read_bytes() == (tmp_path / "2" / name).read_bytes(), name
    # A directory begun with one number can be ended with another.
    (tmp_path / "2" / "jobs" / "seed=1.csv").unlink()
    reproduce("locks", locks, tmp_path / "2", Options())
    assert (tmp_path / "1" / "rows.csv").read_bytes() == (tmp_path / "2" / "rows.csv").read_bytes()
    with pytest.raises(InvalidInputError, match="processes"):
        reproduce("locks", locks, tmp_path / "none", Options(), processes=0)


def test_what_is_there_can_be_shown_before_all_is_made(tmp_path):
    calls: list[str] = []
    out = tmp_path / "out"
    with pytest.raises(RunDirectoryError, match="no finished job"):
        reproduce("names", small(calls), out, Options(), only_what_is_there=True)
    reproduce("names", small(calls), out, Options())
    (out / "jobs" / "three.csv").unlink()
    reproduce("names", small(calls), out, Options(), only_what_is_there=True)
    assert calls == ["one", "three"]
    assert "1 of 2 jobs" in (out / "verdict.md").read_text()


def test_a_folder_kept_without_its_pieces_goes_on_from_its_rows(tmp_path):
    calls: list[str] = []
    reproduce("names", small(calls), tmp_path, Options())
    jobs = {path.name: path.read_bytes() for path in (tmp_path / "jobs").iterdir()}
    whole = {p: p.read_bytes() for p in tmp_path.iterdir() if p.is_file()}
    shutil.rmtree(tmp_path / "jobs")
    reproduce("names", small(calls), tmp_path, Options())
    assert calls == ["one", "three"]
    assert {path.name: path.read_bytes() for path in (tmp_path / "jobs").iterdir()} == jobs
    assert {p: p.read_bytes() for p in tmp_path.iterdir() if p.is_file()} == whole

    shutil.rmtree(tmp_path / "jobs")
    rows = (tmp_path / "rows.csv").read_text()
    (tmp_path / "rows.csv").write_text("\n".join(rows.splitlines()[:-1]) + "\n")
    with pytest.raises(RunDirectoryError, match=r"has 1 rows where provenance\.json tells of 2"):
        reproduce("names", small(calls), tmp_path, Options())
    (tmp_path / "rows.csv").unlink()
    with pytest.raises(RunDirectoryError, match="cannot read"):
        reproduce("names", small(calls), tmp_path, Options())
    assert calls == ["one", "three"] and not (tmp_path / "jobs").exists()


def test_a_piece_under_way_is_not_taken_from_rows(tmp_path):
    directory = ResultsDirectory.open(tmp_path, {"name": "n"})
    for name, rows in {"a": [{"x": "1", "y": ""}], "b": [{"x": "2", "z": "0.10"}]}.items():
        write(directory.job(name), csv_of(rows))
    directory.sign([], {"jobs": ["a", "b", "was there once"]})
    directory.keep(directory.gather(["a", "b"], {"was there once": [{"x": 3}]}))
    before = (tmp_path / "rows.csv").read_text()
    assert before == "x,y,z\n1,,\n2,,0.10\n3,,\n"
    shutil.rmtree(tmp_path / "jobs")
    again = ResultsDirectory.open(tmp_path, {"name": "n"})
    assert again.finished == {"a", "b"} == {p.stem for p in (tmp_path / "jobs").iterdir()}
    again.keep(again.gather(["a", "b"], {"was there once": [{"x": 3}]}))
    assert (tmp_path / "rows.csv").read_text() == before


def test_a_piece_that_nobody_signed_is_made_again(tmp_path):
    calls: list[str] = []
    directory = ResultsDirectory.open(tmp_path, asked_of_small())
    make(directory, small([]).jobs(Options())[0])  # killed before it could sign
    reproduce("names", small(calls), tmp_path, Options())
    assert calls == ["one", "three"] and directory.finished == {"one", "three"}


@pytest.mark.parametrize(
    "record",
    [
        *("[1]", "5", "null", '{"asked": 3}'),
        '{"asked": {}, "made": [], "rows": [], "under_way": {}}',
        '{"asked": {}, "made": [{"jobs": 2}], "rows": {}, "under_way": {}}',
    ],
)
def test_what_is_no_record_is_refused_and_left_alone(tmp_path, record):
    (tmp_path / "provenance.json").write_text(record)
    calls: list[str] = []
    with pytest.raises(RunDirectoryError, match=r"provenance\.json is not the record"):
        reproduce("names", small(calls), tmp_path, Options())
    assert not calls and [path.name for path in tmp_path.iterdir()] == ["provenance.json"]


@pytest.mark.parametrize("name", REPRODUCTIONS)
def test_committed_rows_are_all_signed(name, tmp_path):
    committed = Path(__file__).parents[2] / "results" / name
    for file in ("rows.csv", "provenance.json"):
        shutil.copy(committed / file, tmp_path)
    reproduction = REPRODUCTIONS[name]
    reproduce(name, reproduction, tmp_path, Options(), only_what_is_there=True)
    names = {job.name for job in reproduction.jobs(Options())}
    assert {path.stem for path in (tmp_path / "jobs").iterdir()} == names
    for file in ("rows.csv", "provenance.json", "verdict.json", "verdict.md"):
        assert (tmp_path / file).read_bytes() == (committed / file).read_bytes(), file


def test_some_pieces_can_be_made_and_the_others_later(tmp_path):
    calls: list[str] = []
    assert reproduce("names", small(calls), tmp_path, Options(), only="th*") == []
    assert calls == ["three"] and not (tmp_path / "rows.csv").exists()
    assert reproduce("names", small(calls), tmp_path, Options())[0].holds
    assert calls == ["three", "one"] and len(pd.read_csv(tmp_path / "rows.csv")) == 2
    with pytest.raises(InvalidInputError, match=r"no job of names matches 'two'.* one to three"):
        reproduce("names", small(calls), tmp_path / "none", Options(), only="two")
    assert not (tmp_path / "none").exists()


def test_too_few_pieces_for_a_figure_are_told_apart_from_a_defect(tmp_path, capsys):
    out = str(tmp_path / "lock")
    main(["reproduce", "lock", "--quick", "--only", "gfucb-mdp-H=6-*", "--out", out])
    assert "other jobs are missing" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["reproduce", "lock", "--quick", "--only-what-is-there", "--out", out])
    assert "too few jobs for a figure" in " ".join(capsys.readouterr().err.split())
    assert {path.name for path in Path(out).iterdir()} == {"jobs", "provenance.json"}

    def broken(rows):
        raise KeyError("a defect")

    with pytest.raises(KeyError, match="a defect"):
        reproduce("names", replace(small([]), verdicts=broken), tmp_path / "n", Options())


def test_all_passes_over_figures_without_a_match(tmp_path, capsys):
    out = tmp_path / "all"
    main(["reproduce", "all", "--quick", "--only", "ours*", "--out", str(out)])
    assert [path.name for path in out.iterdir()] == ["fig2b"]
    with pytest.raises(SystemExit):
        main(["reproduce", "all", "--quick", "--only", "nothing", "--out", str(out)])
    assert "no job of any figure matches" in capsys.readouterr().err


def test_pieces_from_several_machines_add_up(tmp_path, monkeypatch):
    monkeypatch.setattr(driver, "device_name", lambda device: f"a {device} machine")
    calls: list[str] = []
    reproduce("names", small(calls), tmp_path, Options())
    (tmp_path / "jobs" / "three.csv").unlink()
    reproduce("names", small(calls), tmp_path, Options(data_dir="elsewhere", device="meta"))
    assert calls == ["one", "three", "three"]
    made = json.loads((tmp_path / "provenance.json").read_text())["made"]
    assert [(row["jobs"], row["device"]) for row in made] == [
        (["one"], "cpu"),
        (["three"], "a meta machine"),
    ]
    reproduce("names", small(calls), tmp_path, Options(device="meta"))
    assert json.loads((tmp_path / "provenance.json").read_text())["made"] == made  # only drawn
    (tmp_path / "jobs" / "one.csv").unlink()
    reproduce("names", small(calls), tmp_path, Options(device="meta"))
    again = json.loads((tmp_path / "provenance.json").read_text())["made"]
    assert [row["jobs"] for row in again] == [["three"], ["one"]]  # nobody's are left out


def test_a_call_that_is_stopped_has_signed_what_it_made(tmp_path):
    def interrupted():
        raise KeyboardInterrupt

    whole = small([])
    first, last = whole.jobs(Options())
    killed = replace(whole, jobs=lambda options: [first, replace(last, make=interrupted)])
    with pytest.raises(KeyboardInterrupt):
        reproduce("names", killed, tmp_path, Options())
    record = json.loads((tmp_path / "provenance.json").read_text())
    assert [row["jobs"] for row in record["made"]] == [["one"]]
    assert record["made"][0]["commit"] and record["made"][0]["versions"]["torch"]
    reproduce("names", whole, tmp_path, Options())
    record = json.loads((tmp_path / "provenance.json").read_text())
    assert [row["jobs"] for row in record["made"]] == [["one"], ["three"]]


def test_a_folder_with_other_options_is_refused(tmp_path):
    reproduce("names", small([]), tmp_path / "out", Options())
    with pytest.raises(RunDirectoryError, match="other options"):
        reproduce("names", small([]), tmp_path / "out", Options(quick=True))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    with pytest.raises(RunDirectoryError, match="holds no reproduction"):
        reproduce("names", small([]), tmp_path / "mine", Options())


def test_unknown_reproductions_list_the_known_ones(capsys):
    with pytest.raises(SystemExit):
        main(["reproduce", "fig9", "--out", "x"])
    assert "linear-mdp, lock" in capsys.readouterr().err
