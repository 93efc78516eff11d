"""How figures look: fonts and axes, widths, colours and line styles that can be distinguished."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from matplotlib.colors import to_hex, to_rgb

# Widths of figures in inches: of a page, and of a page on a phone.
WIDE, NARROW = 7.6, 4.4
# The contrast of text with a white page that WCAG asks for, level AA.
TEXT_CONTRAST = 4.5
LINE_STYLES = ("-", "--", ":", "-.")
STYLE: Any = {
    "font.family": "sans-serif",
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#999999",
    "axes.labelcolor": "#333333",
    "xtick.color": "#666666",
    "ytick.color": "#666666",
    "axes.grid": True,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.8,
    "svg.fonttype": "none",
    # Without a fixed salt the identifiers in an SVG change from one drawing to the next.
    "svg.hashsalt": "gfucb",
}


def text_colour(colour: str) -> str:
    """The colour, darkened as far as text on white needs it."""
    red, green, blue = to_rgb(colour)
    while 1.05 / (_luminance(red, green, blue) + 0.05) < TEXT_CONTRAST:
        red, green, blue = 0.95 * red, 0.95 * green, 0.95 * blue
    return to_hex((red, green, blue))


def line_styles(colours: Mapping[str, str]) -> dict[str, str]:
    """The line style of each agent: agents of the same colour have different ones."""
    used: dict[str, int] = {}
    styles = {}
    for agent, colour in colours.items():
        styles[agent] = LINE_STYLES[used.get(colour, 0) % len(LINE_STYLES)]
        used[colour] = used.get(colour, 0) + 1
    return styles


def seeds_in_words(num_seeds: int | str) -> str:
    """What curves and bands are: a run, or the mean of several."""
    return "one seed" if num_seeds == 1 else f"mean of {num_seeds} seeds, 95% band"


def _luminance(red: float, green: float, blue: float) -> float:
    """The relative luminance of a colour, as WCAG defines it."""
    linear = [
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (red, green, blue)
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
