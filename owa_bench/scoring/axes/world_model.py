"""Axis W: world model, the skill of stated probabilities over a reference.

The reference is the better of two predictors that look at nothing: the protocol's p of each class,
and the best constant of each class in hindsight. So no constant by class has skill, whatever worlds
a run draws.
"""

from collections.abc import Mapping

import numpy as np

from owa_bench.errors import ScoringError
from owa_bench.records.observables import Flags, Floats
from owa_bench.scoring.axis import Axis, Coverage, Diagnostics, FloatsByName, check_shapes
from owa_bench.scoring.observe.sample import Sample
from owa_bench.scoring.statistics.statistics_table import MILLION, StatisticsTable, Totals

_PARTS = 2520  # an episode's weight in whole parts for each of up to 10 propositions
_WEIGHT, _TRUE = "W:weight:", "W:true:"


def world_model(brier: Floats, reference: Floats, count: Floats, guard: float) -> Floats:
    """Return the Brier skill of the stated probabilities over the reference's.

    Formula:
        BS = mean over episodes of (mean over its propositions of (p - y)^2), p the
             last stated before the deadline; BS_ref likewise, the smaller of
             p = the protocol's of the class and p = the share of y in the class
        W  = clip(1 - BS / max(BS_ref, eps), 0, 1), eps = 1 / (4 episodes)
        (the raw statistic is the same before the clip)
    Shapes: three arrays (resamples,): two sums over episodes and their number;
        result (resamples,).
    Units: squared probabilities; result a share of the reference's risk removed.
    Missing: NaN without an episode. A proposition without a stated p counts at the
        reference p; an agent that never states one has no W; a class with fewer
        resolved propositions than the protocol asks, or whose y never varies, is
        left out.
    Errors: ScoringError if shapes differ or a sum lies outside [0, n].
    Source: [S] section 3.1 of the AAI paper, world model.

    >>> world_model(np.array([5.0]), np.array([25.0]), np.array([100.0]), 4)
    array([0.8])
    >>> world_model(np.array([0.25]), np.array([0.5]), np.array([1.0]), 4)
    array([0.5])
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


def _collect(sample: Sample, statistics: StatisticsTable) -> Coverage:
    """Add each episode's mean squared error, of the agent and of the reference."""
    beliefs = sample.table.beliefs
    rows = sample.base[beliefs.row] if len(beliefs.row) else np.zeros(0, bool)
    cells, reasons = int(rows.sum()), _left_out(sample)
    counted = _counted_rows(sample, reasons)
    if not cells:
        return Coverage(0, 0, "no world proposition was resolved")
    if not (rows & ~np.isnan(beliefs.p)).any():
        return Coverage(0, cells, "the agent never stated a probability")
    if not counted.any():
        why = "; ".join(f"{kind}: {why}" for kind, why in reasons.items() if why)
        return Coverage(0, cells, f"no class can be read: {why}")
    assumed = np.full(len(beliefs.kind), np.nan)
    for kind, p in sample.protocol.world_model.references.items():
        assumed[beliefs.kind == kind] = p
    stated = np.where(np.isnan(beliefs.p), assumed, beliefs.p)
    truth = beliefs.y.astype(np.float64)
    beside = np.bincount(beliefs.row[counted], minlength=len(sample.base))
    episodes = np.flatnonzero(beside)
    row = np.searchsorted(episodes, beliefs.row[counted])
    size = beside[episodes]
    for name, values in (
        ("W:brier", (stated - truth) ** 2),
        ("W:reference", (assumed - truth) ** 2),
        ("W:count", np.ones_like(truth)),
    ):
        statistics.add_sum(name, episodes, np.bincount(row, values[counted]) / size)
    weight = np.zeros(len(truth))
    weight[counted] = _PARTS / size[row]
    for kind in np.unique(beliefs.kind[counted]).tolist():
        of_kind = counted & (beliefs.kind == kind)
        place, parts = beliefs.row[of_kind], weight[of_kind]
        statistics.add_sum(f"{_WEIGHT}{kind}", place, parts)
        statistics.add_sum(f"{_TRUE}{kind}", place, parts * truth[of_kind])
    return Coverage(int(counted.sum()), cells)


def _left_out(sample: Sample) -> dict[str, str | None]:
    """Return why each class of proposition is left out, None if it counts."""
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


def _counted_rows(sample: Sample, reasons: Mapping[str, str | None]) -> Flags:
    beliefs = sample.table.beliefs
    if not len(beliefs.row):
        return np.zeros(0, dtype=np.bool_)
    kinds = [kind for kind, why in reasons.items() if why is None]
    return sample.base[beliefs.row] & np.isin(beliefs.kind, kinds)


def _raw(totals: Totals, sample: Sample) -> Floats:
    """Return the Brier skill before the clip."""
    brier, count = (totals.pooled(name) / MILLION for name in ("W:brier", "W:count"))
    guard = sample.protocol.world_model.guard
    return world_model(brier, _reference(totals), count, guard)


def _reference(totals: Totals) -> Floats:
    """Return the smaller sum of squared errors of the two reference predictors."""
    hindsight = np.zeros(len(totals.table))
    for name in list(totals.names):
        if name.startswith(_WEIGHT):
            kind = name.removeprefix(_WEIGHT)
            whole, true = totals.pooled(name), totals.pooled(f"{_TRUE}{kind}")
            hindsight += true - true**2 / np.maximum(whole, 1.0)
    committed: Floats = totals.pooled("W:reference") / MILLION
    return np.minimum(committed, hindsight / (MILLION * _PARTS))


def _brier_scores(totals: Totals, sample: Sample) -> FloatsByName:
    count = np.maximum(totals.pooled("W:count"), 1.0)
    return {
        "Brier score": totals.pooled("W:brier") / count,
        "reference Brier score": _reference(totals) * MILLION / count,
    }


def _diagnostics(sample: Sample) -> Diagnostics:
    """Return the classes left out, and how often a probability was stated."""
    beliefs, reasons = sample.table.beliefs, _left_out(sample)
    counted = _counted_rows(sample, reasons)
    stated = ~np.isnan(beliefs.p[counted])
    return {
        "stated": float(stated.mean()) if counted.any() else 0.0,
        "left out": {kind: why for kind, why in reasons.items() if why},
        "base rates": {
            kind: float(beliefs.y[counted & (beliefs.kind == kind)].mean())
            for kind, why in reasons.items()
            if why is None
        },
    }


AXIS = Axis(
    "W",
    "world model",
    formula=world_model,
    collect=_collect,
    raw=_raw,
    secondary=_brier_scores,
    amounts=("Brier score", "reference Brier score"),
    diagnostics=_diagnostics,
)
