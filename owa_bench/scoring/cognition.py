"""The cognitive micro-batteries: retrieval, hallucination, span, delayed recall."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from owa_bench.errors import ScoringError
from owa_bench.records.observables import Flags, Floats, Integers
from owa_bench.records.protocol import Memory as Rules
from owa_bench.scoring.axis import Sample
from owa_bench.scoring.cells import Ledger, Totals

VERIFIED, HALLUCINATED, DELAYED = "C/vrp", "C/hallucination", "C/delayed"


def verified_precision(verified: Flags, slots: int) -> Floats:
    """Return VRP@K of each retrieval: verified entries among K slots, over K.

    Formula:
        VRP@K = (verified entries among the first K) / K; an empty slot is unverified
    Shapes: verified (probes, returned); result (probes,). Units: a share.
    Missing: none. Errors: ScoringError unless K >= 1 and the table is 2-D.
    Source: [S] eq 33 of the AAI paper; `suites.md` section 7.

    >>> verified_precision(np.array([[True, True, False]]), 5)
    array([0.4])
    """
    if slots < 1 or verified.ndim != 2:
        raise ScoringError(
            f"VRP needs K >= 1 and a table of slots, got {slots}, {verified.shape}."
        )
    share: Floats = verified[:, :slots].sum(axis=1) / float(slots)
    return share


def hallucination(contrary: Floats, returned: Integers) -> Floats:
    """Return HR of each retrieval: the share of what was returned that is false.

    Formula:
        HR@K = returned entries whose source does not exist or says the contrary,
        over the returned entries (so HR is not 1 - VRP)
    Shapes: two arrays (probes,). Units: a share.
    Missing: NaN where nothing was returned or nobody checked.
    Errors: ScoringError if a count lies outside [0, returned].
    Source: [S] eq 33 of the AAI paper; `suites.md` section 7.

    >>> hallucination(np.array([1.0, np.nan]), np.array([4, 4]))
    array([0.25,  nan])
    """
    if contrary.shape != returned.shape:
        raise ScoringError(f"Probes differ: {contrary.shape} and {returned.shape}.")
    known = ~np.isnan(contrary)
    if ((contrary < 0) | (contrary > returned))[known].any():
        raise ScoringError("Contrary entries must be among the returned ones.")
    return np.divide(
        contrary, returned, out=np.full_like(contrary, np.nan), where=returned > 0
    )


def span(
    lengths: Integers, correct: Flags, seeds: Integers, accuracy: float, trials: int
) -> float:
    """Return WM-span: the largest list length that is answered, median over seeds.

    Formula:
        per seed: largest n up to which every length has accuracy >= .75 (>= 40
        trials each over all seeds); then the median over seeds
    Shapes: three arrays (trials,). Units: items.
    Missing: NaN where no length has enough trials; 0 where none is answered.
    Errors: ScoringError if shapes differ.
    Source: [S] eq 33 of the AAI paper; accuracy and trials [D].

    >>> n = np.repeat(np.arange(2, 6), 40)
    >>> span(n, n <= 4, np.zeros(160, dtype=int), 0.75, 40)
    4.0
    """
    if not lengths.shape == correct.shape == seeds.shape:
        raise ScoringError(
            f"Trials differ: {lengths.shape}, {correct.shape}, {seeds.shape}."
        )
    tested = [n for n in np.unique(lengths) if (lengths == n).sum() >= trials]
    if not tested:
        return float("nan")
    best = []
    for seed in np.unique(seeds):
        reached = 0
        for n in tested:
            here = (seeds == seed) & (lengths == n)
            if not here.any() or correct[here].mean() < accuracy:
                break
            reached = int(n)
        best.append(reached)
    return float(np.median(best))


class Cognition(NamedTuple):
    """What the cognitive gate reads; None: no evidence. `laid` names what was seen."""

    span: float | None
    laid: tuple[str, ...]


def lay_cognition(sample: Sample, ledger: Ledger) -> Cognition:
    """Lay VRP, HR and delayed recall; return the span, which has no weights."""
    table, probes, rules = sample.table, sample.table.probes, sample.protocol.memory
    kept = np.isin(probes.row, np.flatnonzero(sample.base))
    sought = kept & (probes.mode == "retrieve")
    false = hallucination(probes.contrary, probes.returned)
    late = kept & (probes.mode == "recall") & (probes.lag >= rules.delayed_days)
    wanted: Mapping[str, tuple[Floats, Flags]] = {
        VERIFIED: (verified_precision(probes.verified, rules.recall_at), sought),
        HALLUCINATED: (false, sought & ~np.isnan(false)),
        DELAYED: (probes.correct.astype(np.float64), late),
    }
    laid = []
    for name, (values, rows) in wanted.items():
        if rows.any():
            ledger.add(name, probes.row[rows], values[rows])
            ledger.add(f"{name}#", probes.row[rows], np.ones(int(rows.sum())))
            laid.append(name)
    trials = kept & (probes.mode == "span")
    if not trials.any():
        return Cognition(None, tuple(laid))
    held = _span(probes.span, probes.correct, table.repeat[probes.row], trials, rules)
    return Cognition(None if np.isnan(held) else held, tuple(laid))


def _span(
    lengths: Integers, correct: Flags, seeds: Integers, rows: Flags, rules: Rules
) -> float:
    return span(
        lengths[rows],
        correct[rows],
        seeds[rows],
        rules.span_accuracy,
        rules.span_trials,
    )


def cognition_statistics(sums: Totals, laid: Cognition) -> dict[str, Floats]:
    """Return each share over all probes, per resample."""
    found = {}
    for name in laid.laid:
        hits, tries = sums.sum(name).sum(axis=1), sums.sum(f"{name}#").sum(axis=1)
        found[name] = np.divide(
            hits, tries, out=np.full_like(hits, np.nan), where=tries > 0
        )
    return found
