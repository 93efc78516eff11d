import re
import runpy
import sys

import pytest
from rich.console import Console

from gfucb.cli.main import main
from gfucb.cli.terminal import ComparisonProgress
from gfucb.runs import load_rows

SMALL = ["--environment.num-tasks", "2", "--environment.num-actions", "3", "--num-rounds", "4"]
QUICK = ["--agent.fit-steps", "2"]


def test_the_overview_explains_the_commands(capsys):
    main([])
    text = capsys.readouterr().out
    for word in ("gfucb compare", "gfucb run", "gfucb report", "--preset", "--out"):
        assert word in text


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (
            "run",
            [
                "rows.csv",
                "--agent.name",
                "--environment.num-tasks",
                "lists the presets",
            ],
        ),
        (
            "compare",
            [
                "same seeds",
                "--agents",
                "--seeds",
                "95% interval",
                "lists the presets",
            ],
        ),
        ("report", ["self-contained HTML page", "A directory that"]),
        ("bench", ["each as a ratio", "--quick", "--data-dir", "--late-rounds", "--out"]),
        ("fetch-mnist", ["checksums", "--data-dir"]),
        ("evaluate", ["LOG is the log of a gfucb.Agent", "--policy", "--columns.task", "dr:"]),
        ("presets", ["presets, environments, agents"]),
    ],
)
def test_every_command_explains_itself(command, words, capsys):
    with pytest.raises(SystemExit) as stop:
        main([command, "--help"])
    assert stop.value.code == 0
    text = " ".join(capsys.readouterr().out.split())
    for word in words:
        assert word in text


def test_help_texts_do_not_have_the_line_breaks_of_the_source(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "400")
    for command, text in (
        ("run", "best digits; tenths: digit / 10 in all tasks; uniform: drawn from [0,"),
        ("reproduce", "such as `paper-*`. With it, several machines"),
        ("bench", "the time of 200 is extrapolated linearly from fewer."),
    ):
        with pytest.raises(SystemExit):
            main([command, "--help"])
        assert text in capsys.readouterr().out


def test_help_shows_what_settings_mean_and_the_defaults_of_the_preset(capsys):
    with pytest.raises(SystemExit):
        main(["run", "--preset", "mnist", "--help"])
    text = " ".join(capsys.readouterr().out.split())
    assert "number of rounds" in text and "600" in text and "permutation" in text


def test_run_writes_rows_and_says_where(tmp_path, capsys):
    main(["run", "--out", str(tmp_path / "run"), *SMALL, *QUICK, "--seed", "5"])
    assert "rows.csv" in capsys.readouterr().out.replace("\n", "")
    assert len(load_rows(tmp_path / "run")) == 4


def test_compare_prints_the_table_draws_the_figure_and_report_makes_the_page(tmp_path, capsys):
    out = str(tmp_path / "runs")
    agents = ["--agents", "gfucb", "uniform", "--seeds", "0", "1", "--processes", "1"]
    main(["compare", "--preset", "demo", "--out", out, *agents, *SMALL, *QUICK])
    printed = capsys.readouterr().out
    for word in ("GFUCB", "uniform", "versus GFUCB", "seconds", "regret"):
        assert word in printed
    left = r"(about|less than) \d+ (s|min) left"
    assert re.search(rf"gfucb, seed 0: regret \S+ \(48% done, {left}\)", printed)
    assert "(100% done)" in printed
    for name in ("regret.png", "regret.svg", "summary.csv"):
        assert (tmp_path / "runs" / name).stat().st_size > 100
    main(["report", out])
    assert (tmp_path / "runs" / "report.html").exists()
    main(["compare", "--preset", "demo", "--out", out, *agents, *SMALL, *QUICK])
    assert "GFUCB" in capsys.readouterr().out


def test_the_time_left_is_estimated_from_the_work_of_this_call():
    now = [100.0]
    shown: list[tuple[float, str]] = []
    progress = ComparisonProgress(
        Console(), lambda share, left: shown.append((share, left)), clock=lambda: now[0]
    )
    progress.advance(0.5)  # done by an earlier call
    for seconds, share in (
        (10, 0.6),
        (400, 0.61),
        (30_000, 0.62),
        (30_001, 0.99999),
        (30_100, 1.0),
    ):
        now[0] = 100.0 + seconds
        progress.advance(share)
    assert shown == [
        (0.5, ""),
        (0.6, "about 40 s left"),
        (0.61, "about 24 min left"),
        (0.62, "about 26.4 h left"),
        (0.99999, "less than 5 s left"),
        (1, ""),
    ]


def test_a_path_that_cannot_be_a_directory_is_named(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    with pytest.raises(SystemExit):
        main(["run", "--out", str(tmp_path / "file" / "run"), *SMALL, "--agent.name", "uniform"])
    assert "file" in capsys.readouterr().err


def test_the_version(capsys):
    main(["--version"])
    assert capsys.readouterr().out.startswith("gfucb 0.")


def test_presets_lists_presets_and_agents(capsys):
    main(["presets"])
    printed = capsys.readouterr().out
    assert "demo" in printed and "independent-eps-greedy" in printed


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["dance"], "unknown command 'dance'; the known ones are: audit, bench, compare"),
        (["compare", "--preset", "imagenet", "--out", "x"], "unknown preset 'imagenet'"),
        (["compare", "--agents", "ucb1", "--out", "x"], "unknown agent 'ucb1'; the known ones"),
        (["run", "--agent.name", "ucb1", "--out", "x"], "unknown agent 'ucb1'"),
        (["run", "--num-rounds", "0", "--out", "x"], "num_rounds must be at least 1"),
        (["run", "--agent.name", "lsvi-ucb", "--out", "x"], "agent 'lsvi-ucb' is for episodic"),
        (["compare", "--agents", "fitted-q", "--out", "x"], "agent 'fitted-q' is for episodic"),
        (["fetch-mnist", "--data-dir", __file__], "is no directory; name one for the files"),
        (
            ["page", "--results", "y", "--out", "x.md"],
            "no directory y; `gfucb reproduce` makes one",
        ),
        (
            ["run", "--environment.noise-scale", "-1", "--out", "x"],
            "noise_scale must be a finite number above 0",
        ),
        (["run", "--agent.ridge", "0", "--out", "x"], "ridge must be a finite number"),
        (
            ["compare", *SMALL, "--agents", "uniform", "gfucb", "--agent.ridge", "0", "--out", "x"],
            "ridge must be a finite number",
        ),
        (
            ["run", "--preset", "mnist", "--out", "x", "--data-dir", "nowhere"],
            "no directory nowhere",
        ),
        (["compare", "--processes", "0", "--out", "x"], "processes must be at least 1"),
        (["compare", "--engine", "slurm", "--out", "x"], "unknown engine 'slurm'; the known ones"),
        (["bench", "--address", "auto", "--out", "x"], "engine local has no address"),
        (["bench", "--device", "xla", "--out", "x"], "device 'xla' is not available on this"),
        (["compare", "--seeds", "1", "1", "--out", "x"], "seeds must be given, each once"),
        (
            ["run", "--environment.name", "finite", "--environment.feature-dim", "0", "--out", "x"],
            "at least 1",
        ),
        (["report", "nowhere"], "there is no directory nowhere"),
        (["report", "x", "--preset", "demo"], "Unrecognized options: --preset"),
        (["run", "--environment.name", "casino", "--out", "x"], "unknown environment 'casino'"),
        (["compar", "--out", "x"], "unknown command 'compar', perhaps 'compare'; the known ones"),
        (["run", "--agent.fit", "sgd", "--out", "x"], "unknown fit 'sgd'; the known ones"),
        (
            ["run", "--agent.action-selector", "best", "--out", "x"],
            "unknown action selector 'best'; the known ones",
        ),
        (
            ["compare", "--preset", "lock", "--agents", "linucb", "--out", "x"],
            "agents for episodic environments are",
        ),
        (["compare", "--agent.name", "gfucb", "--out", "x"], "Unrecognized options: --agent.name"),
        (["run", "--plugin", "nowhere.py", "--out", "x"], "there is no plugin file"),
    ],
)
def test_mistakes_get_a_sentence_and_leave_nothing_behind(
    words, message, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as stop:
        main(words)
    assert stop.value.code == 2
    assert message in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_an_existing_run_is_not_overwritten(tmp_path, capsys):
    words = ["run", "--out", str(tmp_path / "run"), *SMALL, "--agent.name", "uniform"]
    main(words)
    with pytest.raises(SystemExit):
        main(words)
    assert "never overwritten" in capsys.readouterr().err


def test_the_package_is_a_command(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["gfucb", "--version"])
    runpy.run_module("gfucb", run_name="__main__")
    assert capsys.readouterr().out.startswith("gfucb 0.")
