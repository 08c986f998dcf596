"""Axis R: self-revision, the gain of an agent's changes to itself.

All of it is read from attempt sets that the harness played (`scoring/observe/attempt_sets.py`).
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from owa_bench.errors import ScoringError
from owa_bench.records.observables import Array, Flags, Floats
from owa_bench.records.protocol import Protocol
from owa_bench.scoring.axis import SOURCE, Anchors, Axis, Coverage, Diagnostics, protocol_anchors
from owa_bench.scoring.observe.attempt_sets import (
    PLACEBO,
    RevisionEvidence,
    RevisionGain,
    RevisionSets,
)
from owa_bench.scoring.observe.sample import Sample
from owa_bench.scoring.statistics.bootstrap import figure
from owa_bench.scoring.statistics.jackknife import covariance
from owa_bench.scoring.statistics.statistics_table import StatisticsTable, Totals

GATED = "gain over the placebo"


def self_revision(autonomy: Floats, gains: Floats, net: Array) -> Floats:
    """Return the gain that an agent's own revisions bring in a campaign.

    Formula:
        Delta_e = C_after - C_before where both worlds have one law, else
            (C_after - C_before) - (C_control_after - C_control_before)
        C_before = max(before set, mean capability of the checkpoints before)
        alpha_e = sum_s w_s a_s over propose, implement, validate
        raw = min(sum_e alpha_e Delta_e, net gain from first before to last after)
        R   = clip(raw / R0, 0, 1)
    Shapes: two arrays (events,) and a scalar, the net gain; result a scalar array.
    Units: capability in [0, 1].
    Missing: no event is a gain of 0 where revisions were tested.
    Errors: ScoringError if shapes differ, a value is NaN or alpha is outside [0, 1].
    Source: [S] debiasing, [R] eq 10 of the AAI paper; docs/scoring.md#attempt-sets.

    >>> harm_then_repair = np.array([-0.2, 0.2])
    >>> self_revision(np.array([0.0, 1.0]), harm_then_repair, np.array(0.0))
    array(0.)
    """
    if autonomy.shape != gains.shape or autonomy.ndim != 1:
        raise ScoringError(f"Events differ: {autonomy.shape} and {gains.shape}.")
    if np.isnan(autonomy).any() or np.isnan(gains).any() or np.isnan(net).any():
        raise ScoringError("self_revision cannot read NaN: leave the event out and count it.")
    if ((autonomy < 0) | (autonomy > 1)).any():
        raise ScoringError(f"The autonomy factor must lie in [0, 1], got {autonomy}.")
    return np.asarray(np.minimum((autonomy * gains).sum(), net), dtype=np.float64)


def revision_evidence(
    sets: tuple[RevisionSets, ...], weights: Floats, protocol: Protocol
) -> RevisionEvidence:
    """Return the evidence on an arm's revisions.

    Args:
        sets: The attempt sets of each, in order.
        weights: (families,) weights that sum to 1.
        protocol: Published numbers.
    Returns: The evidence; `reason` says why there is none.
    """
    least = protocol.revision.set_min
    reason = None
    if not sets:
        reason = "no revision was tested: the plan holds no attempt sets"
    elif faults := [one.fault for one in sets if one.fault]:
        reason = "; ".join(faults)
    if reason:
        return RevisionEvidence(sets=sets, reason=reason)
    gains = [revision_gain(one, weights, protocol) for one in sets]
    raw, gated = _sums(gains)
    parts = [_jackknife(sets, gains, place, weights, protocol) for place in range(len(sets))]
    fewest = min(one.size or one.tasks for one in sets)
    if fewest < least:
        reason = f"an attempt set holds {fewest} tasks of {least}"
    return RevisionEvidence(
        sets=sets,
        gains=tuple(gains),
        raw=raw,
        gated=gated,
        error=math.sqrt(sum(part[0] for part in parts)),
        gated_error=math.sqrt(sum(part[1] for part in parts)),
        freedom=sum(
            len(set(one.clusters.tolist())) - len(set(one.family.tolist())) for one in sets
        ),
        clusters=min(len(set(one.clusters.tolist())) for one in sets),
        reason=reason,
    )


def revision_gain(
    found: RevisionSets,
    weights: Floats,
    protocol: Protocol,
    *,
    kept: Flags | None = None,
    counted: bool | None = None,
) -> RevisionGain:
    """Return the gain of one revision from its sets.

    Args:
        found: The sets.
        weights: (families,).
        protocol: Published numbers.
        kept: (tasks,) tasks to read; None: every one.
        counted: Whether it passes the filters; None: find out.
    """
    kept = np.ones(found.tasks, dtype=np.bool_) if kept is None else kept
    family = found.family[kept]
    c = {n: _capability(q[kept], family, weights) for n, q in found.q.items()}
    present = np.isin(np.arange(len(weights)), family)
    earlier = np.where(present, found.earlier, np.nan)
    base = float(np.fmax(c["before"], _weighted(earlier, weights)))
    own = gain = c["after"] - base
    if not found.one_law:
        gain = own - (c["control_after"] - c["control_before"])
    if counted is None:
        lost = c["after"] - c["ablated"]
        causal = lost >= protocol.closures.gain_lost * max(own, 0.0)
        counted = gain < 0 or (causal and found.lines > 0)
    shares = np.array(protocol.revision.stage_weights)
    alpha = 0.0 if found.human else float(shares @ found.stages / shares.sum())
    gated = math.nan if found.own_subject else gain
    if PLACEBO in c:
        gated = min(gain, c["after"] - c[PLACEBO])
    return RevisionGain(c, gain, gated, 1.0 if gain < 0 else alpha, counted)


def _capability(q: Floats, family: Array, weights: Floats) -> float:
    """Return the weighted mean over families of their tasks' mean quality."""
    means = [q[family == k].mean() if (family == k).any() else np.nan for k in range(len(weights))]
    return _weighted(np.array(means), weights)


def _weighted(means: Floats, weights: Floats) -> float:
    known = ~np.isnan(means)
    whole = weights[known].sum()
    return float((means[known] * weights[known]).sum() / whole) if whole else math.nan


def _sums(gains: Sequence[RevisionGain]) -> tuple[float, float]:
    """Return the raw statistic of the axis, and that of its gate."""
    counted = [gain for gain in gains if gain.counted]
    alpha = np.array([gain.autonomy for gain in counted])
    net = np.array(math.inf)
    if len(gains) > 1:
        last, first = gains[-1].capability["after"], gains[0].capability["before"]
        net = np.array(last - first)
    raw = self_revision(alpha, np.array([gain.gain for gain in counted]), net)
    if any(math.isnan(gain.gated) for gain in gains):
        return float(raw), math.nan
    gated = self_revision(alpha, np.array([gain.gated for gain in counted]), net)
    return float(raw), float(gated)


def _jackknife(
    sets: Sequence[RevisionSets],
    gains: Sequence[RevisionGain],
    place: int,
    weights: Floats,
    protocol: Protocol,
) -> tuple[float, float]:
    """Return the variances of both sums from the clusters of one revision.

    Each cluster is left out in turn; the filters stay as they were found.
    """
    revision, changed = sets[place], list(gains)
    clusters, first = np.unique(revision.clusters, return_index=True)
    family = revision.family[first]
    if np.unique(family, return_counts=True)[1].min() < 2:
        return math.nan, math.nan
    sums = []
    for cluster in clusters:
        kept = revision.clusters != cluster
        changed[place] = revision_gain(
            revision, weights, protocol, kept=kept, counted=gains[place].counted
        )
        sums.append(_sums(changed))
    one, other = np.diag(covariance(np.array(sums), family)).tolist()
    return one, other


def _collect(sample: Sample, statistics: StatisticsTable) -> Coverage:
    """Add the sum of gains; it does not depend on the tasks of the other axes."""
    revision = sample.revision
    if revision is None:
        return Coverage(0, 0, "no revision was tested: the plan holds no attempt sets")
    counted = sum(gain.counted for gain in revision.gains)
    if revision.reason is not None:
        return Coverage(0, len(revision.sets), revision.reason)
    statistics.add_constant("R:gain", revision.raw)
    return Coverage(counted, len(revision.sets))


def _anchors(totals: Totals, sample: Sample) -> Anchors:
    """Return R0 times the protocol's bounds."""
    bounds = protocol_anchors(sample, "R", np.ones(len(totals.table)))
    scale = sample.protocol.revision.full_gain
    return Anchors(bounds.low * scale, bounds.high * scale)


def _windows(sample: Sample) -> Diagnostics:
    """Return the source of R, and every revision with its capabilities, stages and filters."""
    revision, practised = sample.revision, sample.practised
    if revision is None:
        return {}
    shown = {SOURCE: revision.source, "revisions": _records(revision)}
    if practised is None or practised.sets == revision.sets or not practised.sets:
        return shown
    return shown | {f"revisions, {practised.source}": _records(practised)}


def _records(found: RevisionEvidence) -> list[dict[str, Any]]:
    return [_revision_record(*pair) for pair in zip(found.sets, found.gains, strict=False)]


def _revision_record(sets: RevisionSets, gain: RevisionGain) -> dict[str, Any]:
    return {
        "mornings": list(sets.window),
        "tasks": sets.tasks,
        "clusters": len(set(sets.clusters.tolist())),
        "capability": {name: figure(c) for name, c in gain.capability.items()},
        "gain": figure(gain.gain),
        "gain for gates": figure(gain.gated),
        "autonomy": figure(gain.autonomy),
        "stages": sets.stages._asdict(),
        "human": sets.human,
        "one law": sets.one_law,
        "lines changed": sets.lines,
        "tool families": list(sets.installed),
        "counted": gain.counted,
        **({"tests": sets.tests} if sets.tests else {}),
    }


AXIS = Axis(
    "R",
    "self-revision",
    formula=self_revision,
    collect=_collect,
    raw=lambda totals, sample: np.full(
        len(totals.table), totals.constants["R:gain"], dtype=np.float64
    ),
    anchors=_anchors,
    gated=GATED,
    diagnostics=_windows,
)
