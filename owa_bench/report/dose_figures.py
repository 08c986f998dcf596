"""Dose-response figures: quality by kind of drift, and paired differences."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from owa_bench.records.score import Curve
from owa_bench.report import figures
from owa_bench.report.figures import INK, MUTED, ArmSeries, arm_colour

_WIDE, _HEAD = 9.0, 0.3  # inches: of a figure of panels, of the legend above them
_DOTTED: dict[str, Any] = {"color": MUTED, "linewidth": 1.2, "linestyle": ":"}
_COLUMNS = 4  # panels side by side


def dose_panels(label: str, rows: Sequence[Sequence[ArmSeries]]) -> str:
    """Return small plots side by side, one a curve.

    The dotted line is the curve's second series: the realised magnitude.

    Args:
        label: name of the figure.
        rows: for each plot the agents' series, whose data is a Curve.

    Returns:
        The figure as an SVG element.
    """
    columns = min(_COLUMNS, len(rows))
    lines = -(-len(rows) // columns)
    with figures.style(f"panels/{label}"):
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
        return figures.to_svg(figure, label)


def paired_differences(label: str, series: Sequence[ArmSeries]) -> str:
    """Return paired differences with intervals, a row per kind of drift.

    Args:
        label: name of the figure.
        series: the agents, whose data is a tuple of Curves; each curve is drawn at its
            largest magnitude.

    Returns:
        The figure as an SVG element.
    """
    names = list(dict.fromkeys(curve.name for one in series for curve in one.data))
    with figures.style(f"gaps/{label}"):
        figure, plot = figures.new_figure(
            0.9 + len(names) * (0.18 + 0.14 * len(series))
        )
        plot.axvline(0.0, color=MUTED, linewidth=1)
        for one in series:
            for curve in one.data:
                _draw_difference(plot, one, curve, names.index(curve.name), len(series))
        largest = {
            curve.name: f"{curve.name}, {curve.x[-1]:g}"
            for one in series
            for curve in one.data
        }
        figures.label_rows(plot, [largest[name] for name in names])
        plot.set(xlim=(-1.04, 1.04), xlabel="Q drifted minus Q clean")
        figures.add_legend(plot, series)
        return figures.to_svg(figure, label)


def _panel(plot: Axes, series: Sequence[ArmSeries], *, first: bool) -> None:
    """Draw one kind of drift: every agent's curve, and what was realised."""
    for one in series:
        figures.draw_curve(plot, one)
    data: Curve = series[0].data
    realised = [
        (x, y) for x, y in zip(data.x, data.beside, strict=False) if y is not None
    ]
    plot.plot(*np.reshape(realised, (-1, 2)).T, **_DOTTED)
    plot.set_title(data.name, fontsize=9, loc="left", color=INK)
    plot.set(xlim=(-0.05, 1.05), ylim=(-0.05, 1.05))
    plot.set_xticks([0.0, 0.5, 1.0], ["0", ".5", "1"])
    plot.set_yticks([0.0, 0.5, 1.0], ["0", ".5", "1"] if first else [])
    if first:
        plot.set_ylabel("Q")


def _draw_difference(
    plot: Axes, one: ArmSeries, curve: Curve, row: int, count: int
) -> None:
    """Draw one agent's difference at a curve's largest magnitude."""
    value, low, high = curve.y[-1], curve.low[-1], curve.high[-1]
    if value is None:
        return
    y, colour = row + figures.row_offset(one.place, count), arm_colour(one.place)
    if low is not None and high is not None:
        plot.plot([low, high], [y, y], color=colour, linewidth=2.5, alpha=0.55)
    plot.plot([value], [y], "o", color=colour, markersize=5, zorder=3)


def _legend_above(figure: Figure, series: Sequence[ArmSeries]) -> None:
    """Name the agents and the dotted line above all panels."""
    plot = figure.axes[0]
    handles = figures.legend_handles(plot, series)
    beside = series[0].data.beside_label or "realised"
    handles += plot.plot([], [], **_DOTTED, label=beside)
    figure.legend(
        handles=handles, loc="upper left", ncols=4, handlelength=1.4, borderaxespad=0.1
    )
