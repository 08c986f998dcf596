"""Figures of a validation: the matrix, the doses of every knob, A against P."""

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from owa_bench.records.validation import AXES
from owa_bench.records.validation_result import ArmValues, KnobResponse, MatrixCell, Validation
from owa_bench.reports.page import figures
from owa_bench.reports.page.figures import INK, LINE, MUTED, arm_colour

_WIDE = 9.0  # inches
_FALLS, _RISES, _OWN = arm_colour(0), arm_colour(1), arm_colour(2)
_FAINTEST, _STRONGEST = 0.06, 0.75  # opacity of a cell at effect 0 and at effect 1
_COLUMNS = 3  # panels side by side
_LABEL_GAP = 0.1  # between the names of two lines
_MARKS = {"as declared": "", "not shown": "?", "contrary": "!"}


def matrix_figure(validation: Validation) -> str:
    """Return the matrix: a row a knob, a column an axis, the effect in every cell."""
    rows = validation.knobs
    with figures.style("validation/matrix"):
        figure = Figure(figsize=(_WIDE, 0.9 + 0.42 * len(rows)), layout="tight")
        plot = figure.add_subplot()
        for y, row in enumerate(rows):
            for x, cell in enumerate(row.cells):
                _matrix_cell(plot, (x, y), cell, own=cell.axis == row.axis)
        plot.set_xticks(range(len(AXES)), AXES)
        plot.xaxis.tick_top()
        plot.set_yticks(range(len(rows)), [f"{row.name} → {row.axis}" for row in rows])
        plot.set_xlim(-0.5, len(AXES) - 0.5)
        plot.set_ylim(len(rows) - 0.5, -0.5)
        plot.grid(visible=False)
        plot.tick_params(length=0)
        for side in plot.spines.values():
            side.set_visible(False)
        return figures.to_svg(figure, "Effect of every knob on every axis")


def _matrix_cell(plot: Axes, place: tuple[int, int], cell: MatrixCell, *, own: bool) -> None:
    """Draw a cell: opacity by size, colour by direction, a frame on the own axis."""
    x, y = place
    value = cell.effect.value
    corner, width, height = (x - 0.46, y - 0.42), 0.92, 0.84
    if value is not None:
        depth = min(abs(value), 1.0)
        opacity = _FAINTEST + (_STRONGEST - _FAINTEST) * depth
        colour = _RISES if value > 0 else _FALLS
        fill = Rectangle(corner, width, height, facecolor=colour, alpha=opacity)
        plot.add_patch(fill)
    if own:
        frame = Rectangle(corner, width, height, fill=False, edgecolor=INK, lw=1.4)
        plot.add_patch(frame)
    text = "no evidence" if value is None else f"{_signed_text(value)}{_MARKS[cell.verdict]}"
    plot.text(
        *place,
        text,
        ha="center",
        va="center",
        fontsize=6.5 if value is None else 9,
        color=MUTED if value is None else INK,
        fontweight="bold" if own and value is not None else "normal",
    )


def _signed_text(value: float) -> str:
    """Return a number with its sign, zero without one."""
    text = f"{value:+.2f}".replace("-", "−")
    return "0" if text[1:] == "0.00" else text


def dose_figure(rows: Sequence[KnobResponse]) -> str:
    """Return a small plot for each knob: every axis over its doses, its own in front.

    Args:
        rows: rows of the matrix that were played.
    Returns: The figure as an SVG element.
    """
    lines = -(-len(rows) // _COLUMNS)
    with figures.style("validation/doses"):
        figure = Figure(figsize=(_WIDE, 0.4 + 2.0 * lines), layout="tight")
        for place, row in enumerate(rows):
            plot = figure.add_subplot(lines, _COLUMNS, place + 1)
            _dose_panel(plot, row)
        return figures.to_svg(figure, "Axes over the doses of every knob")


def _dose_panel(plot: Axes, row: KnobResponse) -> None:
    cells = [cell for cell in row.cells if cell.doses]
    for cell in sorted(cells, key=lambda cell: cell.axis == row.axis):
        _dose_line(plot, cell, own=cell.axis == row.axis)
    doses = cells[0].doses if cells else ()
    last = max(len(doses) - 1, 1)
    _label_lines(plot, cells, row.axis, last + 0.12)
    plot.set_xticks(range(len(doses)), [reading.dose for reading in doses])
    plot.set_xlim(-0.3, last + 0.45)
    plot.set_ylim(-0.04, 1.06)
    known = any(cell.axis == row.axis for cell in cells)
    note = "" if known else ": no evidence"
    plot.set_title(f"{row.name} → {row.axis}{note}", fontsize=9, loc="left")
    plot.tick_params(labelsize=8)


def _dose_line(plot: Axes, cell: MatrixCell, *, own: bool) -> None:
    """Draw an axis over the doses; the own axis with its intervals."""
    played = [(x, r) for x, r in enumerate(cell.doses) if r.value is not None]
    places = [x for x, _ in played]
    values = np.array([reading.value for _, reading in played], dtype=float)
    colour, width = (_OWN, 2.2) if own else (MUTED, 0.8)
    plot.plot(places, values, "o-" if own else "-", color=colour, linewidth=width)
    for x, reading in played if own else ():
        low, high = reading.interval.low, reading.interval.high
        if low is not None and high is not None:
            plot.plot([x, x], [low, high], color=colour, linewidth=1.2)


def _label_lines(plot: Axes, cells: Sequence[MatrixCell], own: str, x: float) -> None:
    """Name the lines at their ends, from below, one label above the other."""
    ends = [(c.doses[-1].value, c.axis) for c in cells]
    rows = sorted((value, axis) for value, axis in ends if value is not None)
    heights = [value for value, _ in rows]
    for i in range(1, len(heights)):
        heights[i] = max(heights[i], heights[i - 1] + _LABEL_GAP)
    over = max(0.0, heights[-1] - 1.0) if heights else 0.0
    for i in range(len(heights) - 1, -1, -1):
        above = heights[i + 1] - _LABEL_GAP if i + 1 < len(heights) else math.inf
        heights[i] = min(heights[i], above, 1.0) if over else heights[i]
    for (_, axis), y in zip(rows, heights, strict=True):
        colour, weight = (_OWN, "bold") if axis == own else (MUTED, "normal")
        plot.text(x, y, axis, fontsize=7.5, va="center", color=colour, fontweight=weight)


def agents_figure(arms: Sequence[ArmValues], named: Sequence[str]) -> str:
    """Return axis P against axis A, a point an agent.

    Args:
        arms: every arm of the validation.
        named: names of the unhandicapped agents, which are labelled.
    Returns: The figure as an SVG element.
    """
    a, p = AXES.index("A"), AXES.index("P")
    known = [arm for arm in arms if None not in (arm.values[a], arm.values[p])]
    with figures.style("validation/agents"):
        figure, plot = figures.new_figure(4.2)
        plot.plot([0, 1], [0, 1], color=LINE, linewidth=1)
        for arm in known:
            inside = arm.arm in named
            x, y = float(arm.values[a] or 0), float(arm.values[p] or 0)
            colour = arm_colour(1) if inside else MUTED
            plot.plot(x, y, "o", color=colour, markersize=7 if inside else 4)
        _label_points(plot, [arm for arm in known if arm.arm in named], (a, p))
        plot.set_xlim(-0.05, 1.05)
        plot.set_ylim(-0.05, 1.08)
        plot.set_xlabel("A, autonomy")
        plot.set_ylabel("P, planning")
        return figures.to_svg(figure, "Planning against autonomy, by agent")


def _label_points(plot: Axes, arms: Sequence[ArmValues], axes: tuple[int, int]) -> None:
    """Name the points of some arms, those at one place in one label."""
    places: dict[tuple[float, float], list[str]] = {}
    for arm in arms:
        point = np.round([float(arm.values[axis] or 0) for axis in axes], 1)
        places.setdefault((float(point[0]), float(point[1])), []).append(arm.arm)
    for (x, y), names in places.items():
        right = x > 0.5
        plot.annotate(
            "\n".join(names),
            (x, y),
            xytext=(-9 if right else 9, 0),
            textcoords="offset points",
            ha="right" if right else "left",
            va="top" if y > 0.5 else "bottom",
            fontsize=7,
        )
