"""All reproductions: quick versions, their jobs, figures and verdicts, and the page about them."""

import json
import pickle
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from gfucb.cli.main import main
from gfucb.estimation import variable_projection
from gfucb.paper import PAPER, REPRODUCTIONS, Options, page_of, register_reproduction
from gfucb.paper.fig1 import sweep as fig1
from gfucb.paper.fig2a import sweep as fig2a
from gfucb.paper.fig2b import FIG2B
from gfucb.paper.fig2b import analysis as fig2b_analysis
from gfucb.paper.fig2b import sweep as fig2b
from gfucb.paper.fig2b.analysis import bonus_curve
from gfucb.paper.fig3 import sweep as fig3
from gfucb.paper.linear_mdp import sweep as linear_mdp
from gfucb.paper.probe import sweep as probe
from gfucb.runs.plots import save

ROOT = Path(__file__).parents[2]
# Fewer rounds, images and steps than those of `--quick`; all jobs and methods are the same.
SMALLER = {
    fig1: {"num_rounds": 4},
    fig2a: {"images": 8, "epochs": 3, "iterations": 10},
    fig2b: {"images": 8, "tuned": (3, 3, 2), "epochs": 2, "iterations": 10},
    fig3: {"milestones": (3, 8), "epochs": 3},
    probe: {"milestones": (3, 8), "long": (12,), "epochs": 3},
}
FEWER_STEPS = (
    (variable_projection, "STEPS"),
    (variable_projection, "STEPS_WITH_CONVOLUTIONS"),
    (probe, "LBFGS_STEPS"),
)


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """Directories of quick versions, each made once."""
    directory = tmp_path_factory.mktemp("results")

    def results_of(name: str) -> Path:
        if not (directory / name).exists():
            main(["reproduce", name, "--quick", "--out", str(directory / name)])
        return directory / name

    with pytest.MonkeyPatch.context() as patch:
        for sweep, changes in SMALLER.items():
            patch.setattr(sweep, "QUICK", replace(sweep.QUICK, **changes))
        for module, name in FEWER_STEPS:
            patch.setattr(module, name, 8)
        patch.setattr(linear_mdp, "QUICK_EPISODES", 10)
        yield results_of


@pytest.mark.slow
@pytest.mark.parametrize("name", REPRODUCTIONS)
def test_every_reproduction_has_a_quick_version(quick, name):
    out = quick(name)
    for file in ("rows.csv", "figure.png", "figure.svg", "verdict.md", "verdict.json"):
        assert (out / file).stat().st_size > 100, file
    provenance = json.loads((out / "provenance.json").read_text())
    assert provenance["settings"]["quick"] and provenance["provenance"][0]["commit"] is not None
    assert sorted(provenance["provenance"][0]["jobs"]) == sorted(
        path.name for path in (out / "jobs").iterdir()
    )
    assert "is no evidence" in (out / "verdict.md").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("name", PAPER)
def test_the_same_rows_give_the_same_table_figure_and_verdicts(quick, name, tmp_path):
    reproduction, rows = REPRODUCTIONS[name], pd.read_csv(quick(name) / "rows.csv")
    stored = json.loads((quick(name) / "verdict.json").read_text())
    assert [verdict.claim for verdict in reproduction.verdicts(rows)] == [
        v["claim"] for v in stored
    ]
    figure = reproduction.figure(rows)
    assert all(axes.has_data() for axes in figure.axes)
    save(figure, tmp_path / "again")
    for kind in ("png", "svg"):
        again = (tmp_path / f"again.{kind}").read_bytes()
        assert again == (quick(name) / f"figure.{kind}").read_bytes()
    widths = {line.count("|") for line in reproduction.table(rows).splitlines()}
    assert len(widths) <= 1


@pytest.mark.parametrize("name", REPRODUCTIONS)
def test_jobs_have_unique_names_and_can_be_pickled(name):
    jobs = REPRODUCTIONS[name].jobs(Options())
    assert len({job.name for job in jobs}) == len(jobs)
    assert all(re.fullmatch(r"[\w=.-]+", job.name) for job in jobs)
    assert len(pickle.loads(pickle.dumps([job.compute for job in jobs]))) == len(jobs)


@pytest.mark.slow
@pytest.mark.parametrize("name", PAPER)
def test_any_subset_of_jobs_can_be_drawn(quick, name):
    reproduction, jobs = REPRODUCTIONS[name], sorted((quick(name) / "jobs").iterdir())
    everything = len(reproduction.verdicts(pd.read_csv(quick(name) / "rows.csv")))
    tables = {job: pd.read_csv(job / "rows.csv") for job in jobs}
    for job in jobs:
        rest = [table for other, table in tables.items() if other != job]
        for some in (rest, [tables[job]]):
            rows = pd.concat(some, ignore_index=True)
            assert len(reproduction.verdicts(rows)) <= everything
            reproduction.table(rows)
            reproduction.figure(rows)


@pytest.mark.parametrize("name", ["lock", "linear-mdp"])
def test_the_claims_about_algorithm_2_hold_on_the_committed_rows(name):
    results = Path(__file__).parents[2] / "results" / name
    verdicts = REPRODUCTIONS[name].verdicts(pd.read_csv(results / "rows.csv"))
    assert len(verdicts) >= 4
    assert all(verdict.holds for verdict in verdicts)
    assert [verdict.measured for verdict in verdicts] == [
        stored["measured"] for stored in json.loads((results / "verdict.json").read_text())
    ]


@pytest.mark.slow
def test_certified_and_stable_members_are_in_the_confidence_set(quick):
    rows = pd.read_csv(quick("fig2a") / "rows.csv")
    points = rows[rows["part"] == "point"]
    for method in (fig2a.CERTIFIED, fig2a.STABLE):
        own = points[points["method"] == method]
        assert len(own) and (own["distance"] <= 1 + 1e-6).all()
        assert (own["bonus"] >= 0).all()
    certified, heads = (
        points[(points["method"] == method) & (points["radius"] == fig2a.PRINTED)]["bonus"]
        for method in (fig2a.CERTIFIED, "last layer")
    )
    assert (certified.to_numpy() >= heads.to_numpy() - 1e-4).all()


@pytest.mark.slow
def test_the_bonus_drops_with_samples_for_a_fixed_radius(quick):
    rows = pd.read_csv(quick("fig2b") / "rows.csv")
    for method in fig2b_analysis.LABELS:
        bonus = bonus_curve(rows, method, fig2b.FIXED)["bonus"]
        assert bonus.iloc[-1] < 0.8 * bonus.iloc[0], method
    grows = rows.assign(bonus=rows["samples"].astype(float))
    assert not any(verdict.holds for verdict in FIG2B.verdicts(grows))


def test_all_reproduces_the_figures_of_the_paper_in_one_directory_each(monkeypatch, tmp_path):
    calls = []

    def record(name, reproduction, out, options, **_):
        calls.append((name, out, options.quick))
        return []

    monkeypatch.setattr("gfucb.paper.reproduce", record)
    main(["reproduce", "all", "--quick", "--out", str(tmp_path)])
    assert calls == [(name, tmp_path / name, True) for name in PAPER]


def test_the_committed_page_matches_the_committed_results():
    text = (ROOT / "docs" / "reproduction.md").read_text()
    assert text == page_of(ROOT / "results", ROOT / "docs")
    for link in re.findall(r"\]\((?!#)(.+?)\)", text):
        assert (ROOT / "docs" / link).exists()
    titles = {
        re.sub(r"[^a-z0-9 -]", "", title.lower()).replace(" ", "-")
        for title in re.findall(r"^## (.+)$", text, flags=re.MULTILINE)
    }
    assert set(re.findall(r"\]\(#(.+?)\)", text)) == titles


@pytest.mark.slow
def test_the_page_shows_available_results_and_names_missing_ones(quick, tmp_path):
    directory = quick("fig3").parent
    main(["page", "--results", str(directory), "--out", str(tmp_path / "page.md")])
    text = (tmp_path / "page.md").read_text()
    assert "is no evidence" in text and REPRODUCTIONS["fig3"].choices.rstrip() in text
    empty = page_of(tmp_path / "nothing", tmp_path)
    assert empty.count("*No results yet.*") == empty.count("\n## ") and "![" not in empty
    for picture in re.findall(r"!\[.*\]\((.+)\)", text):
        assert (tmp_path / picture).exists()


@pytest.mark.slow
def test_the_page_lists_reproductions_of_plugins_with_results_only(quick, tmp_path, monkeypatch):
    for name in ("_entries", "_origins"):  # undone after the test
        monkeypatch.setattr(REPRODUCTIONS, name, dict(getattr(REPRODUCTIONS, name)))
    before = page_of(tmp_path, tmp_path)
    plugin = replace(REPRODUCTIONS["fig3"], title="Of a plugin", figure=lambda rows: None)
    register_reproduction("of-a-plugin", plugin)
    assert page_of(tmp_path, tmp_path) == before
    shutil.copytree(quick("fig3"), tmp_path / "of-a-plugin")
    assert "\n## Of a plugin\n" in page_of(tmp_path, tmp_path)


@pytest.mark.slow
def test_the_page_follows_the_provenance(quick, tmp_path):
    shutil.copytree(quick("fig3"), tmp_path / "fig3")
    before = page_of(tmp_path, tmp_path)
    record = json.loads((tmp_path / "fig3" / "provenance.json").read_text())
    device = record["provenance"][0]["device"]
    record["provenance"][0]["device"] = "an abacus"
    (tmp_path / "fig3" / "provenance.json").write_text(json.dumps(record))
    assert page_of(tmp_path, tmp_path) == before.replace(f", {device}.*", ", an abacus.*")
