"""The benchmarks of serving run in a small version."""

import json
import sys

from benchmarks import log_growth, serving_latency


def call(module, monkeypatch, *words: object) -> None:
    monkeypatch.setattr(sys, "argv", [module.__name__, *map(str, words)])
    module.main()


def test_latency_is_measured_once_for_each_seed(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(serving_latency, "TASKS", 3)
    out = tmp_path / "latency.json"
    words = ["--decisions", 4, "--seeds", 0, "--json", out]
    call(serving_latency, monkeypatch, *words)
    content = json.loads(out.read_text())
    assert [run["calls"] for run in content["runs"]] == [8] * 3
    assert set(content["regret_ratio_by_rate"]) == {"0.0", "50.0"}
    page = tmp_path / "page.md"
    page.write_text("<!-- serving latency -->\nold\n<!-- end of serving latency -->\n")
    call(serving_latency, monkeypatch, *words, "--page", page)
    assert json.loads(out.read_text()) == content  # times of a second run would differ
    assert "| background | without pauses |" in page.read_text() and "old" not in page.read_text()


def test_the_growth_of_a_log_is_measured_once(tmp_path, monkeypatch):
    out, page = tmp_path / "growth.json", tmp_path / "page.md"
    page.write_text("<!-- log growth -->\n<!-- end of log growth -->\n")
    call(log_growth, monkeypatch, "--sizes", 3, 6, "--json", out, "--page", page)
    rows = json.loads(out.read_text())["rows"]
    assert [row["decisions"] for row in rows] == [3, 6]
    assert "| 6 |" in page.read_text()
    call(log_growth, monkeypatch, "--json", out)
    assert json.loads(out.read_text())["rows"] == rows
