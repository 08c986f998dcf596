"""The report's figures as inline SVG: same judgement, same bytes, no dates."""

import textwrap
from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes

from owa_bench.records.score import AxisScore, Curve, FrontierScore, Interval
from owa_bench.report.drawing import (
    INK,
    MUTED,
    VERSION,
    Series,
    canvas,
    colour_of,
    legend,
    line_of,
    shift,
    style,
    svg,
)

__all__ = ["VERSION", "Series", "axes", "cost", "curve", "frontier"]


def axes(series: Sequence[Series]) -> str:
    """Return the axis figure; each `data` is a tuple of AxisScore in one order.

    A dot is the value, the thick line the interval *same tasks, new seeds*, the thin
    one *tasks like these*; without evidence there is no dot, and an axis without any
    says so.
    """
    names = [f"{axis.symbol}  {axis.name}" for axis in series[0].data]
    with style("axes"):
        figure, plot = canvas(0.9 + len(names) * (0.18 + 0.14 * len(series)))
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
        legend(plot, series)
        return svg(figure, "Axes with both intervals, by agent")


def curve(series: Sequence[Series]) -> str:
    """Return one statistic over drift magnitude; each `data` is a Curve."""
    first: Curve = series[0].data
    with style(f"curve/{first.name}"):
        figure, plot = canvas(3.0)
        if first.diagonal:
            plot.plot([0, 1], [0, 1], color=MUTED, linewidth=1, linestyle=(0, (4, 3)))
        for one in series:
            line_of(plot, one)
        _reach(plot, [x for one in series for x in one.data.x])
        plot.set_ylim(-0.03, 1.03)
        plot.set_xlabel(first.x_label)
        plot.set_ylabel(textwrap.fill(first.y_label, 26))
        legend(plot, series)
        return svg(figure, first.name)


def frontier(series: Sequence[Series]) -> str:
    """Return quality against autonomy demand; each `data` is a FrontierScore."""
    with style("frontier"):
        figure, plot = canvas(3.0)
        for one in series:
            _frontier_line(plot, one)
        target = series[0].data.target
        plot.axhline(target, color=MUTED, linewidth=1, linestyle=(0, (4, 3)))
        plot.text(0.0, target - 0.075, f"q* = {target:g}", color=MUTED, fontsize=9)
        plot.set_xlim(-0.03, 1.03)
        plot.set_ylim(-0.03, 1.06)
        plot.set_xlabel("autonomy demand (1 = no help at all)")
        plot.set_ylabel("quality")
        legend(plot, series)
        return svg(figure, "Delegability frontier with its band")


def cost(series: Sequence[Series]) -> str:
    """Return cost by stream in USD; each `data` maps streams to micro-USD or None."""
    streams = list(series[0].data)
    with style("cost"):
        figure, plot = canvas(0.9 + len(streams) * (0.2 + 0.22 * len(series)))
        for order, one in enumerate(series):
            _cost_bars(plot, one, order, len(series))
        plot.set_yticks(range(len(streams)), streams)
        plot.set_ylim(len(streams) - 0.5, -0.5)
        plot.set_xlabel("USD")
        plot.margins(x=0.18)
        plot.set_xlim(left=0)
        plot.grid(visible=False, axis="y")
        legend(plot, series)
        return svg(figure, "Cost by stream and agent")


def _axis_rows(plot: Axes, one: Series, count: int) -> None:
    """Draw one agent's dot and two lines on every axis row."""
    for row, axis in enumerate(one.data):
        y = row + shift(one.place, count)
        if axis.value is None:
            continue
        _span(plot, axis.tasks_like_these, y, one.place, 1.3)
        _span(plot, axis.same_tasks, y, one.place, 4.0)
        plot.plot(
            [_plain(axis)], [y], "o", color=colour_of(one.place), markersize=6, zorder=3
        )


def _say(plot: Axes, row: int, words: str) -> None:
    """Write into an axis row in which nothing is drawn."""
    plot.text(0.0, row, words, color=MUTED, fontsize=8, va="center")


def _plain(axis: AxisScore) -> float:
    """Return an axis' value, which its caller knows to be there."""
    return 0.0 if axis.value is None else axis.value


def _span(plot: Axes, interval: Interval, y: float, place: int, width: float) -> None:
    """Draw an interval as a horizontal line; nothing when it has no bounds."""
    if interval.low is None or interval.high is None:
        return
    ends = [interval.low, interval.high]
    plot.plot(ends, [y, y], color=colour_of(place), linewidth=width, alpha=0.55)


def _reach(plot: Axes, x: Sequence[float]) -> None:
    """Show all of x: magnitudes on [0, 1], episodes as far as there are any.

    A line marks 0 where there is something on both sides of it.
    """
    low, high = min((0.0, *x)), max((1.0, *x))
    room = 0.03 * (high - low)
    plot.set_xlim(low - room, high + room)
    if low < 0.0:
        plot.axvline(0.0, color=MUTED, linewidth=1, linestyle=(0, (4, 3)))


def _frontier_line(plot: Axes, one: Series) -> None:
    """Draw the fitted frontier, its band and the observed means."""
    data: FrontierScore = one.data
    if not data.demand:
        return
    colour = colour_of(one.place)
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
        y = row + shift(order, count)
        dollars = (amount or 0) / 1e6
        plot.barh([y], [dollars], height=height, color=colour_of(one.place))
        text = "unknown" if amount is None else f"{dollars:,.4f}"
        plot.annotate(
            text,
            (dollars, y),
            (4, 0),
            textcoords="offset points",
            va="center",
            fontsize=9,
            color=INK,
        )
