"""The report's figures as inline SVG: same judgement, same bytes, no dates.

Colours are written as marks that the page's style sheet fills in, so one drawing is
right on a light and on a dark screen.
"""

import io
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from owa_bench.records.score import AxisScore, Curve, FrontierScore, Interval

VERSION = mpl.__version__

# Each mark is a colour nobody would choose; the page's style sheet holds the real one.
_MARKS = {f"#01010{i}": f"var(--agent{i})" for i in range(6)} | {
    "#010110": "var(--ink)",
    "#010111": "var(--muted)",
    "#010112": "var(--line)",
}
_INK, _MUTED, _LINE = "#010110", "#010111", "#010112"
_WIDTH = 5.2  # inches at 72 points: readable at the width of a phone
_SETTINGS: dict[str, Any] = {
    "svg.fonttype": "none",
    "font.family": ["sans-serif"],
    "font.size": 10,
    "axes.edgecolor": _LINE,
    "axes.labelcolor": _INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": _LINE,
    "grid.linewidth": 0.6,
    "text.color": _INK,
    "xtick.color": _MUTED,
    "ytick.color": _MUTED,
    "xtick.labelcolor": _INK,
    "ytick.labelcolor": _INK,
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


def axes(series: Sequence[Series]) -> str:
    """Return the axis figure; each `data` is a tuple of AxisScore in one order.

    A dot is the value, the thick line the interval *same tasks, new seeds*, the thin
    one *tasks like these*; without evidence there is no dot, and an axis without any
    says so.
    """
    names = [f"{axis.symbol}  {axis.name}" for axis in series[0].data]
    with _style("axes"):
        figure, plot = _canvas(0.9 + len(names) * (0.18 + 0.14 * len(series)))
        for one in series:
            _axis_rows(plot, one, len(series))
        for row in range(len(names)):
            if all(one.data[row].value is None for one in series):
                _say(plot, row, "no evidence")
        plot.set_yticks(range(len(names)), names)
        plot.set_ylim(len(names) - 0.5, -0.5)
        plot.set_xlim(-0.02, 1.02)
        plot.set_xlabel("normalised value")
        plot.grid(visible=False, axis="y")
        _legend(plot, series)
        return _svg(figure, "Axes with both intervals, by agent")


def curve(series: Sequence[Series]) -> str:
    """Return one statistic over drift magnitude; each `data` is a Curve."""
    first: Curve = series[0].data
    with _style(f"curve/{first.name}"):
        figure, plot = _canvas(3.0)
        if first.diagonal:
            plot.plot([0, 1], [0, 1], color=_MUTED, linewidth=1, linestyle=(0, (4, 3)))
        for one in series:
            _curve_line(plot, one)
        plot.set_xlim(-0.03, 1.03)
        plot.set_ylim(-0.03, 1.03)
        plot.set_xlabel(first.x_label)
        plot.set_ylabel(textwrap.fill(first.y_label, 26))
        _legend(plot, series)
        return _svg(figure, first.name)


def frontier(series: Sequence[Series]) -> str:
    """Return quality against autonomy demand; each `data` is a FrontierScore."""
    with _style("frontier"):
        figure, plot = _canvas(3.0)
        for one in series:
            _frontier_line(plot, one)
        target = series[0].data.target
        plot.axhline(target, color=_MUTED, linewidth=1, linestyle=(0, (4, 3)))
        plot.text(0.0, target - 0.075, f"q* = {target:g}", color=_MUTED, fontsize=9)
        plot.set_xlim(-0.03, 1.03)
        plot.set_ylim(-0.03, 1.06)
        plot.set_xlabel("autonomy demand (1 = no help at all)")
        plot.set_ylabel("quality")
        _legend(plot, series)
        return _svg(figure, "Delegability frontier with its band")


def cost(series: Sequence[Series]) -> str:
    """Return cost by stream in USD; each `data` maps streams to micro-USD or None."""
    streams = list(series[0].data)
    with _style("cost"):
        figure, plot = _canvas(0.9 + len(streams) * (0.2 + 0.22 * len(series)))
        for order, one in enumerate(series):
            _cost_bars(plot, one, order, len(series))
        plot.set_yticks(range(len(streams)), streams)
        plot.set_ylim(len(streams) - 0.5, -0.5)
        plot.set_xlabel("USD")
        plot.margins(x=0.18)
        plot.set_xlim(left=0)
        plot.grid(visible=False, axis="y")
        _legend(plot, series)
        return _svg(figure, "Cost by stream and agent")


@contextmanager
def _style(salt: str) -> Iterator[None]:
    """Draw with our settings alone, whatever the machine's own are."""
    with mpl.rc_context():
        mpl.rcdefaults()
        settings: Any = {**_SETTINGS, "svg.hashsalt": salt}
        mpl.rcParams.update(settings)
        yield


def _canvas(height: float) -> tuple[Figure, Axes]:
    """Return an empty figure of the page's width and its only plot."""
    figure = Figure(figsize=(_WIDTH, height), layout="tight")
    return figure, figure.add_subplot()


def _colour(place: int) -> str:
    """Return the mark of an agent's colour."""
    return f"#01010{place % 6}"


def _shift(order: int, count: int) -> float:
    """Return where in its row an agent stands, so that agents do not overlap."""
    return (order - (count - 1) / 2) * 0.8 / max(count, 2)


def _axis_rows(plot: Axes, one: Series, count: int) -> None:
    """Draw one agent's dot and two lines on every axis row."""
    for row, axis in enumerate(one.data):
        y = row + _shift(one.place, count)
        if axis.value is None:
            continue
        _span(plot, axis.tasks_like_these, y, one.place, 1.3)
        _span(plot, axis.same_tasks, y, one.place, 4.0)
        plot.plot(
            [_plain(axis)], [y], "o", color=_colour(one.place), markersize=6, zorder=3
        )


def _say(plot: Axes, row: int, words: str) -> None:
    """Write into an axis row in which nothing is drawn."""
    plot.text(0.0, row, words, color=_MUTED, fontsize=8, va="center")


def _plain(axis: AxisScore) -> float:
    """Return an axis' value, which its caller knows to be there."""
    return 0.0 if axis.value is None else axis.value


def _span(plot: Axes, interval: Interval, y: float, place: int, width: float) -> None:
    """Draw an interval as a horizontal line; nothing when it has no bounds."""
    if interval.low is None or interval.high is None:
        return
    ends = [interval.low, interval.high]
    plot.plot(ends, [y, y], color=_colour(place), linewidth=width, alpha=0.55)


def _curve_line(plot: Axes, one: Series) -> None:
    """Draw one agent's curve where it was played, with its band."""
    data: Curve = one.data
    colour = _colour(one.place)
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


def _frontier_line(plot: Axes, one: Series) -> None:
    """Draw the fitted frontier, its band and the observed means."""
    data: FrontierScore = one.data
    if not data.demand:
        return
    colour = _colour(one.place)
    plot.plot(data.demand, data.fitted, "-", color=colour)
    plot.plot(data.demand, data.observed, "o", color=colour, markersize=4, alpha=0.7)
    if len(data.low) == len(data.demand):
        plot.fill_between(
            data.demand, data.low, data.high, color=colour, alpha=0.16, linewidth=0
        )


def _cost_bars(plot: Axes, one: Series, order: int, count: int) -> None:
    """Draw one agent's cost in every stream; an unknown cost says so."""
    costs: Mapping[str, int | None] = one.data
    height = 0.7 / max(count, 2)
    for row, amount in enumerate(costs.values()):
        y = row + _shift(order, count)
        dollars = (amount or 0) / 1e6
        plot.barh([y], [dollars], height=height, color=_colour(one.place))
        text = "unknown" if amount is None else f"{dollars:,.4f}"
        plot.annotate(
            text,
            (dollars, y),
            (4, 0),
            textcoords="offset points",
            va="center",
            fontsize=9,
            color=_INK,
        )


def _legend(plot: Axes, series: Sequence[Series]) -> None:
    """Name the agents above the plot, in their colours."""
    handles = [
        plot.plot([], [], "o-", color=_colour(one.place), label=one.arm)[0]
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


def _svg(figure: Figure, label: str) -> str:
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
