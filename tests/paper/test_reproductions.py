"""The paper's figures made anew: quick versions, what they measure, and the page about them."""

import itertools
import json
import pickle
import re
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from gfucb import GFUCB
from gfucb.cli.main import main
from gfucb.core.random import random_stream
from gfucb.estimation import LogRadius
from gfucb.paper import PAPER, REPRODUCTIONS, Options, page_of
from gfucb.paper.bonuses import BATCHED, quality, replayed
from gfucb.paper.fig2a import sweep as fig2a_rows
from gfucb.paper.fig2b import analysis as fig2b
from gfucb.paper.fig2b import sweep as fig2b_rows
from gfucb.paper.fig3 import analysis as fig3
from gfucb.paper.logged_runs import (
    Play,
    Source,
    first_samples,
    learned_together,
    offline_log,
    paper_fit,
    played,
)
from gfucb.paper.probe import analysis as probe
from gfucb.paper.probe import sweep as probe_rows
from gfucb.runs.plots import save

ROOT = Path(__file__).parents[2]
DIGITS = Source(digits=True)


@pytest.fixture(scope="session")
def quick(tmp_path_factory):
    """Folders of quick versions, each made once."""
    directory = tmp_path_factory.mktemp("results")

    def made(name: str) -> Path:
        if not (directory / name).exists():
            main(["reproduce", name, "--quick", "--out", str(directory / name)])
        return directory / name

    return made


@pytest.mark.parametrize("name", REPRODUCTIONS)
def test_every_reproduction_has_a_quick_version(quick, name):
    out = quick(name)
    for file in ("rows.csv", "figure.png", "figure.svg", "verdict.md", "verdict.json"):
        assert (out / file).stat().st_size > 100, file
    provenance = json.loads((out / "provenance.json").read_text())
    assert provenance["asked"]["quick"] and provenance["made"][0]["commit"] is not None
    signed = [f"{name}.csv" for name in provenance["made"][0]["jobs"]]
    assert sorted(signed) == sorted(path.name for path in (out / "jobs").iterdir())
    assert "claims nothing" in (out / "verdict.md").read_text()


@pytest.mark.parametrize("name", PAPER)
def test_rows_give_the_same_table_figure_and_verdicts_again(quick, name, tmp_path):
    entry, rows = REPRODUCTIONS[name], pd.read_csv(quick(name) / "rows.csv")
    stored = json.loads((quick(name) / "verdict.json").read_text())
    assert [verdict.claim for verdict in entry.verdicts(rows)] == [v["claim"] for v in stored]
    figure = entry.figure(rows)
    assert all(axes.has_data() for axes in figure.axes)
    save(figure, tmp_path / "again")
    for kind in ("png", "svg"):
        again = (tmp_path / f"again.{kind}").read_bytes()
        assert again == (quick(name) / f"figure.{kind}").read_bytes()
    widths = {line.count("|") for line in entry.table(rows).splitlines()}
    assert len(widths) <= 1


@pytest.mark.parametrize("name", REPRODUCTIONS)
def test_pieces_have_names_of_their_own_and_can_be_made_elsewhere(name):
    jobs = REPRODUCTIONS[name].jobs(Options())
    assert len({job.name for job in jobs}) == len(jobs)
    assert all(re.fullmatch(r"[\w=.-]+", job.name) for job in jobs)
    assert len(pickle.loads(pickle.dumps([job.make for job in jobs]))) == len(jobs)


@pytest.mark.parametrize("name", PAPER)
def test_what_is_there_can_be_shown_whatever_is_missing(quick, name):
    entry, jobs = REPRODUCTIONS[name], sorted((quick(name) / "jobs").iterdir())
    everything = len(entry.verdicts(pd.read_csv(quick(name) / "rows.csv")))
    tables = {job: pd.read_csv(job) for job in jobs}
    for job in jobs:
        rest = [table for other, table in tables.items() if other != job]
        for some in (rest, [tables[job]]):
            rows = pd.concat(some, ignore_index=True)
            assert len(entry.verdicts(rows)) <= everything
            entry.table(rows)
            entry.figure(rows)


@pytest.mark.parametrize("name", ["lock", "linear-mdp"])
def test_the_claims_about_algorithm_2_hold_on_the_committed_rows(name):
    results = Path(__file__).parents[2] / "results" / name
    verdicts = REPRODUCTIONS[name].verdicts(pd.read_csv(results / "rows.csv"))
    assert len(verdicts) >= 4
    assert all(verdict.holds for verdict in verdicts)
    assert [verdict.measured for verdict in verdicts] == [
        stored["measured"] for stored in json.loads((results / "verdict.json").read_text())
    ]


def test_worlds_never_show_what_is_held_out():
    shown, held_out = DIGITS.shown(), DIGITS.held_out()
    assert len(shown.labels) + len(held_out.labels) == 1797
    seen = {image.numpy().tobytes() for image in shown.images}
    test = DIGITS.test_images(100).images
    assert sum(image.numpy().tobytes() in seen for image in test) == 0
    log = played(learned_together((0,), (5,)), DIGITS)[0, 5].data
    assert all(image.numpy().tobytes() in seen for image in log.inputs)


def test_looking_at_a_play_midway_does_not_change_it():
    early = played(Play((0,), (3, 9), 2), DIGITS)
    late = played(Play((0,), (9,), 2), DIGITS)[0, 9]
    assert len(early[0, 3].data) == 6 and len(early[0, 9].data) == 18
    assert torch.equal(early[0, 9].data.inputs, late.data.inputs)
    torch.testing.assert_close(early[0, 9].center.heads, late.center.heads)
    first = first_samples(late.data, 6)
    assert torch.equal(first.targets, early[0, 3].data.targets) and len(late.data) == 18
    assert first.round_index == 4


def test_the_default_agent_replayed_is_the_agent_that_played():
    learned = played(Play((0,), (9,), 2), DIGITS)[0, 9]
    agent = GFUCB(2, seed=0)
    found = replayed(agent, learned.data, {"last layer": BATCHED["last layer"]})
    again = agent.confidence_set(learned.data.inputs[:1])
    torch.testing.assert_close(again.center.heads, learned.center.heads, rtol=1e-4, atol=1e-5)
    # Calibrated without peeking, it comes to the radius that the agent itself had.
    radius = found["last layer"].squared_radius(1)
    assert radius == pytest.approx(learned.squared_radius, rel=1e-3)


def test_members_that_claim_to_be_in_the_set_are(quick):
    rows = pd.read_csv(quick("fig2a") / "rows.csv")
    points = rows[rows["part"] == "point"]
    for method in (fig2a_rows.CERTIFIED, fig2a_rows.STABLE):
        own = points[points["method"] == method]
        assert len(own) and (own["distance"] <= 1 + 1e-6).all()
        assert (own["bonus"] >= 0).all()
    certified, heads = (
        points[(points["method"] == method) & (points["radius"] == fig2a_rows.PRINTED)]["bonus"]
        for method in (fig2a_rows.CERTIFIED, "last layer")
    )
    assert (certified.to_numpy() >= heads.to_numpy() - 1e-4).all()


def test_points_of_a_bonus_that_is_the_error_lie_on_the_line():
    error = np.array([0.1, -0.3, 0.2])
    found = quality(error, np.abs(error))
    assert found["above"] == found["covered"] == 1 and found["correlation"] == pytest.approx(1)
    assert quality(error, np.abs(error) - 1e-6)["above"] == 0
    # An error below zero is covered by any bonus: the truth is below the fit.
    assert quality(error, np.zeros(3))["covered"] == pytest.approx(1 / 3)
    assert quality(error, np.ones(3))["correlation"] == 0


def test_radii_of_figure_2_are_those_of_the_paper():
    assert fig2a_rows.squared_radius(fig2a_rows.PRINTED, 200, None) == pytest.approx(
        1.85, abs=0.005
    )
    assert fig2b_rows.radii(20000) == {
        fig2b_rows.PRINTED: LogRadius()(2000),
        fig2b_rows.FIXED: LogRadius()(200),
    }


def test_times_of_learning_hold_the_grid_and_grow_by_no_more_than_was_asked():
    times = fig2b_rows.learning_times((10, 90, 800), 1.3)
    assert {10, 90, 800} <= set(times) and times == sorted(times)
    assert max(b / a for a, b in itertools.pairwise(times)) < 1.3 * 1.04


def test_the_bonus_falls_with_samples_for_a_fixed_radius(quick):
    rows = pd.read_csv(quick("fig2b") / "rows.csv")
    for method in fig2b.LINES:
        bonus = fig2b_rows.curve(rows, method, fig2b_rows.FIXED)["bonus"]
        assert bonus.iloc[-1] < 0.8 * bonus.iloc[0], method
    grows = rows.assign(bonus=rows["samples"].astype(float))
    assert not any(verdict.holds for verdict in fig2b.FIG2B.verdicts(grows))


def test_images_asked_in_parts_make_the_curve_of_all_images():
    bonus, error = np.random.default_rng(0).random((2, 50))

    def row(seed: int, some: slice) -> dict:
        key = {"method": "m", "radius": "r", "seed": seed, "samples": 30}
        values = {"bonus": bonus[some].mean(), "deviation": bonus[some].std()}
        return {**key, **values, "error": error[some].mean(), "images": len(bonus[some])}

    whole = pd.DataFrame([row(0, slice(None)), row(1, slice(None))])
    parts = [slice(0, 7), slice(7, 20), slice(20, 50)]
    split = pd.DataFrame([row(seed, part) for seed in (0, 1) for part in parts])
    pd.testing.assert_frame_equal(
        fig2b_rows.curve(split, "m", "r"), fig2b_rows.curve(whole, "m", "r")
    )
    assert fig2b_rows.curve(whole, "m", "r").loc[30, "deviation"] == pytest.approx(bonus.std())


def test_offline_logs_pay_what_their_digits_pay():
    log = offline_log(DIGITS, 0, 10, 300)
    environment = Play((0,), (1,), 10).environment(DIGITS, 0)
    labels = {
        image.numpy().tobytes(): int(label)
        for image, label in zip(environment.data.images, environment.data.labels, strict=True)
    }
    digits = [labels[image.numpy().tobytes()] for image in log.inputs]
    noise = log.targets - environment.reward_maps[log.tasks, digits]
    assert 0.005 < float(noise.std()) < 0.015
    assert log.samples_per_task.tolist() == [30] * 10


def test_the_fit_of_a_log_does_not_depend_on_what_comes_after_it():
    log = offline_log(DIGITS, 0, 10, 60)
    whole, part = first_samples(log, 40), first_samples(offline_log(DIGITS, 0, 10, 60), 40)
    one, other = (
        paper_fit(data, seed=0, epochs=2, device="cpu", first_part=None) for data in (whole, part)
    )
    torch.testing.assert_close(one.center.heads, other.center.heads)
    assert one.squared_radius == LogRadius()(5)


def test_one_hot_features_have_the_strongest_diagonal():
    labels = torch.arange(10).repeat(5)
    one_hot = torch.nn.functional.one_hot(labels, 10).double()
    assert fig3.contrast(fig3.kernel_map(one_hot, labels)) == pytest.approx(1)
    assert fig3.nearest_template_accuracy(one_hot, labels, one_hot, labels) == 1
    same = torch.ones(50, 4, dtype=torch.float64) / 2
    assert fig3.contrast(fig3.kernel_map(same, labels)) == pytest.approx(0)
    for seed in range(5):
        noise = torch.randn(50, 10, generator=random_stream(seed, "noise"), dtype=torch.float64)
        features = torch.nn.functional.normalize(one_hot + 0.3 * noise, dim=1)
        assert 0 < fig3.contrast(fig3.kernel_map(features, labels)) < 1


def test_the_kernel_map_is_the_mean_of_all_inner_products():
    generator = random_stream(0, "features")
    labels = torch.arange(10).repeat(3)
    features = torch.randn(30, 6, generator=generator, dtype=torch.float64)
    pairs = features @ features.T
    expected = pairs[labels == 2][:, labels == 7].mean()
    assert float(fig3.kernel_map(features, labels)[2, 7]) == pytest.approx(float(expected))


def test_a_probe_on_true_features_is_always_right_and_one_on_noise_is_not():
    labels = torch.arange(10).repeat(20)
    true = torch.nn.functional.one_hot(labels, 10).double()
    assert probe_rows.probe_accuracy(true[:100], labels[:100], true, labels) == 1
    noise = torch.randn(200, 10, generator=random_stream(0, "noise"), dtype=torch.float64)
    assert probe_rows.probe_accuracy(noise[:100], labels[:100], noise[100:], labels[100:]) < 0.35


def test_the_probe_is_the_logistic_regression_of_scikit_learn():
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    shown, test = DIGITS.shown(), DIGITS.held_out()
    pixels = [data.images.flatten(1).double() / 255 for data in (shown, test)]
    mine = probe_rows.probe_accuracy(pixels[0][:300], shown.labels[:300], pixels[1], test.labels)
    scaler = StandardScaler().fit(pixels[0][:300].numpy())
    model = LogisticRegression(max_iter=500, tol=1e-8)
    model.fit(scaler.transform(pixels[0][:300].numpy()), shown.labels[:300].numpy())
    theirs = model.score(scaler.transform(pixels[1].numpy()), test.labels.numpy())
    assert mine == pytest.approx(theirs, abs=0.005)


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ([0.8, 0.9, 0.94], "more than 4000"),
        ([0.96, 0.97, 0.98], "at most 1000"),
        ([0.9, 0.94, 0.96], "about 2828"),
    ],
)
def test_samples_needed_are_read_off_the_curve(values, told):
    assert probe.samples_needed(pd.Series(values, index=[1000, 2000, 4000])) == told


def test_all_makes_the_figures_of_the_paper_in_a_folder_each(monkeypatch, tmp_path):
    made = []

    def noted(name, entry, out, options, **_):
        made.append((name, out, options.quick))
        return []

    monkeypatch.setattr("gfucb.cli.claims.reproduce", noted)
    main(["reproduce", "all", "--quick", "--out", str(tmp_path)])
    assert made == [(name, tmp_path / name, True) for name in PAPER]


def test_the_page_is_what_the_results_say():
    text = (ROOT / "docs" / "reproduction.md").read_text()
    assert text == page_of(ROOT / "results", ROOT / "docs")
    for link in re.findall(r"\]\((?!#)(.+?)\)", text):
        assert (ROOT / "docs" / link).exists()
    titles = {
        re.sub(r"[^a-z0-9 -]", "", title.lower()).replace(" ", "-")
        for title in re.findall(r"^## (.+)$", text, flags=re.MULTILINE)
    }
    assert set(re.findall(r"\]\(#(.+?)\)", text)) == titles


def test_the_page_says_what_is_there_and_what_is_not(quick, tmp_path):
    directory = quick("fig3").parent
    main(["page", "--results", str(directory), "--out", str(tmp_path / "page.md")])
    text = (tmp_path / "page.md").read_text()
    assert "claims nothing" in text and REPRODUCTIONS["fig3"].choices.rstrip() in text
    empty = page_of(tmp_path / "nothing", tmp_path)
    assert empty.count("*Not there yet.*") == empty.count("\n## ") and "![" not in empty
    for picture in re.findall(r"!\[.*\]\((.+)\)", text):
        assert (tmp_path / picture).exists()


def test_a_page_of_changed_results_is_another_page(quick, tmp_path):
    shutil.copytree(quick("fig3"), tmp_path / "fig3")
    before = page_of(tmp_path, tmp_path)
    rows = json.loads((tmp_path / "fig3" / "provenance.json").read_text())
    rows["made"][0]["device"] = "an abacus"
    (tmp_path / "fig3" / "provenance.json").write_text(json.dumps(rows))
    assert page_of(tmp_path, tmp_path) == before.replace(", cpu.*", ", an abacus.*")
