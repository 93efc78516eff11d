"""Results directories: what is computed, recorded, restored and refused."""

import json
import shutil
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

import pandas as pd
import pytest
from matplotlib.figure import Figure

from gfucb.cli.main import main
from gfucb.core.errors import InvalidInputError, RunDirectoryError
from gfucb.paper import REPRODUCTIONS, Job, Options, Reproduction, Verdict, reproduce
from gfucb.paper.fig2b import sweep as fig2b
from gfucb.paper.lock.sweep import tabular_rows
from gfucb.paper.results_directory import ResultsDirectory
from gfucb.runs import provenance
from gfucb.runs.jobs import run_job
from gfucb.runs.pool import worker_context

RESULTS = Path(__file__).parents[2] / "results"


def lengths(compute: Callable[[str], list]) -> Reproduction:
    """A reproduction of two jobs, one for each of two words."""
    return Reproduction(
        "Words have lengths.",
        lambda options: [Job(word, partial(compute, word)) for word in ("one", "three")],
        lambda rows: Figure(),
        lambda rows: [Verdict("long", str(rows["value"].sum()), bool(rows["value"].sum() == 8))],
    )


def small(calls: list[str]) -> Reproduction:
    """The same, with a list of the jobs that are computed."""

    def compute(word: str) -> list:
        calls.append(word)
        return [{"name": word, "value": len(word)}]

    return lengths(compute)


def records(directory: Path) -> list[dict]:
    return json.loads((directory / "provenance.json").read_text())["provenance"]


def test_only_missing_jobs_are_computed_and_the_rows_are_the_same(tmp_path):
    calls: list[str] = []
    out = tmp_path / "out"
    verdicts = reproduce("words", small(calls), out, Options())
    assert calls == ["one", "three"] and verdicts[0].holds
    before = (out / "rows.csv").read_bytes()
    shutil.rmtree(out / "jobs" / "three")
    reproduce("words", small(calls), out, Options())
    assert calls == ["one", "three", "three"]
    assert (out / "rows.csv").read_bytes() == before
    assert len(pd.read_csv(out / "rows.csv")) == 2


@pytest.mark.slow
def test_the_rows_do_not_depend_on_the_number_of_processes(tmp_path):
    def jobs(options):
        compute = partial(tabular_rows, "gfucb-mdp", 3, num_episodes=20, is_curve=True)
        return [Job(f"seed={seed}", partial(compute, seed=seed)) for seed in range(3)]

    locks = replace(small([]), jobs=jobs, verdicts=lambda rows: [])
    for processes in (1, 2):
        done: list[int] = []
        out = tmp_path / str(processes)
        reproduce("locks", locks, out, Options(), processes=processes, advance=done.append)
        # Two jobs may end between two looks.
        assert done[0] == 0 and done[-1] == 3 and done == sorted(done)
        (record,) = records(out)
        assert record["jobs"] == ["seed=0", "seed=1", "seed=2"]
        assert record["cpu_seconds"] > 0 and record["threads"] == 1
    files = ("rows.csv", *(f"jobs/seed={seed}/rows.csv" for seed in range(3)), "verdict.json")
    for name in files:
        assert (tmp_path / "1" / name).read_bytes() == (tmp_path / "2" / name).read_bytes(), name
    # A directory that one number has started can be finished with another.
    shutil.rmtree(tmp_path / "2" / "jobs" / "seed=1")
    reproduce("locks", locks, tmp_path / "2", Options())
    assert (tmp_path / "1" / "rows.csv").read_bytes() == (tmp_path / "2" / "rows.csv").read_bytes()
    with pytest.raises(InvalidInputError, match="processes"):
        reproduce("locks", locks, tmp_path / "none", Options(), processes=0)


def test_finished_jobs_can_be_shown_before_all_are_computed(tmp_path):
    calls: list[str] = []
    out = tmp_path / "out"
    with pytest.raises(RunDirectoryError, match="no finished job"):
        reproduce("words", small(calls), out, Options(), only_what_is_there=True)
    reproduce("words", small(calls), out, Options())
    shutil.rmtree(out / "jobs" / "three")
    reproduce("words", small(calls), out, Options(), only_what_is_there=True)
    assert calls == ["one", "three"]
    assert "1 of 2 jobs" in (out / "verdict.md").read_text()


def visible(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir() if path.is_file()}


def test_a_directory_without_its_jobs_continues_from_its_rows(tmp_path):
    calls: list[str] = []
    reproduce("words", small(calls), tmp_path, Options())
    rows = {path.parent.name: path.read_bytes() for path in tmp_path.glob("jobs/*/rows.csv")}
    before = visible(tmp_path)
    shutil.rmtree(tmp_path / "jobs")
    reproduce("words", small(calls), tmp_path, Options())
    assert calls == ["one", "three"] and visible(tmp_path) == before
    assert rows == {p.parent.name: p.read_bytes() for p in tmp_path.glob("jobs/*/rows.csv")}

    shutil.rmtree(tmp_path / "jobs")
    text = (tmp_path / "rows.csv").read_text()
    (tmp_path / "rows.csv").write_text("\n".join(text.splitlines()[:-1]) + "\n")
    with pytest.raises(RunDirectoryError, match=r"has 1 rows but provenance\.json records 2"):
        reproduce("words", small(calls), tmp_path, Options())
    (tmp_path / "rows.csv").unlink()
    with pytest.raises(RunDirectoryError, match="cannot read"):
        reproduce("words", small(calls), tmp_path, Options())
    assert calls == ["one", "three"] and not (tmp_path / "jobs").exists()


def test_jobs_under_way_are_not_restored_from_rows(tmp_path):
    columns = "x,y,z\n1,,\n2,,0.10\n3,,\n"
    (tmp_path / "rows.csv").write_text(columns)
    record = {
        "settings": {"name": "n"},
        "provenance": [{"jobs": ["a", "b", "was there once"]}],
        "rows": {"a": 1, "b": 1},
        "under_way": {"was there once": 1},
    }
    (tmp_path / "provenance.json").write_text(json.dumps(record))
    directory = ResultsDirectory.open(tmp_path, {"name": "n"})
    names = ["a", "b", "was there once"]
    assert directory.finished(names) == ["a", "b"]
    directory.save(directory.gather(names))
    assert (tmp_path / "rows.csv").read_text() == "x,y,z\n1,,\n2,,0.10\n"
    assert records(tmp_path) == [{"jobs": ["a", "b"]}]


def test_a_job_without_provenance_is_computed_again(tmp_path):
    calls: list[str] = []
    reproduce("words", small([]), tmp_path, Options())
    shutil.rmtree(tmp_path / "jobs")
    record = json.loads((tmp_path / "provenance.json").read_text())
    record["provenance"][0]["jobs"] = ["one"]
    (tmp_path / "provenance.json").write_text(json.dumps(record))
    reproduce("words", small(calls), tmp_path, Options())
    assert calls == ["three"]
    assert [entry["jobs"] for entry in records(tmp_path)] == [["one"], ["three"]]


@pytest.mark.parametrize(
    "record",
    [
        *("[1]", "5", "null", '{"settings": 3}'),
        '{"settings": {}, "provenance": [], "rows": [], "under_way": {}}',
        '{"settings": {}, "provenance": [{"jobs": 2}], "rows": {}, "under_way": {}}',
        '{"asked": {}, "made": [], "rows": {}, "under_way": {}}',
    ],
)
def test_a_file_that_is_no_record_is_refused_and_left_as_it_is(tmp_path, record):
    (tmp_path / "provenance.json").write_text(record)
    calls: list[str] = []
    with pytest.raises(RunDirectoryError, match=r"not the record.*scripts/migrate_results\.py"):
        reproduce("words", small(calls), tmp_path, Options())
    assert not calls and [path.name for path in tmp_path.iterdir()] == ["provenance.json"]


@pytest.mark.slow
@pytest.mark.parametrize("name", REPRODUCTIONS)
def test_committed_rows_have_provenance_and_give_the_committed_verdicts(name, tmp_path):
    for file in ("rows.csv", "provenance.json"):
        shutil.copy(RESULTS / name / file, tmp_path)
    reproduction = REPRODUCTIONS[name]
    reproduce(name, reproduction, tmp_path, Options(), only_what_is_there=True)
    names = {job.name for job in reproduction.jobs(Options())}
    assert {path.name for path in (tmp_path / "jobs").iterdir()} == names
    for file in ("rows.csv", "provenance.json", "verdict.json", "verdict.md"):
        assert (tmp_path / file).read_bytes() == (RESULTS / name / file).read_bytes(), file


def test_some_jobs_can_be_computed_now_and_the_others_later(tmp_path):
    calls: list[str] = []
    assert reproduce("words", small(calls), tmp_path, Options(), only="th*") == []
    assert calls == ["three"] and not (tmp_path / "rows.csv").exists()
    assert reproduce("words", small(calls), tmp_path, Options())[0].holds
    assert calls == ["three", "one"] and len(pd.read_csv(tmp_path / "rows.csv")) == 2
    with pytest.raises(InvalidInputError, match=r"no job of words matches 'two'.* one to three"):
        reproduce("words", small(calls), tmp_path / "none", Options(), only="two")
    assert not (tmp_path / "none").exists()


@pytest.mark.slow
def test_too_few_jobs_for_a_figure_are_distinguished_from_a_defect(tmp_path, capsys):
    out = str(tmp_path / "lock")
    main(["reproduce", "lock", "--quick", "--only", "gfucb-mdp-H=6-*", "--out", out])
    assert "some jobs are missing: no figure yet" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["reproduce", "lock", "--quick", "--only-what-is-there", "--out", out])
    assert "too few jobs for a figure" in " ".join(capsys.readouterr().err.split())
    assert {path.name for path in Path(out).iterdir()} == {".lock", "jobs", "provenance.json"}

    def broken(rows):
        raise KeyError("a defect")

    with pytest.raises(KeyError, match="a defect"):
        reproduce("words", replace(small([]), verdicts=broken), tmp_path / "n", Options())


@pytest.mark.slow
def test_all_skips_figures_without_a_match(tmp_path, capsys, monkeypatch):
    tiny = replace(fig2b.QUICK, grid=(10,), images=2, tuned=(1,), epochs=1, iterations=1)
    monkeypatch.setattr(fig2b, "QUICK", tiny)
    out = tmp_path / "all"
    main(["reproduce", "all", "--quick", "--only", "ours*", "--out", str(out)])
    assert [path.name for path in out.iterdir()] == ["fig2b"]
    with pytest.raises(SystemExit):
        main(["reproduce", "all", "--quick", "--only", "nothing", "--out", str(out)])
    assert "no job of any figure matches" in capsys.readouterr().err


def test_jobs_from_several_machines_add_up(tmp_path, monkeypatch):
    monkeypatch.setattr(provenance, "device_name", lambda device: f"a {device} machine")
    calls: list[str] = []
    reproduce("words", small(calls), tmp_path, Options())
    shutil.rmtree(tmp_path / "jobs" / "three")
    reproduce("words", small(calls), tmp_path, Options(data_dir="elsewhere", device="meta"))
    assert calls == ["one", "three", "three"]
    before = records(tmp_path)
    assert [(entry["jobs"], entry["device"]) for entry in before] == [
        (["one"], "a cpu machine"),
        (["three"], "a meta machine"),
    ]
    reproduce("words", small(calls), tmp_path, Options(device="meta"))  # only drawn
    assert records(tmp_path) == before
    shutil.rmtree(tmp_path / "jobs")
    reproduce("words", small(calls), tmp_path, Options(device="meta"))  # restored
    assert records(tmp_path) == before
    shutil.rmtree(tmp_path / "jobs" / "one")
    reproduce("words", small(calls), tmp_path, Options(device="meta"))
    # A record that loses all its jobs is left out.
    assert [entry["jobs"] for entry in records(tmp_path)] == [["three"], ["one"]]


def test_a_call_that_is_stopped_has_recorded_what_it_computed(tmp_path):
    def interrupted():
        raise KeyboardInterrupt

    whole = small([])
    first, last = whole.jobs(Options())
    stopped = replace(whole, jobs=lambda options: [first, replace(last, compute=interrupted)])
    with pytest.raises(KeyboardInterrupt):
        reproduce("words", stopped, tmp_path, Options())
    own = json.loads((tmp_path / "jobs" / "one" / "provenance.json").read_text())
    assert own["finished"] and own["commit"] and own["versions"]["torch"]
    calls: list[str] = []
    reproduce("words", small(calls), tmp_path, Options())
    assert calls == ["three"]
    (record,) = records(tmp_path)
    assert record["jobs"] == ["one", "three"]


def test_a_job_that_another_process_computes_is_left_to_it(tmp_path):
    calls: list[str] = []
    whole = small(calls)
    settings = {"name": "words", **asdict(Options()), "config": {}}
    directory = ResultsDirectory.open(tmp_path, settings)
    job = replace(whole.jobs(Options())[0], settings=directory.job_settings("one"))
    other = job.directory(directory.jobs).write(job.work())
    next(other)
    assert reproduce("words", whole, tmp_path, Options()) == []
    assert calls == ["one", "three"] and directory.finished(["one", "three"]) == ["three"]
    list(other)
    assert reproduce("words", whole, tmp_path, Options())[0].holds
    assert calls == ["one", "three"]
    assert run_job(job, directory.jobs)


def compute_and_note(path: Path, word: str) -> list:
    """Note the call."""
    with (path / "calls").open("a") as file:
        file.write(word + "\n")
    return [{"name": word, "value": len(word)}]


def reproduce_words(path: str, barrier) -> None:
    def compute(word: str) -> list:
        barrier.wait(timeout=300)  # both processes are at work
        return compute_and_note(Path(path), word)

    reproduce("words", lengths(compute), Path(path) / "out", Options())


@pytest.mark.slow
def test_two_processes_share_a_directory_and_lose_nothing(tmp_path):
    context = worker_context()
    barrier = context.Barrier(2)
    processes = [
        context.Process(target=reproduce_words, args=(str(tmp_path), barrier)) for _ in range(2)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        assert process.exitcode == 0
    assert sorted((tmp_path / "calls").read_text().split()) == ["one", "three"]
    assert reproduce("words", small([]), tmp_path / "out", Options())[0].holds
    assert sorted(name for entry in records(tmp_path / "out") for name in entry["jobs"]) == [
        "one",
        "three",
    ]


def test_a_directory_with_other_options_is_refused(tmp_path):
    reproduce("words", small([]), tmp_path / "out", Options())
    with pytest.raises(RunDirectoryError, match="other options: quick = False, not True"):
        reproduce("words", small([]), tmp_path / "out", Options(quick=True))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    with pytest.raises(RunDirectoryError, match="holds no reproduction"):
        reproduce("words", small([]), tmp_path / "mine", Options())
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["letter.txt"]


def test_unknown_reproductions_list_the_known_ones(capsys):
    with pytest.raises(SystemExit):
        main(["reproduce", "fig9", "--out", "x"])
    assert "linear-mdp, lock" in capsys.readouterr().err
