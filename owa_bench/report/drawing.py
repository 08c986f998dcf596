"""What all figures of a report share: settings, colours, curves, legends, inline SVG.

Same data, same bytes, no dates. Colours are written as marks that the page's style
sheet fills in, so one drawing is right on a light and on a dark screen.
"""

import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from owa_bench.records.score import Curve

VERSION = mpl.__version__


# Each mark is a colour nobody would choose; the page's style sheet holds the real one.
_MARKS = {f"#01010{i}": f"var(--agent{i})" for i in range(6)} | {
    "#010110": "var(--ink)",
    "#010111": "var(--muted)",
    "#010112": "var(--line)",
}
INK, MUTED, LINE = "#010110", "#010111", "#010112"
_WIDTH = 5.2  # inches at 72 points: readable at the width of a phone
_SETTINGS: dict[str, Any] = {
    "svg.fonttype": "none",
    "font.family": ["sans-serif"],
    "font.size": 10,
    "axes.edgecolor": LINE,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": LINE,
    "grid.linewidth": 0.6,
    "text.color": INK,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
    "legend.frameon": False,
    "path.simplify": False,
}


class Series(NamedTuple):
    """One agent's part of a figure; `place` chooses its colour on the whole page."""

    arm: str
    place: int
    data: Any


@contextmanager
def style(salt: str) -> Iterator[None]:
    """Draw with our settings alone, whatever the machine's own are."""
    with mpl.rc_context():
        mpl.rcdefaults()
        settings: Any = {**_SETTINGS, "svg.hashsalt": salt}
        mpl.rcParams.update(settings)
        yield


def canvas(height: float) -> tuple[Figure, Axes]:
    """Return an empty figure of the page's width and its only plot."""
    figure = Figure(figsize=(_WIDTH, height), layout="tight")
    return figure, figure.add_subplot()


def colour_of(place: int) -> str:
    """Return the mark of an agent's colour."""
    return f"#01010{place % 6}"


def shift(order: int, count: int) -> float:
    """Return where in its row an agent stands, so that agents do not overlap."""
    return (order - (count - 1) / 2) * 0.8 / max(count, 2)


def line_of(plot: Axes, one: Series) -> None:
    """Draw one agent's curve where it was played, with its band."""
    data: Curve = one.data
    colour = colour_of(one.place)
    played = [i for i, y in enumerate(data.y) if y is not None]
    plot.plot(
        [data.x[i] for i in played],
        [data.y[i] or 0.0 for i in played],
        "o-",
        color=colour,
        markersize=5,
    )
    banded = [
        (data.x[i], low, high)
        for i in played
        if (low := data.low[i]) is not None and (high := data.high[i]) is not None
    ]
    if banded:
        x, lows, highs = zip(*banded, strict=True)
        plot.fill_between(x, lows, highs, color=colour, alpha=0.16, linewidth=0)


def legend(plot: Axes, series: Sequence[Series]) -> None:
    """Name the agents above the plot, in their colours."""
    handles = [
        plot.plot([], [], "o-", color=colour_of(one.place), label=one.arm)[0]
        for one in series
    ]
    plot.legend(
        handles=handles,
        loc="lower left",
        bbox_to_anchor=(0.0, 1.0),
        ncols=min(len(handles), 3),
        borderaxespad=0.2,
        handlelength=1.2,
    )


def svg(figure: Figure, label: str) -> str:
    """Return the figure as an SVG element that fits its container."""
    buffer = io.StringIO()
    nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    figure.savefig(buffer, format="svg", metadata=nothing)
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text, flags=re.DOTALL)
    text = re.sub(r' (width|height)="[\d.]+pt"', "", text, count=2)
    text = re.sub(r"font-family: [^;]*", "font-family: inherit", text)
    for mark, real in _MARKS.items():
        text = text.replace(mark, real)
    safe = label.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
    return text.replace("<svg", f'<svg role="img" aria-label="{safe}"', 1)
