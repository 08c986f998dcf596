"""Axis M: what an agent still knows days later, and what it finds again."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from owa_bench.errors import ScoringError
from owa_bench.records.observables import Flags, Floats, Probes
from owa_bench.records.protocol import Memory as Rules
from owa_bench.scoring.axis import (
    Anchors,
    Laid,
    Sample,
    bounds,
    calibrate,
    check_shapes,
)
from owa_bench.scoring.cells import MILLION, Ledger, Totals
from owa_bench.scoring.retention import fit, half_life

_RECALL, _RETRIEVE = "recall", "retrieve"


def memory(
    start: Floats, forgetting: Floats, recall: Floats, guess: Floats, rules: Rules
) -> Floats:
    """Return what is retained and retrieved of a family.

    Formula:
        r(l) = r0 exp(-lambda l), e = clip((r0 - g) / (0.9 - g), 0, 1)
        ret = e clip(1 - lambda / lambda_max, 0, 1), lambda_max = ln 2 / h_min
        M   = N(median over families of (ret + recall@K) / 2)
    Shapes: four arrays of one shape; result the same, before median and N.
    Units: lambda per day, the others shares; result a share.
    Missing: NaN where a law or recall@K is not known; the median leaves it out.
    Errors: ScoringError if shapes differ, are empty, or g reaches full encoding.
    Source: [R] eqs 5-6 of the AAI paper; 0.9, K and h_min [D].

    >>> from types import SimpleNamespace
    >>> rules = SimpleNamespace(half_life_days=7, full_encoding=0.9)
    >>> memory(np.array([0.9]), np.array([0.0]), np.ones(1), np.zeros(1), rules)
    array([1.])
    """
    check_shapes("memory", start, forgetting, recall, guess)
    if (guess >= rules.full_encoding).any():
        raise ScoringError(
            f"The guess rate must lie below {rules.full_encoding}, got {guess.max()}."
        )
    encoded = np.clip((start - guess) / (rules.full_encoding - guess), 0.0, 1.0)
    fastest = math.log(2) / rules.half_life_days
    kept = encoded * np.clip(1.0 - forgetting / fastest, 0.0, 1.0)
    result: Floats = (kept + recall) / 2.0
    return result


class Memory:
    """M of the AAI scale."""

    name = "memory"
    symbol = "M"
    formula = staticmethod(memory)
    amounts: tuple[str, ...] = ()

    def lay(self, sample: Sample, ledger: Ledger) -> Laid:
        """Lay trials and hits per lag of recall without tools, and of retrieval."""
        probes = sample.table.probes
        kept: Flags = sample.base[probes.row]
        asked, sought = kept & (probes.mode == _RECALL), kept & self._retrieval(probes)
        cells, used = int(kept.sum()), int(asked.sum() + sought.sum())
        lags = np.unique(probes.lag[asked])
        if not cells:
            return Laid(0, 0, "no memory probes over days in this run")
        if len(lags) < 2:
            return Laid(0, cells, "recall was probed at fewer than two lags")
        if not sought.any():
            return Laid(0, cells, "no retrieval probe: recall@K is not known")
        for i, lag in enumerate(lags):
            rows = asked & (probes.lag == lag)
            self._put(ledger, f"M:lag:{i}", probes, rows, probes.correct)
        self._put(ledger, "M:found", probes, sought, self._found(sample))
        self._put(ledger, "M:guess", probes, asked, probes.guess)
        return Laid(used, cells)

    def _retrieval(self, probes: Probes) -> Flags:
        held: Flags = probes.mode == _RETRIEVE
        return held

    def _found(self, sample: Sample) -> Flags:
        """Return whether a verified entry stands among the first K returned."""
        first = sample.table.probes.verified[:, : sample.protocol.memory.recall_at]
        found: Flags = first.sum(axis=1) > 0
        return found

    def _put(
        self, ledger: Ledger, name: str, probes: Probes, rows: Flags, values: Any
    ) -> None:
        ledger.add(name, probes.row[rows], values[rows].astype(np.float64))
        ledger.add(f"{name}#", probes.row[rows], np.ones(int(rows.sum())))

    def _lags(self, sample: Sample) -> Floats:
        probes = sample.table.probes
        asked = sample.base[probes.row] & (probes.mode == _RECALL)
        return np.unique(probes.lag[asked])

    def _parts(self, totals: Totals, sample: Sample) -> tuple[Floats, Floats, Floats]:
        """Return r0, lambda and recall@K per resample and family.

        A family without a retrieval probe of its own reads the whole run's.
        """
        lags = self._lags(sample)
        places = range(len(lags))
        hits = np.stack([totals.sum(f"M:lag:{i}") for i in places], axis=2) / MILLION
        tries = np.stack([totals.sum(f"M:lag:{i}#") for i in places], axis=2) / MILLION
        law = fit(hits, tries, lags)
        recall = totals.mean("M:found")
        whole = totals.sum("M:found").sum(axis=1) / np.maximum(
            totals.sum("M:found#").sum(axis=1), 1.0
        )
        return (
            law.start,
            law.forgetting,
            np.where(np.isnan(recall), whole[:, None], recall),
        )

    def raw(self, totals: Totals, sample: Sample) -> Floats:
        """Return the median over families."""
        start, rate, recall = self._parts(totals, sample)
        guess = np.nan_to_num(totals.mean("M:guess"))
        return _median(memory(start, rate, recall, guess, sample.protocol.memory))

    def anchors(self, totals: Totals, sample: Sample) -> Anchors:
        """The oracle forgets nothing and finds everything: 1."""
        return bounds(sample, self.symbol, np.ones(len(totals.table)))

    def value(self, raw: Floats, anchors: Anchors) -> Floats:
        """Return N(raw)."""
        return calibrate(raw, anchors)

    def beside(self, totals: Totals, sample: Sample) -> Mapping[str, Floats]:
        """Return recall@K over all retrieval probes."""
        found, tries = totals.sum("M:found"), totals.sum("M:found#")
        whole = np.maximum(tries.sum(axis=1), 1.0)
        return {f"recall@{sample.protocol.memory.recall_at}": found.sum(axis=1) / whole}

    def details(self, sample: Sample) -> Mapping[str, Any]:
        """Return each family's half-life in days with its profile interval."""
        table, probes = sample.table, sample.table.probes
        asked = sample.base[probes.row] & (probes.mode == _RECALL)
        found: dict[str, Any] = {}
        lags = self._lags(sample)
        for family in sample.families:
            rows = asked & (table.family[probes.row] == family)
            if not rows.any():
                continue
            at = np.searchsorted(lags, probes.lag[rows])
            tries = np.bincount(at, minlength=len(lags)).astype(np.float64)
            hits = np.bincount(at, probes.correct[rows], len(lags)).astype(np.float64)
            held = half_life(hits, tries, lags, sample.protocol.statistics.level)
            found[family] = [
                None if math.isnan(x) else "no forgetting seen" if math.isinf(x) else x
                for x in (round(value, 4) for value in held)
            ]
        return {"half-life in days, low, high": found, "lags": lags.tolist()}


def _median(values: Floats) -> Floats:
    """Return the median over families that are known, NaN where none is."""
    ranked = np.sort(values, axis=1)  # NaN last
    count = (~np.isnan(values)).sum(axis=1)
    low = np.maximum(count - 1, 0) // 2
    high = np.minimum(count // 2, np.maximum(count - 1, 0))
    rows = np.arange(len(values))
    middle: Floats = (ranked[rows, low] + ranked[rows, high]) / 2.0
    return np.where(count > 0, middle, np.nan)


AXIS = Memory()
