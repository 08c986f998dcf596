"""Axis R: what an agent gains by changing itself, control and harm taken off."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from owa_bench.errors import ScoringError
from owa_bench.records.observables import Array, Flags, Floats
from owa_bench.scoring.axis import Anchors, Laid, Sample, bounds, calibrate
from owa_bench.scoring.cells import Ledger, Totals

# [S] What a revision must have passed to count.
FILTERS = (
    "matched_holdout",
    "resource_parity",
    "logged",
    "no_human_labels",
    "ablation",
)
_BEFORE, _AFTER, _CONTROL_BEFORE, _CONTROL_AFTER, _ABLATED = range(5)


def self_revision(autonomy: Floats, gains: Floats, net: Array) -> Floats:
    """Return the debiased gain that an agent's own revisions bring in a window.

    Formula:
        Delta_e = (C_after - C_before) - (C_control_after - C_control_before)
        alpha_e = sum_s w_s a_s over propose, implement, validate
        raw = min(sum_e alpha_e Delta_e, net debiased gain of the window)
        R   = clip(raw / R0, 0, 1)
    Shapes: two arrays (events,) and a scalar, the net gain; result a scalar array.
    Units: capability in [0, 1].
    Missing: no event is a gain of 0 where revisions were possible.
    Errors: ScoringError if shapes differ, a value is NaN or alpha is outside [0, 1].
    Source: [S] debiasing, [R] eq 10 of the AAI paper; R0 and w [D].

    >>> harm_then_repair = np.array([-0.2, 0.2])
    >>> self_revision(np.array([0.0, 1.0]), harm_then_repair, np.array(0.0))
    array(0.)
    """
    if autonomy.shape != gains.shape or autonomy.ndim != 1:
        raise ScoringError(f"Events differ: {autonomy.shape} and {gains.shape}.")
    if np.isnan(autonomy).any() or np.isnan(gains).any() or np.isnan(net).any():
        raise ScoringError(
            "self_revision cannot read NaN: leave the event out and count it."
        )
    if ((autonomy < 0) | (autonomy > 1)).any():
        raise ScoringError(f"The autonomy factor must lie in [0, 1], got {autonomy}.")
    return np.asarray(np.minimum((autonomy * gains).sum(), net), dtype=np.float64)


def debiased(capability: Floats) -> Floats:
    """Return Delta_e of capabilities (events, 5), NaN where one is not confirmed.

    >>> debiased(np.array([[0.4, 0.6, 0.4, 0.45, 0.4]])).round(6)
    array([0.15])
    """
    if capability.ndim != 2 or capability.shape[1] < 4:
        raise ScoringError(
            f"A revision has four capabilities at least, got {capability.shape}."
        )
    own = capability[:, _AFTER] - capability[:, _BEFORE]
    control = capability[:, _CONTROL_AFTER] - capability[:, _CONTROL_BEFORE]
    gain: Floats = own - control
    return gain


class SelfRevision:
    """R of the AAI scale: the mean over windows; a window is one episode."""

    name = "self-revision"
    symbol = "R"
    formula = staticmethod(self_revision)
    amounts: tuple[str, ...] = ("debiased gain a window",)

    def lay(self, sample: Sample, ledger: Ledger) -> Laid:
        """Lay each window's capped gain over the families that hold revisions."""
        table, events = sample.table, sample.table.revisions
        held = self._held(sample)
        if not held.any():
            return Laid(0, 0, "no confirmed self-revision in this run")
        confirmed = held & self._confirmed(sample)
        adopted = held & (events.decision == "adopted")
        if adopted.any() and not (adopted & confirmed).any():
            count = int(adopted.sum())
            why = f"{count} revisions adopted, none confirmed with a control"
            return Laid(0, count, why)
        families = np.unique(table.family[events.row[held]])
        windows = sample.base & np.isin(table.family, families)
        ledger.mean("R", self._windows(sample), windows)
        return Laid(int((adopted & self._counted(sample)).sum()), int(adopted.sum()))

    def _held(self, sample: Sample) -> Flags:
        """Return which events lie in a row that the axis rests on.

        Checkpoints run on a throw-away copy: what is revised there is lost.
        """
        kept = sample.base & (sample.table.phase != "checkpoint")
        held: Flags = kept[sample.table.revisions.row]
        return held

    def _confirmed(self, sample: Sample) -> Flags:
        """Return which events carry all four capabilities."""
        unknown = np.isnan(sample.table.revisions.capability[:, :4]).sum(axis=1)
        known: Flags = unknown == 0
        return known

    def _counted(self, sample: Sample) -> Flags:
        """Return which events pass the filters; harm needs none to count.

        The ablation must take its share of the gain away again.
        """
        events, share = sample.table.revisions, sample.protocol.closures.gain_lost
        cap = events.capability
        passed = np.array(
            [set(FILTERS) <= set(names) for names in events.filters], dtype=np.bool_
        )
        own = cap[:, _AFTER] - cap[:, _BEFORE]
        lost = cap[:, _AFTER] - cap[:, _ABLATED]
        with np.errstate(invalid="ignore"):
            causal = np.nan_to_num(lost, nan=-1.0) >= share * np.maximum(own, 0.0)
            harmful = debiased(cap) < 0
        adopted: Flags = events.decision == "adopted"
        kept: Flags = adopted & self._confirmed(sample) & ((passed & causal) | harmful)
        return kept

    def _windows(self, sample: Sample) -> Floats:
        """Return every episode's raw statistic, 0 without a counted event."""
        events = sample.table.revisions
        weights = np.array(sample.protocol.revision.stage_weights)
        alpha = events.fractions @ (weights / weights.sum())
        gains, counted = debiased(events.capability), self._counted(sample)
        alpha, known = np.where(gains < 0, 1.0, alpha), self._confirmed(sample)
        found = np.zeros(len(sample.table))
        order = np.argsort(events.row, kind="stable")
        rows, starts = np.unique(events.row[order], return_index=True)
        for row, here in zip(rows, np.split(order, starts[1:]), strict=True):
            net = self._net(events.capability[here[known[here]]])
            kept = here[counted[here]]
            found[row] = float(self_revision(alpha[kept], gains[kept], net))
        return found

    def _net(self, capability: Floats) -> Floats:
        """Return the window's net debiased gain, from first before to last after."""
        if not len(capability):
            return np.zeros(())
        first, last = capability[0], capability[-1]
        own = last[_AFTER] - first[_BEFORE]
        control = last[_CONTROL_AFTER] - first[_CONTROL_BEFORE]
        return np.asarray(own - control, dtype=np.float64)

    def raw(self, totals: Totals, sample: Sample) -> Floats:
        """Return the mean over windows."""
        return totals.overall(totals.mean("R"))

    def anchors(self, totals: Totals, sample: Sample) -> Anchors:
        """R0 times the protocol's bounds."""
        whole = bounds(sample, self.symbol, np.ones(len(totals.table)))
        scale = sample.protocol.revision.full_gain
        return Anchors(whole.low * scale, whole.high * scale)

    def value(self, raw: Floats, anchors: Anchors) -> Floats:
        """Return clip(raw / R0, 0, 1)."""
        return calibrate(raw, anchors)

    def beside(self, totals: Totals, sample: Sample) -> Mapping[str, Floats]:
        """Return the mean debiased gain of a window, in capability."""
        return {"debiased gain a window": totals.overall(totals.mean("R"))}

    def details(self, sample: Sample) -> Mapping[str, Any]:
        """Count events by decision and what filters they lack."""
        events = sample.table.revisions
        names, counts = np.unique(events.decision, return_counts=True)
        adopted = events.decision == "adopted"
        return {
            "decisions": dict(zip(names.tolist(), counts.tolist(), strict=True)),
            "adopted that lack a filter": {
                name: sum(name not in held for held in events.filters[adopted])
                for name in FILTERS
            },
        }


AXIS = SelfRevision()
