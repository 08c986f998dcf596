"""What a report shows of dose and response: curves, gaps, and tables of both."""

import numpy as np

from owa_bench.records.score import CellTable, Curve
from owa_bench.scoring.bootstrap import BootstrapEstimate, figure
from owa_bench.scoring.dose import Cell, Doses

GAPS = "Drifted minus clean, the same tasks"
SHARE = "weight share"
Row = tuple[str | float | int | None, ...]


def curves(found: Doses) -> tuple[Curve, ...]:
    """Return a curve per kind of drift: quality, and the gap to the clean partner."""
    level = found.sample.protocol.statistics.level
    drawn: dict[str, list[Cell]] = {}
    for cell in found.cells:
        drawn.setdefault(cell.mix.label, []).append(cell)
    qualities = [_quality(found, cells, level) for cells in drawn.values()]
    gaps = [
        _gap(found, [c for c in cells if c.delta and c.paired.any()], level)
        for cells in drawn.values()
    ]
    return (*qualities, *(gap for gap in gaps if gap.x))


def tables(found: Doses) -> tuple[CellTable, CellTable]:
    """Return quality by what drifted, and drifted against clean, as tables."""
    return _doses(found), _gaps(found)


def _doses(found: Doses) -> CellTable:
    level = found.sample.protocol.statistics.level
    names = measure_names(found)
    rows: list[Row] = []
    for cell in found.cells:
        spread = found.spread[cell.key]
        band = spread.interval(level)
        pairs = len(np.unique(found.sample.table.pair[cell.rows]))
        rows.append(
            (
                *(cell.mix.label, cell.delta, int(cell.rows.sum()), pairs),
                *(figure(spread.point), band.low, band.high),
                *realised(found, cell).values(),
            )
        )
    return CellTable(
        title="quality by what drifted",
        columns=(*_DOSES, SHARE, *names),
        rows=tuple(rows),
        note="Q over tasks like these, 95 percent; beside it the realised magnitude: "
        "the weight share of the calendar that struck"
        + (", and as the suite measures it: " + ", ".join(names) if names else "")
        + _why_none(found),
    )


def _why_none(found: Doses) -> str:
    """Return why no cell has an interval, "" where one has."""
    level = found.sample.protocol.statistics.level
    bands = [found.spread[cell.key].interval(level) for cell in found.cells]
    known = any(band.low is not None for band in bands)
    return "" if known else f". No interval: {bands[0].reason}"


def _gaps(found: Doses) -> CellTable:
    level = found.sample.protocol.statistics.level
    table, rows = found.sample.table, []
    for cell in found.cells:
        if not cell.delta or not cell.paired.any():
            continue
        drifted, clean = table.q[cell.paired], found.clean[cell.paired]
        gap = gap_of(found.spread[f"{cell.key}/gap"], level)
        rows.append(
            (
                *(cell.mix.label, cell.delta, int(cell.paired.sum())),
                *(figure(float(clean.mean())), figure(float(drifted.mean()))),
                *gap,
                *(int((drifted < clean).sum()), int((drifted == clean).sum())),
                int((drifted > clean).sum()),
            )
        )
    return CellTable(
        title="drifted against clean, pair by pair",
        columns=_GAPS,
        rows=tuple(rows),
        note="a pair is one task and noise seed at magnitude 0 and drifted; the "
        "difference weighs families as the battery does, the means do not"
        + _why_none(found)
        if rows
        else "No drifted episode has an undrifted partner: draw magnitude 0 too.",
    )


_DOSES = ("drift", "magnitude", "episodes", "tasks", "Q", "low", "high")
_GAPS = (
    *("drift", "magnitude", "pairs", "Q clean", "Q drifted", "difference"),
    *("low", "high", "worse", "same", "better"),
)


def realised(found: Doses, cell: Cell) -> dict[str, float | None]:
    """Return the mean realised magnitudes of a cell by name, the weight share first."""
    rows = np.flatnonzero(cell.rows).tolist()
    share = figure(float(found.sample.table.realised[cell.rows].mean()))
    means: dict[str, float | None] = {SHARE: share}
    for name in measure_names(found):
        if not cell.delta:
            means[name] = 0.0
            continue
        held = [dict(found.struck[i].measures) for i in rows]
        values = [measures[name] for measures in held if name in measures]
        means[name] = figure(float(np.mean(values))) if values else None
    return means


def measure_names(found: Doses) -> tuple[str, ...]:
    """Return the names of what the suites measured, in order."""
    return tuple(
        dict.fromkeys(name for one in found.struck for name, _ in one.measures)
    )


def gap_of(spread: BootstrapEstimate, level: float) -> tuple[float | None, ...]:
    """Return a gap in [-1, 1] with its two bounds, from the spread of its share."""
    band = spread.interval(level)
    return tuple(
        None if x is None else figure(2.0 * x - 1.0)
        for x in (figure(spread.point), band.low, band.high)
    )


def _quality(found: Doses, cells: list[Cell], level: float) -> Curve:
    bands = [found.spread[cell.key].interval(level) for cell in cells]
    names = measure_names(found)
    beside = names[0] if names else SHARE
    return Curve(
        name=cells[0].mix.label,
        x_label="nominal drift magnitude",
        y_label="mean quality Q",
        x=tuple(cell.delta for cell in cells),
        y=tuple(figure(found.spread[cell.key].point) for cell in cells),
        low=tuple(band.low for band in bands),
        high=tuple(band.high for band in bands),
        used=tuple(int(cell.rows.sum()) for cell in cells),
        note=f"band: {bands[0].method}",
        panel=cells[0].mix.panel,
        beside=tuple(realised(found, cell)[beside] for cell in cells),
        beside_label=f"realised ({beside})",
    )


def _gap(found: Doses, cells: list[Cell], level: float) -> Curve:
    gaps = [gap_of(found.spread[f"{cell.key}/gap"], level) for cell in cells]
    return Curve(
        name=cells[0].mix.label if cells else "",
        x_label="nominal drift magnitude",
        y_label="Q drifted minus Q clean",
        x=tuple(cell.delta for cell in cells),
        y=tuple(gap[0] for gap in gaps),
        low=tuple(gap[1] for gap in gaps),
        high=tuple(gap[2] for gap in gaps),
        used=tuple(int(cell.paired.sum()) for cell in cells),
        panel=GAPS,
    )
