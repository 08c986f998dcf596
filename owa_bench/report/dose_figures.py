"""Figures of dose and response: small curves by what drifted, and paired gaps."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from owa_bench.records.score import Curve
from owa_bench.report.drawing import (
    INK,
    MUTED,
    Series,
    canvas,
    colour_of,
    legend,
    line_of,
    shift,
    style,
    svg,
)

_WIDE, _HEAD = 9.0, 0.3  # inches: of a figure of panels, of the legend above them
_ABREAST = 4  # panels side by side


def panels(label: str, rows: Sequence[Sequence[Series]]) -> str:
    """Return small plots side by side, one a curve; each `data` is a Curve.

    The dotted line is what stands beside a curve: the realised magnitude.
    """
    columns = min(_ABREAST, len(rows))
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
        return svg(figure, label)


def gaps(label: str, series: Sequence[Series]) -> str:
    """Return paired differences with intervals, a row per kind of drift.

    Each `data` is a tuple of Curves; each is shown at its largest magnitude.
    """
    names = list(dict.fromkeys(curve.name for one in series for curve in one.data))
    with style(f"gaps/{label}"):
        figure, plot = canvas(0.9 + len(names) * (0.18 + 0.14 * len(series)))
        plot.axvline(0.0, color=MUTED, linewidth=1)
        for one in series:
            for curve in one.data:
                _gap(plot, one, curve, names.index(curve.name), len(series))
        largest = {
            curve.name: f"{curve.name}, {curve.x[-1]:g}"
            for one in series
            for curve in one.data
        }
        plot.set_yticks(range(len(names)), [largest[name] for name in names])
        plot.set_ylim(len(names) - 0.5, -0.5)
        plot.set_xlim(-1.04, 1.04)
        plot.set_xlabel("Q drifted minus Q clean")
        plot.grid(visible=False, axis="y")
        legend(plot, series)
        return svg(figure, label)


def _panel(plot: Axes, series: Sequence[Series], *, first: bool) -> None:
    """Draw one kind of drift: every agent's curve, and what was realised."""
    for one in series:
        line_of(plot, one)
    data: Curve = series[0].data
    known = [i for i, value in enumerate(data.beside) if value is not None]
    plot.plot(
        [data.x[i] for i in known],
        [data.beside[i] or 0.0 for i in known],
        color=MUTED,
        linewidth=1.2,
        linestyle=":",
    )
    plot.set_title(data.name, fontsize=9, loc="left", color=INK)
    plot.set_xlim(-0.05, 1.05)
    plot.set_ylim(-0.05, 1.05)
    plot.set_xticks([0.0, 0.5, 1.0], ["0", ".5", "1"])
    plot.set_yticks([0.0, 0.5, 1.0], ["0", ".5", "1"] if first else [])
    if first:
        plot.set_ylabel("Q")


def _gap(plot: Axes, one: Series, curve: Curve, row: int, count: int) -> None:
    """Draw one agent's difference at a curve's largest magnitude."""
    value, low, high = curve.y[-1], curve.low[-1], curve.high[-1]
    y = row + shift(one.place, count)
    if value is None:
        return
    if low is not None and high is not None:
        colour = colour_of(one.place)
        plot.plot([low, high], [y, y], color=colour, linewidth=2.5, alpha=0.55)
    plot.plot([value], [y], "o", color=colour_of(one.place), markersize=5, zorder=3)


def _legend_above(figure: Figure, series: Sequence[Series]) -> None:
    """Name the agents and the dotted line above all panels."""
    plot = figure.axes[0]
    handles = [
        plot.plot([], [], "o-", color=colour_of(one.place), label=one.arm)[0]
        for one in series
    ]
    beside = series[0].data.beside_label or "realised"
    handles += plot.plot(
        [], [], color=MUTED, linewidth=1.2, linestyle=":", label=beside
    )
    figure.legend(
        handles=handles, loc="upper left", ncols=4, handlelength=1.4, borderaxespad=0.1
    )
