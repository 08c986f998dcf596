"""Axis W: how well an agent's stated probabilities match the world."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from owa_bench.errors import ScoringError
from owa_bench.records.observables import Flags, Floats
from owa_bench.scoring.axis import (
    Anchors,
    Laid,
    Sample,
    bounds,
    calibrate,
    check_shapes,
)
from owa_bench.scoring.cells import MILLION, Ledger, Totals


def world_model(
    brier: Floats, reference: Floats, count: Floats, guard: float
) -> Floats:
    """Return the Brier skill of the stated probabilities over the reference's.

    Formula:
        BS = mean (p - y)^2, BS_ref likewise with the reference p on the same draws
        W  = clip(1 - BS / max(BS_ref, eps), 0, 1), eps = 1 / (4 n)
        (the raw statistic is the same before the clip)
    Shapes: three arrays (resamples,): two sums and the number n; result (resamples,).
    Units: squared probabilities; result a share of the reference's risk removed.
    Missing: NaN where n is 0. A proposition without a stated p counts at the
        reference p; an agent that never states one has no W; a class with fewer
        resolved propositions than the protocol asks, or whose y never varies, is out.
    Errors: ScoringError if shapes differ or a sum lies outside [0, n].
    Source: [S] section 3.1 of the AAI paper, world model.

    >>> world_model(np.array([5.0]), np.array([25.0]), np.array([100.0]), 4)
    array([0.8])
    """
    check_shapes("world_model", brier, reference, count)
    if (brier < 0).any() or (brier > count).any() or (reference > count).any():
        raise ScoringError(
            "Sums of squared errors must lie in [0, n]: probabilities are in [0, 1]."
        )
    counted = np.where(count > 0, count, np.nan)
    floor = np.maximum(reference / counted, 1.0 / (guard * counted))
    result: Floats = 1.0 - brier / counted / floor
    return result


class WorldModel:
    """W of the AAI scale."""

    name = "world model"
    symbol = "W"
    formula = staticmethod(world_model)
    amounts: tuple[str, ...] = ("Brier score", "reference Brier score")

    def lay(self, sample: Sample, ledger: Ledger) -> Laid:
        """Lay squared errors of agent and reference over the propositions kept."""
        beliefs = sample.table.beliefs
        rows = sample.base[beliefs.row] if len(beliefs.row) else np.zeros(0, bool)
        cells = int(rows.sum())
        kept = self._kept(sample)
        if not cells:
            return Laid(0, 0, "no world proposition was resolved")
        if not (rows & ~np.isnan(beliefs.p)).any():
            return Laid(0, cells, "the agent never stated a probability")
        if not kept.any():
            return Laid(0, cells, f"no class can be read: {self._left_out(sample)}")
        assumed = self._reference(sample)
        stated = np.where(np.isnan(beliefs.p), assumed, beliefs.p)
        truth = beliefs.y.astype(np.float64)
        for name, values in (
            ("W:brier", (stated - truth) ** 2),
            ("W:reference", (assumed - truth) ** 2),
            ("W:count", np.ones_like(truth)),
        ):
            ledger.add(name, beliefs.row[kept], values[kept])
        return Laid(int(kept.sum()), cells)

    def _reference(self, sample: Sample) -> Floats:
        """Return the reference p of each proposition, NaN for a class without one."""
        kinds = sample.table.beliefs.kind
        assumed = np.full(len(kinds), np.nan)
        for kind, p in sample.protocol.world_model.references.items():
            assumed[kinds == kind] = p
        return assumed

    def _classes(self, sample: Sample) -> dict[str, str | None]:
        """Return why each class of proposition is left out, None if it is kept."""
        beliefs, rules = sample.table.beliefs, sample.protocol.world_model
        base = sample.base[beliefs.row]
        reasons: dict[str, str | None] = {}
        for kind in sorted(set(beliefs.kind[base].tolist())):
            truth = beliefs.y[base & (beliefs.kind == kind)]
            if kind not in rules.references:
                reasons[kind] = "the protocol has no reference for it"
            elif len(truth) < rules.class_min:
                reasons[kind] = f"{len(truth)} resolved of {rules.class_min}"
            elif truth.all() or not truth.any():
                reasons[kind] = "its outcome never varies"
            else:
                reasons[kind] = None
        return reasons

    def _kept(self, sample: Sample) -> Flags:
        beliefs = sample.table.beliefs
        if not len(beliefs.row):
            return np.zeros(0, dtype=np.bool_)
        good = [kind for kind, why in self._classes(sample).items() if why is None]
        return sample.base[beliefs.row] & np.isin(beliefs.kind, good)

    def _left_out(self, sample: Sample) -> str:
        reasons = self._classes(sample).items()
        return "; ".join(f"{kind}: {why}" for kind, why in reasons if why)

    def raw(self, totals: Totals, sample: Sample) -> Floats:
        """Return the Brier skill before the clip."""
        brier, reference, count = (
            totals.sum(name).sum(axis=1) / MILLION
            for name in ("W:brier", "W:reference", "W:count")
        )
        guard = sample.protocol.world_model.guard
        return world_model(brier, reference, count, guard)

    def anchors(self, totals: Totals, sample: Sample) -> Anchors:
        """Perfect foresight: 1."""
        return bounds(sample, self.symbol, np.ones(len(totals.table)))

    def value(self, raw: Floats, anchors: Anchors) -> Floats:
        """Return N(raw)."""
        return calibrate(raw, anchors)

    def beside(self, totals: Totals, sample: Sample) -> Mapping[str, Floats]:
        """Return the two Brier scores."""
        count = np.maximum(totals.sum("W:count").sum(axis=1), 1.0)
        return {
            "Brier score": totals.sum("W:brier").sum(axis=1) / count,
            "reference Brier score": totals.sum("W:reference").sum(axis=1) / count,
        }

    def details(self, sample: Sample) -> Mapping[str, Any]:
        """Classes left out and how often a probability was stated."""
        beliefs = sample.table.beliefs
        kept = self._kept(sample)
        reasons = self._classes(sample)
        return {
            "stated": float((~np.isnan(beliefs.p[kept])).mean()) if kept.any() else 0.0,
            "left out": {kind: why for kind, why in reasons.items() if why},
            "base rates": {
                kind: float(beliefs.y[kept & (beliefs.kind == kind)].mean())
                for kind, why in reasons.items()
                if why is None
            },
        }


AXIS = WorldModel()
