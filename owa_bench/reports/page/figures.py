"""Figures of the report as inline SVG: equal judgements give equal bytes, no dates.

Colours are placeholders that the page's style sheet replaces, so that one drawing is right on a
light and on a dark screen.
"""

import io
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from owa_bench.records.score import AxisScore, Curve, FrontierScore, Interval

# Each placeholder is a colour used nowhere else; the style sheet holds the real one.
_PLACEHOLDERS = {f"#01010{i}": f"var(--agent{i})" for i in range(6)} | {
    "#010110": "var(--ink)",
    "#010111": "var(--muted)",
    "#010112": "var(--line)",
}
INK, MUTED, LINE = "#010110", "#010111", "#010112"
_WIDTH = 5.2  # inches at 72 points: readable at the width of a phone
_DASHED: dict[str, Any] = {"color": MUTED, "linewidth": 1, "linestyle": (0, (4, 3))}
_SETTINGS: dict[str, Any] = {
    **dict.fromkeys(("axes.edgecolor", "grid.color"), LINE),
    **dict.fromkeys(("xtick.color", "ytick.color"), MUTED),
    **dict.fromkeys(("xtick.labelcolor", "ytick.labelcolor", "text.color"), INK),
    **{f"{part}.facecolor": "none" for part in ("figure", "axes", "savefig")},
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "font.family": ["sans-serif"],
    "font.size": 10,
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "path.simplify": False,
    "svg.fonttype": "none",
}


class ArmSeries(NamedTuple):
    """One agent's part of a figure; `place` chooses its colour on the whole page."""

    arm: str
    place: int
    data: Any


@contextmanager
def style(salt: str) -> Iterator[None]:
    """Draw with these settings alone, whatever the user's own are."""
    with mpl.rc_context():
        mpl.rcdefaults()
        settings: Any = {**_SETTINGS, "svg.hashsalt": salt}
        mpl.rcParams.update(settings)
        yield


def new_figure(height: float) -> tuple[Figure, Axes]:
    """Return an empty figure of the page's width and its only plot."""
    figure = Figure(figsize=(_WIDTH, height), layout="tight")
    return figure, figure.add_subplot()


def arm_colour(place: int) -> str:
    """Return the placeholder of an agent's colour."""
    return f"#01010{place % 6}"


def _row_offset(order: int, count: int) -> float:
    """Return the offset of an agent in a row of `count` agents, 0 in the middle."""
    return (order - (count - 1) / 2) * 0.8 / max(count, 2)


def _draw_curve(plot: Axes, one: ArmSeries) -> None:
    """Draw one agent's curve where it was played, with its band; `data` is a Curve."""
    data: Curve = one.data
    colour = arm_colour(one.place)
    rows = list(zip(data.x, data.y, data.low, data.high, strict=True))
    played = [(x, y) for x, y, _, _ in rows if y is not None]
    plot.plot(*np.reshape(played, (-1, 2)).T, "o-", color=colour, markersize=5)
    band = [(x, *ends) for x, y, *ends in rows if None not in (y, *ends)]
    if band:
        x, low, high = np.array(band, dtype=float).T
        plot.fill_between(x, low, high, color=colour, alpha=0.16, linewidth=0)


def _label_rows(plot: Axes, names: Sequence[str]) -> None:
    """Name the rows of a figure, the first at the top."""
    plot.set_yticks(range(len(names)), names)
    plot.set_ylim(len(names) - 0.5, -0.5)
    plot.grid(visible=False, axis="y")


def _legend_handles(plot: Axes, series: Sequence[ArmSeries]) -> list[Line2D]:
    """Return a legend entry for each agent, in its colour: an empty line."""
    return [
        plot.plot([], [], "o-", color=arm_colour(one.place), label=one.arm)[0] for one in series
    ]


def _add_legend(plot: Axes, series: Sequence[ArmSeries]) -> None:
    """Name the agents above the plot, in their colours."""
    handles = _legend_handles(plot, series)
    plot.legend(
        handles=handles,
        loc="lower left",
        bbox_to_anchor=(0.0, 1.0),
        ncols=min(len(handles), 3),
        borderaxespad=0.2,
        handlelength=1.2,
    )


def to_svg(figure: Figure, label: str) -> str:
    """Return the figure as an SVG element that fits its container.

    Args:
        figure: the figure.
        label: its name for screen readers.
    Returns: The element, without dates or sizes.
    """
    buffer = io.StringIO()
    nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    figure.savefig(buffer, format="svg", metadata=nothing)
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text, flags=re.DOTALL)
    text = re.sub(r' (width|height)="[\d.]+pt"', "", text, count=2)
    text = re.sub(r"font-family: [^;]*", "font-family: inherit", text)
    for placeholder, colour in _PLACEHOLDERS.items():
        text = text.replace(placeholder, colour)
    safe = label.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
    return text.replace("<svg", f'<svg role="img" aria-label="{safe}"', 1)


def axis_figure(series: Sequence[ArmSeries]) -> str:
    """Return the axis figure; each `data` is a tuple of AxisScore in one order.

    A dot is the value, the thick line the interval *same tasks, new seeds*, the thin one *tasks
    like these*; without evidence there is no dot, and an axis without any says so.
    """
    names = [f"{axis.symbol}  {axis.name}" for axis in series[0].data]
    with style("axes"):
        figure, plot = new_figure(0.9 + len(names) * (0.18 + 0.14 * len(series)))
        for one in series:
            _axis_rows(plot, one, len(series))
        for row in range(len(names)):
            if all(one.data[row].value is None for one in series):
                words: dict[str, Any] = {"color": MUTED, "fontsize": 8, "va": "center"}
                plot.text(0.0, row, "no evidence", **words)
        _label_rows(plot, names)
        plot.set(xlim=(-0.02, 1.02), xlabel="normalised value")
        _add_legend(plot, series)
        return to_svg(figure, "Axes with both intervals, by agent")


def curve_figure(series: Sequence[ArmSeries]) -> str:
    """Return one statistic over drift magnitude; each `data` is a Curve."""
    first: Curve = series[0].data
    with style(f"curve/{first.name}"):
        figure, plot = new_figure(3.0)
        if first.diagonal:
            plot.plot([0, 1], [0, 1], **_DASHED)
        for one in series:
            _draw_curve(plot, one)
        _set_x_limits(plot, [x for one in series for x in one.data.x])
        y_label = textwrap.fill(first.y_label, 26)
        plot.set(ylim=(-0.03, 1.03), xlabel=first.x_label, ylabel=y_label)
        _add_legend(plot, series)
        return to_svg(figure, first.name)


def frontier_figure(series: Sequence[ArmSeries]) -> str:
    """Return success against autonomy demand; each `data` is a FrontierScore."""
    with style("frontier"):
        figure, plot = new_figure(3.0)
        for one in series:
            _frontier_line(plot, one)
        target = series[0].data.target
        plot.axhline(target, **_DASHED)
        plot.text(0.0, target - 0.075, f"s = {target:g}", color=MUTED, fontsize=9)
        plot.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.06), ylabel="success")
        plot.set_xlabel("autonomy demand (1 = no help at all)")
        _add_legend(plot, series)
        return to_svg(figure, "Delegability frontier with its band")


def cost_figure(series: Sequence[ArmSeries]) -> str:
    """Return cost by stream in USD; each `data` maps streams to micro-USD or None."""
    streams = list(series[0].data)
    with style("cost"):
        figure, plot = new_figure(0.9 + len(streams) * (0.2 + 0.22 * len(series)))
        for order, one in enumerate(series):
            _cost_bars(plot, one, order, len(series))
        _label_rows(plot, streams)
        plot.set_xlabel("USD")
        plot.margins(x=0.18)
        plot.set_xlim(left=0)
        _add_legend(plot, series)
        return to_svg(figure, "Cost by stream and agent")


def _axis_rows(plot: Axes, one: ArmSeries, count: int) -> None:
    """Draw one agent's dot and two lines on every axis row."""
    scores: Sequence[AxisScore] = one.data
    for row, axis in enumerate(scores):
        y = row + _row_offset(one.place, count)
        if axis.value is None:
            continue
        _span(plot, axis.tasks_like_these, y, one.place, 1.3)
        _span(plot, axis.same_tasks, y, one.place, 4.0)
        colour = arm_colour(one.place)
        plot.plot([axis.value], [y], "o", color=colour, markersize=6, zorder=3)


def _span(plot: Axes, interval: Interval, y: float, place: int, width: float) -> None:
    """Draw an interval as a horizontal line; nothing when it has no bounds."""
    if interval.low is None or interval.high is None:
        return
    ends = [interval.low, interval.high]
    plot.plot(ends, [y, y], color=arm_colour(place), linewidth=width, alpha=0.55)


def _set_x_limits(plot: Axes, x: Sequence[float]) -> None:
    """Show all of x: magnitudes on [0, 1], episodes as far as there are any.

    A line marks 0 where there is something on both sides of it.
    """
    low, high = min((0.0, *x)), max((1.0, *x))
    room = 0.03 * (high - low)
    plot.set_xlim(low - room, high + room)
    if low < 0.0:
        plot.axvline(0.0, **_DASHED)


def success_figure(series: Sequence[ArmSeries]) -> str:
    """Return success over drift magnitude: alone with its band, with help dashed.

    Args:
        series: the agents, whose data is a Delegation.
    Returns: The figure as an SVG element.
    """
    with style("success over drift"):
        figure, plot = new_figure(3.2)
        for one in series:
            alone = [(m.delta, m.alone) for m in one.data.magnitudes if m.alone]
            helped = [(m.delta, m.helped.share) for m in one.data.magnitudes if m.helped]
            colour = arm_colour(one.place)
            if alone:
                x, y = zip(*((delta, count.share) for delta, count in alone), strict=True)
                ends = [(c.interval.low, c.interval.high) for _, c in alone]
                plot.plot(x, y, "o-", color=colour, markersize=5, linewidth=2)
                if all(low is not None for low, _ in ends):
                    low, high = np.array(ends, dtype=np.float64).T
                    plot.fill_between(x, low, high, color=colour, alpha=0.13, linewidth=0)
            if helped:
                plot.plot(*zip(*helped, strict=True), "--", color=colour, linewidth=1.6)
        plot.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.05), xlabel="drift magnitude")
        plot.set_ylabel("share of tasks done")
        _add_legend(plot, series)
        return to_svg(figure, "Success over drift magnitude, alone and with help")


def _frontier_line(plot: Axes, one: ArmSeries) -> None:
    """Draw the fitted frontier, its band and the observed shares."""
    data: FrontierScore = one.data
    if not data.demand:
        return
    colour = arm_colour(one.place)
    plot.plot(data.demand, data.fitted, "-", color=colour)
    plot.plot(data.demand, data.observed, "o", color=colour, markersize=4, alpha=0.7)
    if len(data.low) == len(data.demand):
        band = (data.demand, data.low, data.high)
        plot.fill_between(*band, color=colour, alpha=0.16, linewidth=0)


def _cost_bars(plot: Axes, one: ArmSeries, order: int, count: int) -> None:
    """Draw one agent's cost in every stream; an unknown cost says so."""
    costs: Mapping[str, int | None] = one.data
    height = 0.7 / max(count, 2)
    for row, amount in enumerate(costs.values()):
        y = row + _row_offset(order, count)
        dollars = (amount or 0) / 1e6
        plot.barh([y], [dollars], height=height, color=arm_colour(one.place))
        text = "unknown" if amount is None else f"{dollars:,.4f}"
        words: dict[str, Any] = {"va": "center", "fontsize": 9, "color": INK}
        plot.annotate(text, (dollars, y), (4, 0), textcoords="offset points", **words)


# --- dose and response: quality by kind of drift, paired differences ------------------


_WIDE, _HEAD = 9.0, 0.3  # inches: of a figure of panels, of the legend above them
_DOTTED: dict[str, Any] = {"color": MUTED, "linewidth": 1.2, "linestyle": ":"}
_COLUMNS = 4  # panels side by side


def dose_panels(label: str, rows: Sequence[Sequence[ArmSeries]]) -> str:
    """Return small plots side by side, one a curve.

    The dotted line is the curve's second series: the realised magnitude.

    Args:
        label: name of the figure.
        rows: for each plot the agents' series, whose data is a Curve.
    Returns: The figure as an SVG element.
    """
    columns = min(_COLUMNS, len(rows))
    lines = -(-len(rows) // columns)
    with style(f"panels/{label}"):
        height = 0.75 + 1.75 * lines
        figure = Figure(figsize=(_WIDE, height))
        figure.set_layout_engine("tight", rect=(0, 0, 1, 1 - _HEAD / height))
        for place, series in enumerate(rows):
            plot = figure.add_subplot(lines, columns, place + 1)
            _panel(plot, series, first=place % columns == 0)
            if place + columns >= len(rows):
                plot.set_xlabel("nominal magnitude")
        shown = {one.place: one for series in rows for one in series}
        _legend_above(figure, [shown[place] for place in sorted(shown)])
        return to_svg(figure, label)


def bound_panels(label: str, rows: Sequence[Sequence[ArmSeries]]) -> str:
    """Return small plots side by side: a gate's value and bounds over episodes.

    The dotted line is the curve's second series: what the gate requires.

    Args:
        label: name of the figure.
        rows: for each gate the agents' series, whose data is a Curve.
    Returns: The figure as an SVG element.
    """
    with style(f"bounds/{label}"):
        figure = Figure(figsize=(_WIDE, 2.6), layout="tight")
        for place, series in enumerate(rows):
            plot = figure.add_subplot(1, len(rows), place + 1)
            for one in series:
                _draw_curve(plot, one)
            data: Curve = series[0].data
            asked = [(x, y) for x, y in zip(data.x, data.beside, strict=True) if y is not None]
            plot.plot(*np.reshape(asked, (-1, 2)).T, **_DOTTED)
            plot.set_title(data.name, fontsize=9, loc="left", color=INK)
            plot.set(ylim=(-0.05, 1.05), xlabel=data.x_label)
            plot.set_yticks([0.0, 0.5, 1.0], ["0", ".5", "1"] if not place else [])
        return to_svg(figure, label)


def paired_differences(label: str, series: Sequence[ArmSeries]) -> str:
    """Return paired differences with intervals, a row per kind of drift.

    Args:
        label: name of the figure.
        series: the agents, whose data is a tuple of Curves; each curve is drawn at its largest
            magnitude.
    Returns: The figure as an SVG element.
    """
    names = list(dict.fromkeys(curve.name for one in series for curve in one.data))
    with style(f"gaps/{label}"):
        figure, plot = new_figure(0.9 + len(names) * (0.18 + 0.14 * len(series)))
        plot.axvline(0.0, color=MUTED, linewidth=1)
        for one in series:
            for curve in one.data:
                _draw_difference(plot, one, curve, names.index(curve.name), len(series))
        largest = {
            curve.name: f"{curve.name}, {curve.x[-1]:g}" for one in series for curve in one.data
        }
        _label_rows(plot, [largest[name] for name in names])
        plot.set(xlim=(-1.04, 1.04), xlabel="Q drifted minus Q clean")
        _add_legend(plot, series)
        return to_svg(figure, label)


def _panel(plot: Axes, series: Sequence[ArmSeries], *, first: bool) -> None:
    """Draw one kind of drift: every agent's curve, and what was realised."""
    for one in series:
        _draw_curve(plot, one)
    data: Curve = series[0].data
    realised = [(x, y) for x, y in zip(data.x, data.beside, strict=False) if y is not None]
    plot.plot(*np.reshape(realised, (-1, 2)).T, **_DOTTED)
    plot.set_title(data.name, fontsize=9, loc="left", color=INK)
    plot.set(xlim=(-0.05, 1.05), ylim=(-0.05, 1.05))
    plot.set_xticks([0.0, 0.5, 1.0], ["0", ".5", "1"])
    plot.set_yticks([0.0, 0.5, 1.0], ["0", ".5", "1"] if first else [])
    if first:
        plot.set_ylabel("Q")


def _draw_difference(plot: Axes, one: ArmSeries, curve: Curve, row: int, count: int) -> None:
    """Draw one agent's difference at a curve's largest magnitude."""
    value, low, high = curve.y[-1], curve.low[-1], curve.high[-1]
    if value is None:
        return
    y, colour = row + _row_offset(one.place, count), arm_colour(one.place)
    if low is not None and high is not None:
        plot.plot([low, high], [y, y], color=colour, linewidth=2.5, alpha=0.55)
    plot.plot([value], [y], "o", color=colour, markersize=5, zorder=3)


def _legend_above(figure: Figure, series: Sequence[ArmSeries]) -> None:
    """Name the agents and the dotted line above all panels."""
    plot = figure.axes[0]
    handles = _legend_handles(plot, series)
    beside = series[0].data.beside_label or "realised"
    handles += plot.plot([], [], **_DOTTED, label=beside)
    figure.legend(handles=handles, loc="upper left", ncols=4, handlelength=1.4, borderaxespad=0.1)
