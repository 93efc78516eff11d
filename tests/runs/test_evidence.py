"""Comparisons, tables, figures and the report."""

import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgb

from gfucb.core.errors import InvalidInputError, RunDirectoryError
from gfucb.runs import (
    BanditAgentConfig,
    Comparison,
    ImageBanditConfig,
    RunConfig,
    load_rows,
    run,
    run_comparison,
    summarise,
)
from gfucb.runs.figure_style import NARROW, WIDE, text_colour
from gfucb.runs.plots import action_sets_figure, late_regret, paired_results, regret_curves, svg
from gfucb.runs.report import lead, report_page, write_report
from gfucb.runs.summary import half_width

# The comparison that most of these tests use takes some seconds.
pytestmark = pytest.mark.slow

AGENTS = ("gfucb", "multitask-greedy", "linucb", "uniform")
SMALL = Comparison(
    ImageBanditConfig(num_tasks=3, num_actions=4),
    tuple(BanditAgentConfig(name=name, fit_steps=3) for name in AGENTS),
    seeds=(0, 1, 2),
    num_rounds=8,
)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    directory = tmp_path_factory.mktemp("comparison") / "runs"
    run_comparison(SMALL, directory)
    return directory


def test_a_comparison_has_a_run_for_each_agent_and_seed(runs):
    rows = load_rows(runs)
    assert len(rows) == 4 * 3 * 8
    assert set(rows["agent"]) == set(AGENTS)
    assert (runs / "gfucb" / "seed=2" / "rows.csv").exists()


def test_comparing_again_runs_nothing_and_other_settings_are_refused(runs):
    before = {p: p.stat().st_mtime_ns for p in runs.rglob("rows.csv")}
    run_comparison(SMALL, runs)
    with pytest.raises(RunDirectoryError, match="num_rounds = 8, not 9"):
        run_comparison(replace(SMALL, num_rounds=9), runs)
    assert before == {p: p.stat().st_mtime_ns for p in runs.rglob("rows.csv")}


def test_the_summary_equals_a_direct_computation(runs):
    table, rows = summarise(runs).set_index("agent"), load_rows(runs)
    finals = {
        agent: np.array(
            [rows[(rows.agent == agent) & (rows.seed == seed)].regret.sum() for seed in range(3)]
        )
        for agent in AGENTS
    }
    for agent in AGENTS:
        own = finals[agent]
        assert table.loc[agent, "regret"] == pytest.approx(own.mean())
        expected = 4.302652729911275 * own.std(ddof=1) / np.sqrt(3)  # t quantile, 2 degrees
        assert table.loc[agent, "regret_half_width"] == pytest.approx(expected)
        difference = own - finals["gfucb"]
        assert table.loc[agent, "versus_reference"] == pytest.approx(difference.mean())
        late = rows[(rows.agent == agent) & (rows["round"] > 6)].regret.mean()
        assert table.loc[agent, "late_regret"] == pytest.approx(late)
    assert list(summarise(runs)["regret"]) == sorted(summarise(runs)["regret"])


@pytest.mark.parametrize(
    ("changes", "message"),
    [({"seeds": (1, 1)}, "seeds"), ({"seeds": ()}, "seeds"), ({"agents": ()}, "agents")],
)
def test_agents_and_seeds_must_be_given_and_be_distinct(changes, message):
    with pytest.raises(InvalidInputError, match=message):
        replace(SMALL, **changes)


def test_runs_of_different_length_are_not_mixed(tmp_path):
    for num_rounds in (3, 4):
        config = RunConfig(SMALL.environment, BanditAgentConfig(name="uniform"), num_rounds)
        for _ in run(config, tmp_path / str(num_rounds)):
            pass
    with pytest.raises(RunDirectoryError, match="another environment or length"):
        load_rows(tmp_path)


def test_two_runs_of_an_agent_with_one_seed_are_not_mixed(tmp_path):
    config = RunConfig(SMALL.environment, BanditAgentConfig(name="uniform"), 2, 7)
    for comparison in ("first", "second"):
        for _ in run(config, tmp_path / comparison / "uniform"):
            pass
    with pytest.raises(RunDirectoryError, match=r"first.* and .*second.* of uniform with seed 7"):
        load_rows(tmp_path)
    assert len(load_rows(tmp_path / "first")) == 2


@pytest.mark.parametrize("change", ["5,x,y,z", "5,1,2,3,4,5,6,7,8,9,10", "", None, "\udcff"])
def test_rows_that_are_damaged_are_named_and_not_averaged(change, tmp_path):
    config = RunConfig(SMALL.environment, BanditAgentConfig(name="uniform"), 2, 7)
    for _ in run(config, tmp_path / "run"):
        pass
    path = tmp_path / "run" / "rows.csv"
    lines = path.read_text().splitlines()
    kept = lines[:-1] if change is None else [*lines[:-1], change] if change else []
    path.write_text("\n".join(kept), errors="surrogateescape")
    with pytest.raises(RunDirectoryError, match=r"rows.csv is damaged: .*; remove .*run and comp"):
        load_rows(tmp_path)


def test_one_seed_has_no_interval():
    assert np.isnan(half_width(np.array([1.0])))


def test_directories_without_runs_are_named(tmp_path):
    with pytest.raises(RunDirectoryError, match="no directory"):
        summarise(tmp_path / "nowhere")
    with pytest.raises(RunDirectoryError, match="no runs"):
        summarise(tmp_path)


def test_figures_have_labels_units_and_a_curve_for_each_agent(runs):
    rows = load_rows(runs)
    curves = regret_curves(rows).axes[0]
    assert curves.get_xlabel() == "round"
    assert "cumulative regret" in curves.get_ylabel()
    assert len(curves.lines) == 4 and len(curves.collections) == 4
    names = [text.get_text() for text in curves.texts]
    assert any(name.startswith("GFUCB") for name in names) and len(names) == 4
    late = late_regret(rows).axes[0]
    assert late.get_yscale() == "log"
    paired = paired_results(rows).axes[0]
    assert len(paired.get_yticklabels()) == 4


def test_intervals_of_regrets_are_drawn_whole_and_no_agent_lies_on_the_axis():
    regrets = {"gfucb": (1.0, 1.1, 1.2), "linucb": (8.0, 10.0, 12.0), "mine": (2.0, 2.0, 2.0)}
    rows = pd.DataFrame(
        {"agent": name, "seed": seed, "round": 1, "regret": value, "cumulative_regret": value}
        for name, values in regrets.items()
        for seed, value in enumerate(values)
    )
    axes = paired_results(rows).axes[0]
    end = 10.0 + half_width(np.array(regrets["linucb"]))
    assert 1.15 * 12.0 < end < axes.get_xlim()[1] < 1.1 * end
    assert axes.get_ylim() == (-0.5, 2.5)


def test_curves_are_means_of_the_rows(runs):
    rows = load_rows(runs)
    line = max(regret_curves(rows).axes[0].lines, key=lambda drawn: drawn.get_linewidth())
    expected = rows[rows.agent == "gfucb"].groupby("round").cumulative_regret.mean()
    np.testing.assert_allclose(line.get_ydata(), expected)


def test_one_seed_can_be_drawn_without_a_band(runs):
    rows = load_rows(runs)
    axes = regret_curves(rows[rows.seed == 0]).axes[0]
    assert len(axes.lines) == 4 and len(axes.collections) == 0


def test_figures_state_the_seeds_and_have_labels_that_can_be_read(runs):
    rows = load_rows(runs)
    for figure in (regret_curves(rows), late_regret(rows)):
        assert figure.axes[0].get_title(loc="left") == "mean of 3 seeds, 95% band"
    for text in regret_curves(rows).axes[0].texts:
        assert text.get_color() == text_colour(text.get_color())


def test_long_labels_take_several_lines_on_a_phone(runs):
    rows = load_rows(runs).replace({"agent": {"uniform": "an agent with a long name"}})
    for width, expected in ((WIDE, False), (NARROW, True)):
        drawn = regret_curves(rows, width=width), paired_results(rows, width=width)
        labels = [
            t.get_text() for t in (*drawn[0].axes[0].texts, *drawn[1].axes[0].get_yticklabels())
        ]
        long = [label for label in labels if label.startswith("an agent")]
        assert len(long) == 2 and all(("\n" in label) == expected for label in long)


def test_text_colours_are_dark_enough_and_keep_their_hue():
    assert text_colour("#222222") == "#222222"
    for colour in ("#aaaaaa", "#f2b701", "#56b4e9"):
        red, green, blue = to_rgb(text_colour(colour))
        rgb = np.array([red, green, blue])
        linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
        luminance = float(np.dot((0.2126, 0.7152, 0.0722), linear))
        assert 4.5 <= 1.05 / (luminance + 0.05) < 5.5
        assert np.argmax(to_rgb(colour)) == np.argmax((red, green, blue))


def test_any_two_agents_of_a_figure_can_be_told_apart():
    names = ["gfucb", *(f"own agent {i}" for i in range(20))]
    rows = pd.DataFrame(
        [
            {"agent": name, "seed": 0, "round": t, "regret": 1.0, "cumulative_regret": t + i}
            for i, name in enumerate(names)
            for t in (1, 2, 3)
        ]
    )
    lines = regret_curves(rows).axes[0].lines
    assert len({(line.get_color(), line.get_linestyle()) for line in lines}) == len(names)


def test_agents_without_gfucb_are_described_too():
    table = pd.DataFrame({"agent": ["mine", "linucb"], "regret": [1.0, 2.0], "seeds": [3, 3]})
    assert lead(table, 10).endswith("mine has the best regret: 1.0 per task (mean of 3 seeds).")


def test_the_same_rows_give_the_same_figure(runs):
    rows = load_rows(runs)
    assert svg(regret_curves(rows)) == svg(regret_curves(rows))


class Links(HTMLParser):
    """Collects what a page would load, and checks that its tags are balanced."""

    def __init__(self) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        self.loads += [v for k, v in values.items() if k in ("src", "href", "xlink:href") and v]
        if tag not in ("meta", "br", "img", "link"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.loads += [v for k, v in attrs if k in ("src", "href", "xlink:href") and v]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_report_is_one_page_that_loads_nothing(runs):
    page = write_report(runs).read_text()
    parser = Links()
    parser.feed(page)
    assert parser.open == []
    assert all(link.startswith(("#", "data:")) for link in parser.loads)
    # Each of four figures for a page and for a phone, with a description.
    assert page.count("<svg") == page.count('role="img" aria-label="') == 8
    assert "<script" not in page and "the mean over 3 seeds with its 95% band" in page
    for name in ("GFUCB", "multitask greedy", "LinUCB per task", "uniform"):
        assert name in page


def test_the_report_shows_the_numbers_of_the_table(runs):
    page, table = report_page(runs), summarise(runs)
    for line in table.to_dict("records"):
        shown = f"{line['regret']:.2f} ± {line['regret_half_width']:.2f}"
        assert shown in page
    for heading in ("difference to GFUCB", "regret per decision, last quarter", "CPU seconds"):
        assert heading in page
    assert "(mean of 3 seeds)" in page
    assert re.search(r"commit <code>[0-9a-f]{12}|commit <code>unknown", page)


def test_the_report_marks_differences_that_are_not_significant():
    table = pd.DataFrame(
        {
            "agent": ["gfucb", "linucb", "multitask-greedy"],
            "regret": [1.0, 2.0, 1.1],
            "versus_reference": [0.0, 1.0, 0.1],
            "versus_reference_half_width": [0.0, 0.2, 0.5],
        }
    )
    text = lead(table, 10)
    assert "50% less than LinUCB per task." in text
    assert "9% less than multitask greedy (not significant with these seeds)." in text


def test_the_action_sets_of_a_round_can_be_drawn():
    from gfucb.environments import ImageBandit, load_digits

    figure = action_sets_figure(ImageBandit(load_digits(), num_tasks=4, num_actions=6).round(1))
    assert len(figure.axes) == 3 * 6
