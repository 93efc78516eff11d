"""One self-contained page from a directory of runs: figures, tables, and where they come from."""

from __future__ import annotations

import html
import json
import math
from pathlib import Path
from typing import Any

import pandas as pd

from gfucb.runs.build_run import description
from gfucb.runs.config import EnvironmentConfig, make_environment
from gfucb.runs.plots import (
    action_sets_figure,
    colour,
    label,
    late_regret,
    paired_regrets,
    regret_curves,
    svg,
)
from gfucb.runs.store import read_config, read_provenance
from gfucb.runs.summary import (
    find_runs,
    load_rows,
    presentable,
    reference_among,
    summarise,
)

CSS = """
:root { --ink:#1d1d1f; --soft:#6b6b70; --line:#e4e4e7; --paper:#ffffff; --back:#f6f6f4;
        --accent:#d55e00; }
* { box-sizing:border-box; }
body { margin:0; background:var(--back); color:var(--ink);
       font:16px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",sans-serif; }
main { max-width:920px; margin:0 auto; padding:48px 24px 72px; }
h1 { font-size:2rem; line-height:1.2; margin:0 0 .3em; letter-spacing:-.02em; }
h2 { font-size:1.2rem; margin:2.4em 0 .6em; letter-spacing:-.01em; }
.lead { font-size:1.13rem; color:#3c3c40; max-width:46em; }
.cards { display:grid; grid-template-columns:repeat(auto-fit,minmax(150px,1fr)); gap:14px;
         margin:28px 0; }
.card { background:var(--paper); border:1px solid var(--line); border-radius:12px;
        padding:16px 18px; }
.card b { display:block; font-size:1.7rem; letter-spacing:-.02em; line-height:1.2; }
.card span { color:var(--soft); font-size:.86rem; line-height:1.35; display:block; }
.card.strong b { color:var(--accent); }
figure { background:var(--paper); border:1px solid var(--line); border-radius:12px; margin:0 0 18px;
         padding:18px 20px 10px; }
figure svg { width:100%; height:auto; display:block; }
figcaption { color:var(--soft); font-size:.9rem; padding:8px 2px 6px; }
.scroll { overflow-x:auto; background:var(--paper); border:1px solid var(--line);
          border-radius:12px; }
table { border-collapse:collapse; width:100%; font-variant-numeric:tabular-nums;
        font-size:.93rem; }
th,td { padding:9px 14px; text-align:right; border-bottom:1px solid var(--line);
        white-space:nowrap; }
th { color:var(--soft); font-weight:600; font-size:.82rem; }
th:first-child,td:first-child { text-align:left; }
td:first-child i { display:block; color:var(--soft); font-style:normal; font-size:.8rem;
                   white-space:normal; }
tr:last-child td { border-bottom:0; }
tr.strong td { background:#fdf3ec; font-weight:600; }
tr.strong td i { font-weight:400; }
.dot { display:inline-block; width:10px; height:10px; border-radius:50%; margin-right:8px; }
.note { color:var(--soft); font-size:.9rem; }
details { margin-top:12px; } summary { cursor:pointer; color:var(--soft); }
pre { background:var(--paper); border:1px solid var(--line); border-radius:12px; padding:14px 16px;
      overflow-x:auto; font-size:.84rem; }
@media print { body { background:#fff; } main { padding:0; } figure,.card { break-inside:avoid; } }
"""


def write_report(directory: Path) -> Path:
    """Write `directory`/report.html from the finished runs below `directory`; return its path."""
    path = directory / "report.html"
    path.write_text(report_page(directory), encoding="utf-8")
    return path


def report_page(directory: Path) -> str:
    """The page as text. It needs nothing beside itself."""
    rows, table = load_rows(directory), summarise(directory)
    runs = find_runs(directory)
    config, provenance = read_config(runs[0]), read_provenance(runs[0])
    environment, num_rounds = config["environment"], int(rows["round"].max())
    title = f"{environment['num_tasks']} tasks, {environment['num_actions']} actions, {num_rounds} rounds"
    parts = [
        f"<h1>{html.escape(_environment_name(environment))}: {title}</h1>",
        f'<p class="lead">{lead(table, environment, num_rounds)}</p>',
        _cards(table),
        _figure(
            svg(regret_curves(rows)),
            "Cumulative regret of one task, mean over seeds with its 95% band. All agents meet the "
            "same contexts and the same noise. An arrow marks a curve that leaves the picture.",
        ),
        "<h2>The table</h2>",
        _table(table),
        '<p class="note">Regret: expected reward lost against the best action, summed over the '
        "rounds, of one task; ± is the 95% t-interval over seeds. <em>versus GFUCB</em> is the "
        "mean difference on the same seeds: above zero, GFUCB lost less. <em>each</em>: "
        "regret of one decision; <em>late</em>: of one in the last quarter. Seconds are CPU "
        "seconds of one run, on one thread. <em>&lt; V*</em>, in episodic environments: the share of "
        "episodes whose optimistic value was below the optimal one.</p>",
        "<h2>Who still loses, and how much</h2>",
        _figure(
            svg(late_regret(rows)),
            "Regret of a single decision as the rounds go by, on a logarithmic axis.",
        ),
        _figure(
            svg(paired_regrets(rows)),
            "Every dot is a seed; the diamond is the mean with its 95% interval. "
            "The dotted line is GFUCB's mean.",
        ),
        *_problem(environment, config["seed"]),
        "<h2>Where this comes from</h2>",
        _provenance(directory, config, provenance, len(runs)),
    ]
    body = "\n".join(parts)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>gfucb: {html.escape(title)}</title>\n<style>{CSS}</style>\n</head>\n"
        f"<body><main>\n{body}\n</main></body>\n</html>\n"
    )


def _environment_name(environment: dict[str, Any]) -> str:
    names = {
        "digits": "Handwritten digits, 8 by 8",
        "mnist": "MNIST digits",
        "finite": "A finite class of representations",
        "linear": "A linear representation",
        "lock": "Combination locks",
        "rich-lock": "Combination locks with rich observations",
        "linear-mdp": "Linear MDPs",
    }
    return names.get(environment["kind"], environment["kind"])


def lead(table: pd.DataFrame, environment: dict[str, Any], num_rounds: int) -> str:
    """The result in words, with what the seeds cannot tell marked as such."""
    by_agent = table.set_index("agent")
    reference = reference_among(by_agent.index)
    if reference not in by_agent.index:
        return f"{len(table)} agents on the same seeds, {num_rounds} rounds."
    mine = by_agent.loc[reference]
    sentences = [
        f"After {num_rounds} rounds GFUCB has lost {mine['regret']:.1f} reward in each of "
        f"{environment['num_tasks']} tasks."
    ]
    if "optimism_violations" in mine.index:
        sentences.append(
            f"Its optimistic value was below the optimal one in {mine['optimism_violations']:.1%} "
            "of the episodes."
        )
    rivals = ("multitask-greedy", "linucb", "independent-eps-greedy")
    for rival in (*rivals, "gfucb-mdp-literal", "independent-mdp", "oracle-lsvi-ucb"):
        if rival in by_agent.index:
            sentences.append(_versus(by_agent.loc[rival], rival))
    return " ".join(sentences)


def _versus(line: Any, rival: str) -> str:
    difference, spread = line["versus_reference"], line["versus_reference_half_width"]
    share = abs(difference) / line["regret"]
    verdict = "less" if difference > 0 else "more"
    sure = abs(difference) > spread if math.isfinite(spread) else False
    caveat = "" if sure else ", which these seeds cannot tell from zero"
    return f"That is {share:.0%} {verdict} than {label(rival)}{caveat}."


def _cards(table: pd.DataFrame) -> str:
    cards = []
    for agent in ("gfucb", "multitask-greedy", "linucb", "oracle-ucb", "uniform"):
        found = table[table["agent"] == agent]
        if len(found):
            line = found.iloc[0]
            strong = " strong" if agent == "gfucb" else ""
            cards.append(
                f'<div class="card{strong}"><b>{line["regret_per_decision"]:.3f}</b>'
                f"<span>{html.escape(label(agent))}<br>regret of a decision</span></div>"
            )
    return f'<div class="cards">{"".join(cards)}</div>'


def _table(table: pd.DataFrame) -> str:
    lines = presentable(table)
    rows = []
    for line in lines:
        agent = line["agent"]
        strong = ' class="strong"' if agent in ("gfucb", "gfucb-mdp") else ""
        about = description(agent)
        cells = "".join(f"<td>{value}</td>" for name, value in line.items() if name != "agent")
        rows.append(
            f"<tr{strong}><td><span class='dot' style='background:{colour(agent)}'></span>"
            f"{html.escape(label(agent))}<i>{html.escape(about)}</i></td>{cells}</tr>"
        )
    head = "".join(f"<th>{name}</th>" for name in lines[0])
    return (
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def _figure(picture: str, caption: str) -> str:
    return f"<figure>{picture}<figcaption>{html.escape(caption)}</figcaption></figure>"


def _problem(environment: dict[str, Any], seed: int) -> list[str]:
    """What a round looks like, where the images are at hand."""
    if environment["kind"] != "digits":
        return []
    first = make_environment(EnvironmentConfig(**environment), seed).round(1)
    caption = (
        f"The first round of seed {seed} for three of the tasks. Below each image is what it pays "
        "that task on average; the agent sees the images only, picks one a task, and learns its "
        "reward plus noise. What a digit pays differs from task to task: what is shared is how "
        "to tell digits apart."
    )
    return ["<h2>The problem</h2>", _figure(svg(action_sets_figure(first)), caption)]


def _provenance(
    directory: Path, config: dict[str, Any], provenance: dict[str, Any], num_runs: int
) -> str:
    changes = " with uncommitted changes" if provenance.get("uncommitted_changes") else ""
    commit = provenance.get("commit") or "unknown"
    facts = (
        f"{num_runs} runs in <code>{html.escape(directory.name)}</code>, started "
        f"{html.escape(str(provenance.get('started')))}, by gfucb {provenance.get('gfucb')} at "
        f"commit <code>{html.escape(commit[:12])}</code>{changes}, Python "
        f"{provenance.get('python')}, torch {provenance.get('versions', {}).get('torch')}, "
        f"{html.escape(str(provenance.get('platform')))}. Every run directory holds its settings, its "
        "versions and a row for each round."
    )
    settings = html.escape(
        json.dumps({"environment": config["environment"], "agent": config["agent"]}, indent=2)
    )
    return (
        f'<p class="note">{facts}</p><details><summary>Settings of the first run</summary>'
        f"<pre>{settings}</pre></details>"
    )
