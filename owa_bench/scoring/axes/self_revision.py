"""Axis R: self-revision, the debiased gain of an agent's changes to itself."""

import numpy as np

from owa_bench.errors import ScoringError
from owa_bench.records.observables import Array, Flags, Floats
from owa_bench.scoring.axis import (
    Anchors,
    Axis,
    Coverage,
    Diagnostics,
    protocol_anchors,
)
from owa_bench.scoring.sample import Sample
from owa_bench.scoring.statistics_table import StatisticsTable, Totals

# [S] Checks that a revision must have passed to count.
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
    """Return Delta_e, the gain of an event less that of its control.

    Args:
        capability: (events, 4 or 5) before, after, control before, control after.

    Returns:
        (events,), NaN where a capability is not confirmed.

    Raises:
        ScoringError: There are fewer than four capabilities.

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


def _collect(sample: Sample, statistics: StatisticsTable) -> Coverage:
    """Add the capped gain of each window: an episode of a family with revisions."""
    table, events = sample.table, sample.table.revisions
    # Checkpoints run on a copy that is discarded: revisions there are lost.
    scored: Flags = (sample.base & (table.phase != "checkpoint"))[events.row]
    if not scored.any():
        return Coverage(0, 0, "no confirmed self-revision in this run")
    adopted = scored & (events.decision == "adopted")
    if adopted.any() and not (adopted & _confirmed(sample)).any():
        count = int(adopted.sum())
        why = f"{count} revisions adopted, none confirmed with a control"
        return Coverage(0, count, why)
    families = np.unique(table.family[events.row[scored]])
    windows = sample.base & np.isin(table.family, families)
    statistics.add_mean("R:gain", _window_gains(sample), windows)
    return Coverage(int((adopted & _counted(sample)).sum()), int(adopted.sum()))


def _confirmed(sample: Sample) -> Flags:
    """Return which events have all four capabilities."""
    unknown = np.isnan(sample.table.revisions.capability[:, :4])
    known: Flags = unknown.sum(axis=1) == 0
    return known


def _counted(sample: Sample) -> Flags:
    """Return which events pass the filters; a harmful one needs none to count.

    The ablation must remove its share of the gain.
    """
    events, share = sample.table.revisions, sample.protocol.closures.gain_lost
    capability = events.capability
    passed = np.array(
        [set(FILTERS) <= set(names) for names in events.filters], dtype=np.bool_
    )
    own = capability[:, _AFTER] - capability[:, _BEFORE]
    lost = capability[:, _AFTER] - capability[:, _ABLATED]
    with np.errstate(invalid="ignore"):
        causal = np.nan_to_num(lost, nan=-1.0) >= share * np.maximum(own, 0.0)
        harmful = debiased(capability) < 0
    adopted: Flags = events.decision == "adopted"
    counted: Flags = adopted & _confirmed(sample) & ((passed & causal) | harmful)
    return counted


def _window_gains(sample: Sample) -> Floats:
    """Return every episode's raw statistic, 0 without a counted event."""
    events = sample.table.revisions
    weights = np.array(sample.protocol.revision.stage_weights)
    alpha = events.fractions @ (weights / weights.sum())
    gains, counted = debiased(events.capability), _counted(sample)
    alpha, known = np.where(gains < 0, 1.0, alpha), _confirmed(sample)
    raw = np.zeros(len(sample.table))
    order = np.argsort(events.row, kind="stable")
    rows, starts = np.unique(events.row[order], return_index=True)
    for row, here in zip(rows, np.split(order, starts[1:]), strict=True):
        net = _net_gain(events.capability[here[known[here]]])
        own = here[counted[here]]
        raw[row] = float(self_revision(alpha[own], gains[own], net))
    return raw


def _net_gain(capability: Floats) -> Floats:
    """Return a window's debiased gain, from the first before to the last after."""
    if not len(capability):
        return np.zeros(())
    first, last = capability[0], capability[-1]
    own = last[_AFTER] - first[_BEFORE]
    control = last[_CONTROL_AFTER] - first[_CONTROL_BEFORE]
    return np.asarray(own - control, dtype=np.float64)


def _anchors(totals: Totals, sample: Sample) -> Anchors:
    """Return R0 times the protocol's bounds."""
    bounds = protocol_anchors(sample, "R", np.ones(len(totals.table)))
    scale = sample.protocol.revision.full_gain
    return Anchors(bounds.low * scale, bounds.high * scale)


def _events(sample: Sample) -> Diagnostics:
    """Return the numbers of events by decision, and by the filter that they lack."""
    events = sample.table.revisions
    names, counts = np.unique(events.decision, return_counts=True)
    adopted = events.decision == "adopted"
    return {
        "decisions": dict(zip(names.tolist(), counts.tolist(), strict=True)),
        "adopted that lack a filter": {
            name: sum(name not in passed for passed in events.filters[adopted])
            for name in FILTERS
        },
    }


AXIS = Axis(
    "R",
    "self-revision",
    formula=self_revision,
    collect=_collect,
    raw=lambda totals, sample: totals.overall_mean("R:gain"),
    anchors=_anchors,
    secondary=lambda totals, sample: {
        "debiased gain a window": totals.overall_mean("R:gain")
    },
    amounts=("debiased gain a window",),
    diagnostics=_events,
)
