"""The figure of an explanation: intervals of all actions, weights of past rewards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gfucb.core.optional_packages import optional_package

CHOSEN, OTHER, FOREIGN = "#0072b2", "#999999", "#e69f00"
# More actions than this are not all drawn: those with the largest upper ends are.
MOST_ACTIONS = 20
HEIGHT_OF_LINE = 0.28


def draw_explanation(actions: Sequence[dict[str, Any]], samples: Sequence[dict[str, Any]]) -> Any:
    """Draw the actions of one row, and the influential samples of the chosen one.

    Args:
        actions: rows of `Explanation.rows`, all of one row of a decision.
        samples: dicts of `Influence`.
    """
    figures = optional_package("matplotlib.figure", "figure()")
    shown = _drawn(actions)
    lines = max(4, len(shown), len(samples))
    figure = figures.Figure(figsize=(9, 1.2 + HEIGHT_OF_LINE * lines), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(3, 2))
    _draw_intervals(left, shown)
    _draw_samples(right, samples)
    figure.suptitle(f"task {actions[0]['task']}, model of now", fontsize="medium")
    return figure


def _drawn(actions: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The chosen and the greedy action, and those with the largest upper ends, in their order."""

    def rank(action: dict[str, Any]) -> tuple[bool, float]:
        is_marked = bool(action["is_chosen"] or action["is_greedy"])
        return not is_marked, -(action["upper"] or 0.0)

    kept = sorted(actions, key=rank)[:MOST_ACTIONS]
    return sorted(kept, key=lambda action: action["action"])


def _draw_intervals(axes: Any, actions: Sequence[dict[str, Any]]) -> None:
    labels = []
    for position, action in enumerate(actions):
        colour = CHOSEN if action["is_chosen"] else OTHER
        if action["mean"] is not None:
            axes.plot([action["lower"], action["upper"]], [position] * 2, color=colour, linewidth=2)
            marker = "D" if action["is_greedy"] else "o"
            axes.plot(action["mean"], position, marker, color=colour, markersize=6)
        marks = [mark for mark in ("chosen", "greedy") if action[f"is_{mark}"]]
        name = str(action.get("action_name", action["action"]))
        labels.append(f"{name} ({', '.join(marks)})" if marks else name)
    axes.set_yticks(range(len(actions)), labels)
    axes.invert_yaxis()
    axes.set_xlabel("predicted mean and interval")
    axes.set_title("actions", fontsize="small")


def _draw_samples(axes: Any, samples: Sequence[dict[str, Any]]) -> None:
    axes.set_title("task: past reward (orange: other tasks)", fontsize="small", loc="right")
    axes.set_xlabel("weight for the chosen action")
    if not samples:
        axes.text(0.5, 0.5, "no samples", ha="center", va="center", transform=axes.transAxes)
        axes.set_yticks([])
        return
    colours = [CHOSEN if sample["is_own"] else FOREIGN for sample in samples]
    axes.barh(range(len(samples)), [sample["weight"] for sample in samples], color=colours)
    labels = [f"{sample['task']}: {sample['reward']:.3g}" for sample in samples]
    axes.set_yticks(range(len(samples)), labels)
    axes.axvline(0, color="black", linewidth=0.8)
    axes.invert_yaxis()
