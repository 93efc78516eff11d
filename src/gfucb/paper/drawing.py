"""Small things that several figures draw alike."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, NullFormatter

# Between two labels, as a share of the height of the axes.
GAP = 0.062


def label_ends(axes: Axes, ends: Mapping[str, tuple[float, str]]) -> None:
    """Write words to the right of the axes, at a height and in a colour, moved apart.

    Call it when the limits of the axes are what they will be.
    """
    to_fraction = axes.transData + axes.transAxes.inverted()
    x = axes.get_xlim()[1]
    heights = {words: float(to_fraction.transform((x, y))[1]) for words, (y, _) in ends.items()}
    above = -1.0
    for words in sorted(heights, key=lambda name: heights[name]):
        above = max(heights[words], above + GAP)
        axes.annotate(
            words,
            (1.02, above),
            xycoords="axes fraction",
            color=ends[words][1],
            va="center",
            fontsize=9.5,
            annotation_clip=False,
        )


def plain_numbers(axes: Axes, *, x: bool = False, y: bool = False) -> None:
    """Numbers as people write them on a logarithmic axis, and no others between them."""
    plain = FuncFormatter(lambda value, position: f"{value:g}")
    for axis in [axes.xaxis] * x + [axes.yaxis] * y:
        axis.set_major_formatter(plain)
        axis.set_minor_formatter(NullFormatter())
