"""Curves over drift magnitude: success and quality with their bands."""

from typing import NamedTuple

import numpy as np

from owa_bench.records.observables import Floats
from owa_bench.scoring.axis import Sample
from owa_bench.scoring.cells import Ledger, Totals


class Line(NamedTuple):
    """One curve: its words, its magnitudes and how many episodes each rests on."""

    key: str
    name: str
    y_label: str
    x: tuple[float, ...]
    used: tuple[int, ...]


def lay_curves(sample: Sample, ledger: Ledger) -> tuple[Line, ...]:
    """Lay both curves over the nominal magnitudes that were played."""
    table, base = sample.table, sample.base
    lines = []
    for key, name, label, values, mask in (
        (
            "success",
            "success by drift magnitude",
            "share of tool-requiring tasks that succeed",
            table.u,
            base & table.needs_tools,
        ),
        ("quality", "quality by drift magnitude", "mean quality Q", table.q, base),
    ):
        played = sorted({d for d in table.delta[mask].tolist() if d == d})
        used = []
        for i, delta in enumerate(played):
            rows = mask & (table.delta == delta)
            ledger.mean(f"curve:{key}:{i}", values, rows)
            used.append(int(rows.sum()))
        lines.append(Line(key, name, label, tuple(played), tuple(used)))
    return tuple(lines)


def curve_statistics(sums: Totals, lines: tuple[Line, ...]) -> dict[str, Floats]:
    """Return every point of every curve per resample."""
    return {
        f"curve/{line.key}/{i}": sums.overall(sums.mean(f"curve:{line.key}:{i}"))
        for line in lines
        for i in np.arange(len(line.x)).tolist()
    }
