"""Axis T: how many kinds of tools an agent masters, and how it holds under drift."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from owa_bench.errors import ScoringError
from owa_bench.records.observables import Flags, Floats
from owa_bench.scoring.axis import Anchors, Laid, Sample, bounds, calibrate
from owa_bench.scoring.cells import Ledger, Totals

_USED = "T:used "  # columns of the categories used under drift


def tool_economy(used: Floats, success: Floats, grid: Floats, prior: int) -> Floats:
    """Return tool breadth times the area under success against drift magnitude.

    Formula:
        T = N(min(1, ln(1 + |C_used|) / ln(1 + C0)) * integral_0^1 succ(delta) ddelta)
        the integral by the trapezoid rule on the published grid
    Shapes: used (resamples,), success (resamples, grid), grid (grid,); result
        (resamples,).
    Units: `used` counts tool categories; success a rate; delta a weight share.
    Missing: NaN where a magnitude has no episode.
    Errors: ScoringError if shapes do not fit, or the grid does not rise from 0 to 1.
    Source: [R] eqs 7-9 of the AAI paper; C0 and the grid [D] in the protocol.

    >>> curve = np.array([[1.0, 0.5, 0.0]])
    >>> tool_economy(np.array([12.0]), curve, np.array([0.0, 0.5, 1.0]), 12)
    array([0.5])
    """
    fits = success.ndim == 2 and used.shape == success.shape[:1]
    if not fits or grid.shape != success.shape[1:] or len(grid) < 2:
        raise ScoringError(
            "tool_economy needs (resamples,), (resamples, grid) and (grid,), got "
            f"{used.shape}, {success.shape} and {grid.shape}."
        )
    if grid[0] != 0 or grid[-1] != 1 or (np.diff(grid) <= 0).any():
        raise ScoringError(
            f"The grid of magnitudes must rise from 0 to 1, got {grid.tolist()}."
        )
    area = ((success[:, 1:] + success[:, :-1]) / 2 * np.diff(grid)).sum(axis=1)
    breadth = np.minimum(1.0, np.log1p(used) / math.log1p(prior))
    result: Floats = breadth * area
    return result


class ToolEconomy:
    """T of the AAI scale."""

    name = "tool economy"
    symbol = "T"
    formula = staticmethod(tool_economy)
    amounts: tuple[str, ...] = ("categories used",)

    def lay(self, sample: Sample, ledger: Ledger) -> Laid:
        """Lay success per magnitude and the use of each category under drift."""
        rows = sample.base & sample.table.needs_tools
        cells = int(rows.sum())
        grid = sample.protocol.drift.magnitudes
        played = set(sample.table.delta[rows].tolist())
        absent = [f"{delta:g}" for delta in grid if delta not in played]
        if not cells:
            return Laid(0, 0, "no counted episode needs tools")
        if absent:
            return Laid(0, cells, f"drift magnitudes {', '.join(absent)} not played")
        for i, delta in enumerate(grid):
            ledger.mean(f"T:{i}", sample.table.u, rows & (sample.table.delta == delta))
        self._lay_categories(sample, ledger, rows & (sample.table.delta > 0))
        return Laid(int((rows & np.isin(sample.table.delta, grid)).sum()), cells)

    def _lay_categories(self, sample: Sample, ledger: Ledger, rows: Flags) -> None:
        """Lay the use under drift of the categories used on enough tasks.

        The upper anchor is fixed with them: all that enough tasks offer.
        """
        enough = sample.protocol.tools.distinct_instances
        offered = 0
        for j, name in enumerate(sample.table.categories):
            offered += ledger.tasks(rows & sample.table.offered[:, j]) >= enough
            held = rows & sample.table.used[:, j]
            if ledger.tasks(held) >= enough:
                ledger.presence(f"{_USED}{name}", held)
        prior = sample.protocol.tools.size_prior
        ledger.constant("T:breadth", min(1.0, math.log1p(offered) / math.log1p(prior)))

    def _success(self, totals: Totals, sample: Sample) -> Floats:
        size = len(sample.protocol.drift.magnitudes)
        curve = [totals.overall(totals.mean(f"T:{i}")) for i in range(size)]
        return np.stack(curve, axis=1)

    def _mastered(self, totals: Totals, sample: Sample) -> Floats:
        """Return how many categories were used with success on enough tasks."""
        enough = sample.protocol.tools.distinct_instances
        counts = np.zeros(len(totals.table))
        for name in totals.names:
            if name.startswith(_USED):
                counts += totals.sum(name).sum(axis=1) >= enough
        return counts

    def raw(self, totals: Totals, sample: Sample) -> Floats:
        """Return breadth times area."""
        return tool_economy(
            self._mastered(totals, sample),
            self._success(totals, sample),
            np.array(sample.protocol.drift.magnitudes),
            sample.protocol.tools.size_prior,
        )

    def anchors(self, totals: Totals, sample: Sample) -> Anchors:
        """The oracle succeeds everywhere with every category the tasks hold."""
        breadth = np.full(len(totals.table), totals.constants["T:breadth"])
        return bounds(sample, self.symbol, breadth)

    def value(self, raw: Floats, anchors: Anchors) -> Floats:
        """Return N(raw)."""
        return calibrate(raw, anchors)

    def beside(self, totals: Totals, sample: Sample) -> Mapping[str, Floats]:
        """Return the curve succ(delta) and the number of categories mastered."""
        curve = self._success(totals, sample)
        grid = sample.protocol.drift.magnitudes
        return {
            f"success at {delta:g}": curve[:, i] for i, delta in enumerate(grid)
        } | {"categories used": self._mastered(totals, sample)}

    def details(self, sample: Sample) -> Mapping[str, Any]:
        """Coverage of the tool categories, used and discovered."""
        table, enough = sample.table, sample.protocol.tools.distinct_instances
        rows = sample.base & table.needs_tools & (table.delta > 0)
        task = np.unique(table.pair[rows], return_inverse=True)[1]
        counts = {
            what: np.array([len(np.unique(task[held])) for held in flags[rows].T])
            for what, flags in (
                ("offered", table.offered),
                ("used", table.used),
                ("found", table.discovered),
            )
        }
        offered, used = counts["offered"] > 0, counts["used"] >= enough
        whole = max(int(offered.sum()), 1)
        names = np.array(table.categories)
        return {
            "coverage, used": float((offered & used).sum() / whole),
            "coverage, discovered": float((offered & (counts["found"] > 0)).sum())
            / whole,
            "categories": names[offered].tolist(),
            "used": names[used].tolist(),
        }


AXIS = ToolEconomy()
