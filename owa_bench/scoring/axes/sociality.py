"""Axis S: sociality, the gain of several roles over one, less coordination faults."""

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from owa_bench.errors import ScoringError
from owa_bench.records.observables import NEAR, NO_CAP, Array, Flags, Floats, Integers
from owa_bench.scoring.axis import (
    Axis,
    Coverage,
    Diagnostics,
    FloatsByName,
    calibrate,
    protocol_anchors,
)
from owa_bench.scoring.observe.references import reference_values
from owa_bench.scoring.observe.sample import Sample
from owa_bench.scoring.statistics.distributions import t_quantile
from owa_bench.scoring.statistics.statistics_table import StatisticsTable, Totals, weighted_totals

FAULTS = ("conflict", "loop", "chatter", "collapse")
_REFERENCE = 2  # roles of the crew that sets the chatter ceiling
_MESSAGES = "S:messages:"  # prefix of the constants: messages per action of a crew size
_TIE = 1e-9  # quality by which a crew that sends fewer messages is preferred
_MUTED = ":muted"
# How a crew works together, shares of sums: shown beside, never scored.
TOGETHER = {
    "asks that reach who knows": ("reached", "asks"),
    "asks answered": ("answered", "reached"),
    "facts told that were needed": ("news", "gives"),
    "calls refused": ("refused", "calls"),
    "manifests untrue": ("untrue", "handoffs"),
}
_ALONE, _ALONE_BASE = "S:alone", "S:alone base"  # one role: all rows, and base rows
_SOLO, _PARTNERS = "S:reference alone", "S:reference muted"
GATED_CREW = "S_net over references"  # what gates read
FloatsTuple = tuple[Floats, ...]


def lift(full: Floats, alone: Floats) -> Floats:
    """Return the share of the shortfall of one role that a crew removes.

    Formula:
        lift = clip((C_m* - C_1*) / (1 - C_1*), 0, 1)
        m* per family from one half of the seeds, C_m* on the other, halves swapped and
        averaged; C_1* = max(all episodes of one role, those among them that every axis
        reads, the best reference alone on the same instances); C pooled over a suite's
        families, then over suites
        S = N(lift - sum_j lambda_j mean(flag_j))
        S_net: max(C of the muted crew at m*, of the muted references, C_1*) for C_1*
    Shapes: (resamples,) each; result (resamples,).
    Units: capability in [0, 1]; a share of 1 - C_1*.
    Missing: NaN where a capability is; 0 where C_1* = 1. No evidence where the suite's
        references did not play, or where one role or the muted crew does worse than
        they do; gates have none where the protocol names no reference of the suite.
    Errors: ScoringError if shapes differ or capability lies outside [0, 1].
    Source: [S] lift, [R] estimator and penalty, eq 11 of the AAI paper; lambda [D];
        docs/scoring.md#axes.

    >>> lift(np.array([0.8, 1.0]), np.array([0.6, 1.0])).round(6)
    array([0.5, 0. ])
    """
    if full.shape != alone.shape:
        raise ScoringError(f"Crews differ: {full.shape}, {alone.shape}.")
    for values in (full, alone):
        known = values[~np.isnan(values)]
        if ((known < -_TIE) | (known > 1 + _TIE)).any():
            raise ScoringError("Capability must lie in [0, 1].")
    room = 1.0 - alone
    share = np.divide(full - alone, room, out=np.zeros_like(full), where=room > _TIE)
    return np.where(np.isnan(full + alone), np.nan, np.clip(share, 0.0, 1.0))


class _Best(NamedTuple):
    """Sizes of crews played, and m* as a place in them chosen on each half."""

    sizes: tuple[int, ...]
    places: tuple[Integers, Integers]


def _key(size: int, half: int, suffix: str = "") -> str:
    return f"S:{size}:{half}{suffix}"


def _rows(sample: Sample) -> Flags:
    """Return the scored rows under a ceiling on roles whose worlds can show a lift."""
    crew = sample.table.crew
    capped: Flags = sample.crews & (crew.cap != NO_CAP) & ~crew.no_lift
    return capped


def _sizes(sample: Sample, *, muted: bool = False) -> list[int]:
    """Return the crew sizes of more than one role that were played."""
    crew = sample.table.crew
    caps = np.unique(crew.cap[_rows(sample) & (crew.muted == muted)])
    return [int(m) for m in caps if m > 1]


def _collect(sample: Sample, statistics: StatisticsTable) -> Coverage:
    """Add quality and faults per crew size, muted or not, and half of the seeds."""
    table, crew, rows = sample.table, sample.table.crew, _rows(sample)
    cells, sizes = int(rows.sum()), _sizes(sample)
    alone = rows & (crew.cap == 1)
    bounds = {
        name: reference_values(sample, control, "q")
        for name, control in ((_SOLO, alone), (_PARTNERS, rows & crew.muted))
    }
    missing = _missing_reason(sample, rows, bounds)
    if missing:
        return Coverage(0, cells, missing)
    repeats = np.unique(table.repeat[rows])
    messages = crew.messages / np.maximum(table.steps, 1)
    for size in sizes:
        rate = messages[rows & (crew.cap == size) & ~crew.muted].mean()
        statistics.add_constant(f"{_MESSAGES}{size}", float(rate))
    halves, faults = np.searchsorted(repeats, table.repeat) % 2, _faults(sample)
    used = np.zeros(len(rows), dtype=np.bool_)
    cases = [(m, "") for m in sizes]
    cases += [(m, _MUTED) for m in _sizes(sample, muted=True)]
    for half in (0, 1):
        for size, suffix in cases:
            here = rows & (crew.cap == size) & (crew.muted == bool(suffix))
            here &= halves == half
            statistics.add_mean(_key(size, half, suffix), table.q, here)
            used |= here
            if not suffix:
                for name, flags in faults.items():
                    column = _key(size, half, f":{name}")
                    statistics.add_mean(column, flags.astype(float), here)
    whole = rows & (crew.cap > 1) & ~crew.muted
    for name in sorted({name for pair in TOGETHER.values() for name in pair}):
        counts = table.steps if name == "calls" else getattr(crew, name)
        values = counts[whole].astype(float)
        statistics.add_sum(f"S:{name}", np.flatnonzero(whole), values)
    statistics.add_mean(_ALONE, table.q, alone)
    statistics.add_mean(_ALONE_BASE, table.q, alone & ~crew.control)
    for name, control in ((_SOLO, alone), (_PARTNERS, rows & crew.muted)):
        bound = bounds[name]
        if control.any() and not np.isnan(bound[control]).any():
            statistics.add_mean(name, bound, control)
    return Coverage(int(used.sum()), cells, _no_room(sample, statistics))


def _missing_reason(sample: Sample, rows: Flags, bounds: Mapping[str, Floats]) -> str:
    """Return why crews of this run cannot be compared, "" if they can."""
    crew = sample.table.crew
    if not rows.any() and (sample.crews & crew.no_lift).any():
        return "the critical path of every world takes more than half of the time"
    if not rows.any() or not _sizes(sample):
        return "no crew of more than one role in this run"
    if not crew.channel[rows].any():
        declared = int(crew.declared[rows].sum())
        said = f": the agent declared {declared} messages" if declared else ""
        return f"no channel of the environment{said}"
    if gaps := sample.table.channel_gaps(rows):
        return f"a channel beside the crew's own is not ruled out: {gaps}"
    if not (rows & (crew.cap == 1)).any():
        return "no crew of one role at the same budget"
    if len(np.unique(sample.table.repeat[rows])) < 2:
        return "m* needs two repeats: one half chooses, one counts"
    return _idle_control(sample, rows) or _held_back(sample, rows, bounds)


def _held_back(sample: Sample, rows: Flags, bounds: Mapping[str, Floats]) -> str:
    """Return why a control is none beside the references, "" if it is one.

    A crew may do the same acts with wrong contents until it is spoken to: what the references reach
    there without a word says what one role, or a muted crew, can do.
    """
    table, crew = sample.table, sample.table.crew
    level = sample.protocol.statistics.gate_level
    suites = np.unique(table.suite[rows]).tolist()
    named = {suite: sample.protocol.references.get(suite, ()) for suite in suites}
    for name, control, bound in (
        ("one role", rows & (crew.cap == 1), bounds[_SOLO]),
        ("the muted crew", rows & crew.muted, bounds[_PARTNERS]),
    ):
        for suite, agents in named.items():
            own = control & (table.suite == suite)
            if not agents or not own.any():
                continue
            if np.isnan(bound[own]).any():
                known = " or ".join(agents)
                return f"no reference played the tasks of {name}: add --agent {known}"
            gaps = _task_gaps(table.q[own] - bound[own], table.pair[own])
            if upper_mean(gaps, level) < -_TIE:
                return (
                    f"{name} reaches {table.q[own].mean():.3f} and the references "
                    f"{bound[own].mean():.3f} on the same tasks: who holds back until "
                    "it is spoken to looks like this"
                )
    return ""


def _task_gaps(gaps: Floats, pairs: Array) -> Floats:
    """Return the mean gap of each task."""
    task = np.unique(pairs, return_inverse=True)[1].reshape(-1)
    means: Floats = np.bincount(task, weights=gaps) / np.bincount(task)
    return means


def upper_mean(values: Floats, level: float) -> float:
    """Return the one-sided upper bound of a mean by Student's t.

    Args:
        values: (tasks,).
        level: Of the bound.
    Returns: The bound; the value itself where there is one.

    >>> round(upper_mean(np.array([-0.3, -0.1]), 0.95), 6)
    0.431375
    """
    count = len(values)
    if count < 2:
        return float(values.mean())
    error = float(values.std(ddof=1)) / math.sqrt(count)
    return float(values.mean()) + t_quantile(level, count - 1) * error


def _no_room(sample: Sample, statistics: StatisticsTable) -> str | None:
    """Return why one role alone leaves too little to gain, None if it does not."""
    units = statistics.units
    weights = np.ones((1, len(units.task)))
    totals = weighted_totals(weights, statistics.columns(), units.unit_family, sample.weights)
    room = 1.0 - float(_pooled(totals, sample, _alone(totals))[0][0])
    least = sample.protocol.sociality.room_min
    if room < least:
        return f"no room: 1 - C_1* is {room:.3f}, at least {least:g} is needed"
    return None


def _idle_control(sample: Sample, rows: Flags) -> str:
    """Return why a control was not played, "" if all were.

    A control that fails after a small share of the full crew's actions, or of its answers that were
    new, says nothing of what one role, or a crew without messages, could have done. Both are
    counted per seat: seats act at the same time.
    """
    table, crew = sample.table, sample.table.crew
    least = sample.protocol.sociality.control_share
    controls = {"one role": crew.cap == 1, "the muted crew": crew.muted}
    full = rows & (crew.cap > 1) & ~crew.muted
    for name, control in controls.items():
        failed = rows & control & (table.u == 0)
        if failed.any() and full.any():
            for what, counts in (
                ("actions", table.steps / crew.seats),
                ("new answers", crew.answers / crew.seats),
            ):
                spent, whole = counts[failed].mean(), counts[full].mean()
                if spent < least * whole:
                    return (
                        f"control not played: {name} fails after {spent:.1f} {what} "
                        f"a seat, the full crew takes {whole:.1f}"
                    )
    return ""


def _faults(sample: Sample) -> Mapping[str, Flags]:
    """Return the four flags of every row."""
    crew, rules = sample.table.crew, sample.protocol.sociality
    tokens = crew.tokens / np.maximum(crew.verified, 1)
    reference = _rows(sample) & (crew.cap == _REFERENCE) & ~crew.muted
    usual = float(np.median(tokens[reference])) if reference.any() else 0.0
    alike = crew.same_words[:, min(rules.near_bits, NEAR - 1)]
    return {
        "conflict": crew.conflict,
        "loop": np.maximum(crew.idle, crew.cycle) >= rules.loop_turns,
        "chatter": tokens > max(rules.chatter_floor, usual),
        "collapse": np.maximum(crew.same, alike) >= rules.collapse_turns,
    }


def _best(totals: Totals) -> _Best:
    """Return the place of m* (resamples, families) chosen on each half.

    Of equally good sizes the one with fewer messages per action is chosen.
    """
    messages = {
        int(name.removeprefix(_MESSAGES)): value
        for name, value in totals.constants.items()
        if name.startswith(_MESSAGES)
    }
    sizes = tuple(sorted(messages))
    rank = np.argsort(np.argsort([messages[m] for m in sizes], kind="stable"))
    places = []
    for half in (0, 1):
        quality = np.stack([totals.mean(_key(m, half)) for m in sizes], axis=2)
        ranked = np.where(np.isnan(quality), -np.inf, quality - _TIE * rank)
        places.append(np.argmax(ranked, axis=2))
    return _Best(sizes, (places[0], places[1]))


def _at_best(totals: Totals, best: _Best, half: int, suffix: str = "") -> Floats:
    """Return a statistic of one half at the m* that the other half chose."""
    missing = np.full(totals.table.shape[:2], np.nan)
    keys = [_key(size, half, suffix) for size in best.sizes]
    sizes = [totals.mean(key) if key in totals.names else missing for key in keys]
    table, place = np.stack(sizes, axis=2), best.places[1 - half]
    chosen: Floats = np.take_along_axis(table, place[:, :, None], axis=2)[:, :, 0]
    return chosen


def _alone(totals: Totals) -> FloatsTuple:
    """Return C of one role (resamples, families): all, base rows, the references'."""
    every, base = totals.mean(_ALONE), totals.mean(_ALONE_BASE)
    own = every, np.where(np.isnan(base), every, base)
    return (*own, totals.mean(_SOLO)) if _SOLO in totals.names else own


def _pooled(totals: Totals, sample: Sample, *rivals: FloatsTuple) -> list[Floats]:
    """Return, for each tuple of capabilities per family, the greatest of a suite's.

    Args:
        totals: Weighted sums.
        sample: The sample; its families are named "suite/family".
        rivals: Tuples of (resamples, families). A family that one of them lacks (NaN) is left out
            everywhere.
    Returns: (resamples,) for each tuple: the greatest mean of each suite, averaged over suites by
        their weight; NaN where no family is left.
    """
    known = ~np.isnan(sum(values for group in rivals for values in group))
    suites = np.array([name.partition("/")[0] for name in sample.families])
    sums = [np.zeros(len(known)) for _ in rivals]
    whole = np.zeros(len(known))
    for suite in np.unique(suites):
        weights = np.where(known & (suites == suite), totals.family_weights, 0.0)
        whole += weights.sum(axis=1)
        for total, group in zip(sums, rivals, strict=True):
            parts = [np.where(known, v, 0.0) * weights for v in group]
            total += np.max([part.sum(axis=1) for part in parts], axis=0)
    nothing = np.full_like(whole, np.nan)
    return [np.divide(t, whole, out=nothing.copy(), where=whole > 0) for t in sums]


def _lift(totals: Totals, sample: Sample, best: _Best, *, net: bool) -> Floats:
    """Return the lift over one role, or over it and the muted crew."""
    full = _halved(totals, best)
    alone: FloatsTuple = _alone(totals)
    if net:
        alone = (*alone, _halved(totals, best, _MUTED))
        if _PARTNERS in totals.names:
            alone = (*alone, totals.mean(_PARTNERS))
    return lift(*_pooled(totals, sample, (full,), alone))


def _halved(totals: Totals, best: _Best, suffix: str = "") -> Floats:
    """Return a statistic at m*, averaged over both halves."""
    halves = [_at_best(totals, best, half, suffix) for half in (0, 1)]
    return (halves[0] + halves[1]) / 2


def _fault_shares(totals: Totals, best: _Best) -> dict[str, Floats]:
    """Return the share of the best crew's episodes that have each fault."""
    return {name: totals.overall(_halved(totals, best, f":{name}")) for name in FAULTS}


def _reduced(gain: Floats, shares: FloatsByName, sample: Sample) -> Floats:
    """Return a lift less the penalty of the faults, 0 at least."""
    penalty = sample.protocol.sociality.penalty * np.sum(list(shares.values()), axis=0)
    reduced: Floats = np.maximum(0.0, gain - penalty)
    return reduced


def _raw(totals: Totals, sample: Sample) -> Floats:
    best = _best(totals)
    whole = _lift(totals, sample, best, net=False)
    return _reduced(whole, _fault_shares(totals, best), sample)


def _secondary(totals: Totals, sample: Sample) -> FloatsByName:
    """Return S_net, both lifts, each fault's share and how the crew worked together."""
    best = _best(totals)
    whole, shares = _lift(totals, sample, best, net=False), _fault_shares(totals, best)
    net = np.minimum(whole, _lift(totals, sample, best, net=True))
    together = {
        name: _share(totals.pooled(f"S:{part}"), totals.pooled(f"S:{all_}"))
        for name, (part, all_) in TOGETHER.items()
    }
    bounds = protocol_anchors(sample, "S", np.ones(len(totals.table)))
    gain = calibrate(_reduced(net, shares, sample), bounds)
    bounded = {_SOLO, _PARTNERS} <= totals.names.keys()
    return {
        "S_net": gain,
        GATED_CREW: gain if bounded else np.full_like(gain, np.nan),
        "lift": whole,
        "lift over the muted crew": net,
        **shares,
        **together,
    }


def _share(part: Floats, whole: Floats) -> Floats:
    """Return a share of sums, NaN where there is nothing to share."""
    nothing = np.full_like(whole, np.nan)
    return np.divide(part, whole, out=nothing, where=whole > 0)


def _diagnostics(sample: Sample) -> Diagnostics:
    """Return the per-task estimate, which is biased upwards, and the crews played."""
    table, crew = sample.table, sample.table.crew
    rows = _rows(sample) & ~crew.muted
    gains = []
    for pair in np.unique(table.pair[rows]):
        here = rows & (table.pair == pair)
        sizes = [m for m in np.unique(crew.cap[here]) if m > 1]
        means = [table.q[here & (crew.cap == m)].mean() for m in sizes]
        one = here & (crew.cap == 1)
        if means and one.any():
            alone = float(table.q[one].mean())
            room = 1 - alone
            gains.append(max(0.0, max(means) - alone) / room if room > 0 else 0.0)
    return {
        "lift_naive": float(np.mean(gains)) if gains else None,
        "C_m by tier": _by_tier(sample),
        "roles played": [1, *_sizes(sample)],
        "messages declared": int(crew.declared[_rows(sample)].sum()),
    }


def _by_tier(sample: Sample) -> dict[str, dict[str, float]]:
    """Return C_m beside C*_m, by tier and crew size; of the muted crew too."""
    table, crew, rows = sample.table, sample.table.crew, _rows(sample)
    tiers: dict[str, dict[str, float]] = {}
    for tier in np.unique(table.tier[rows]).tolist():
        row = tiers.setdefault(str(tier), {})
        for size in (1, *_sizes(sample)):
            for suffix in ("", _MUTED):
                here = rows & (table.tier == tier) & (crew.cap == size)
                here &= crew.muted == bool(suffix)
                if not here.any():
                    continue
                row[f"{size}{suffix}"] = float(table.q[here].mean())
                if not suffix and not np.isnan(crew.bound[here]).any():
                    row[f"{size} bound"] = float(crew.bound[here].mean())
    return tiers


AXIS = Axis(
    "S",
    "sociality",
    formula=lift,
    collect=_collect,
    raw=_raw,
    secondary=_secondary,
    gated=GATED_CREW,
    diagnostics=_diagnostics,
)
