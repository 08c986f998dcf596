"""Figures of a line-up: success against cost, over drift, and frontiers, one line an agent.

Colours come from the page, as in `figures`. Each agent also has its own dash and mark, so
that a reader without colour can tell the lines apart.
"""

import textwrap
from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MaxNLocator

from owa_bench.records.score import Interval
from owa_bench.reports.export.lineup import LineupAgent, efficient
from owa_bench.reports.page.figures import INK, MUTED, arm_colour, new_figure, style, to_svg

Placed = tuple[int, LineupAgent]  # an agent and its place on the whole page
LOG_FROM = 8.0  # [D] largest over smallest cost from which on the axis is logarithmic
_DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1.2, 1.6)), (0, (6, 2, 1.2, 2)), (0, (9, 3)))
_MARKS = "osD^vPX"
_FRONT: dict[str, Any] = {"color": MUTED, "linewidth": 1, "linestyle": (0, (4, 3)), "zorder": 1}
_LEGEND = 54  # characters of a row
_SHIFT = 0.008  # of the bars of two agents at one magnitude


def line_style(place: int) -> dict[str, Any]:
    """Return colour, dash and mark of an agent by its place on the page.

    Solid lines are wider and drawn below dashed ones, so that overlapping lines stay visible.
    """
    dash = place % len(_DASHES)
    return {
        "color": arm_colour(place),
        "linestyle": _DASHES[dash],
        "linewidth": 1.8 if dash else 2.8,
        "marker": _MARKS[place % len(_MARKS)],
        "markersize": 5,
        "zorder": 3 if dash else 2,
    }


def priced(agents: Sequence[Placed]) -> list[Placed]:
    """Return the agents whose success alone and whose cost of it are known."""
    return [(i, one) for i, one in agents if one.alone and one.alone_cost]


def is_wide(costs: Sequence[float]) -> bool:
    """Return whether costs span a range that needs a logarithmic axis."""
    return 0 < LOG_FROM * min(costs) <= max(costs)


def cost_success_figure(agents: Sequence[Placed]) -> str:
    """Return success alone against the agent's own cost in the same episodes.

    Args:
        agents: Of one group, as `priced` gives them.
    Returns: The figure as an SVG element.
    """
    points = [(one.alone_cost.usd, one.alone.share) for _, one in agents]  # type: ignore[union-attr]
    with style("success against cost"):
        figure, plot = new_figure(3.6)
        if is_wide([cost for cost, _ in points]):
            _log_axis(plot)
        front = [points[place] for place in efficient(points)]
        plot.step(*zip(*front, strict=True), where="post", **_FRONT, label="efficient front")
        plot.plot(*zip(*front, strict=True), "o", markersize=13, mfc="none", mec=MUTED, zorder=1)
        for (place, one), (cost, share) in zip(agents, points, strict=True):
            bars: dict[str, Any] = {
                "xerr": _bars(cost, one.alone_cost.interval),  # type: ignore[union-attr]
                "yerr": _bars(share, one.alone.interval),  # type: ignore[union-attr]
            }
            own = {**line_style(place), "linestyle": "none", "label": one.label}
            plot.errorbar([cost], [share], **bars, **own, elinewidth=1)
        plot.set(ylim=(-0.04, 1.06), xlabel="own cost, USD an episode", ylabel="success alone")
        if plot.get_xscale() == "linear":
            plot.set_xlim(left=0)
            plot.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
        _name_agents(plot)
        return to_svg(figure, "Success alone against own cost, with the efficient front")


def drift_figure(agents: Sequence[Placed]) -> str:
    """Return success alone over drift magnitude, one line an agent.

    Args:
        agents: Of one group, each with an answer.
    Returns: The figure as an SVG element.
    """
    with style("success over drift, by agent"):
        figure, plot = new_figure(3.4)
        for order, (place, one) in enumerate(agents):
            told = [m for m in (one.answer.magnitudes if one.answer else ()) if m.alone]
            shift = _SHIFT * (order - (len(agents) - 1) / 2)
            x = [m.delta + shift for m in told]
            y = [m.alone.share for m in told if m.alone]
            ends = [_bars(m.alone.share, m.alone.interval) for m in told if m.alone]
            bars = [[end[side][0] if end else 0.0 for end in ends] for side in (0, 1)]
            own = {**line_style(place), "label": one.label}
            plot.errorbar(x, y, yerr=bars, **own, elinewidth=0.7)
        plot.set(xlim=(-0.04, 1.04), ylim=(-0.04, 1.06), xlabel="drift magnitude")
        plot.set_ylabel("success alone")
        _name_agents(plot)
        return to_svg(figure, "Success alone over drift magnitude, by agent")


def frontiers_figure(agents: Sequence[Placed]) -> str:
    """Return the delegability frontiers of agents laid over each other.

    Args:
        agents: Of one group, each with a frontier.
    Returns: The figure as an SVG element.
    """
    with style("frontiers"):
        figure, plot = new_figure(3.4)
        for target in sorted({one.verdict.frontier.target for _, one in agents}):
            plot.axhline(target, **_FRONT)
            plot.text(0.0, target - 0.075, f"s = {target:g}", color=MUTED, fontsize=9)
        for place, one in agents:
            found = one.verdict.frontier
            own = {**line_style(place), "label": one.label}
            plot.plot(found.demand, found.fitted, **own)
        plot.set(xlim=(-0.04, 1.04), ylim=(-0.04, 1.06), ylabel="success")
        plot.set_xlabel("autonomy demand (1 = no help at all)")
        _name_agents(plot)
        return to_svg(figure, "Delegability frontiers, by agent")


def _bars(value: float, interval: Interval) -> list[list[float]] | None:
    """Return how far the ends of an interval lie below and above a value, None without ends."""
    if interval.low is None or interval.high is None:
        return None
    return [[max(value - interval.low, 0.0)], [max(interval.high - value, 0.0)]]


def _log_axis(plot: Axes) -> None:
    """Make the x axis logarithmic, with a few round numbers on it."""
    plot.set_xscale("log", subs=[2, 5])
    words = FuncFormatter(lambda value, _: f"{value:g}")
    plot.xaxis.set_major_formatter(words)
    plot.xaxis.set_minor_formatter(words)


def _name_agents(plot: Axes) -> None:
    """Draw the legend above the plot, in as many columns as fit."""
    handles, names = plot.get_legend_handles_labels()
    names = [textwrap.shorten(name, _LEGEND, placeholder="…") for name in names]
    longest = max(map(len, names), default=1) + 5
    plot.legend(
        handles,
        names,
        loc="lower left",
        bbox_to_anchor=(0.0, 1.0),
        ncols=max(1, _LEGEND // longest),
        borderaxespad=0.2,
        handlelength=3.2,
        labelcolor=INK,
    )
