"""Axis S: sociality, the gain of several roles over one, less coordination faults."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from owa_bench.errors import ScoringError
from owa_bench.records.observables import NEAR, NO_CAP, Flags, Floats, Integers
from owa_bench.scoring.axis import (
    Axis,
    Coverage,
    Diagnostics,
    FloatsByName,
    calibrate,
    protocol_anchors,
)
from owa_bench.scoring.sample import Sample
from owa_bench.scoring.statistics_table import StatisticsTable, Totals

FAULTS = ("conflict", "loop", "chatter", "collapse")
_REFERENCE = 2  # roles of the crew that sets the chatter ceiling
_MESSAGES = "S:messages:"  # prefix of the constants: messages per action of a crew size
_CONTROL_SHARE = 0.5  # least share of the full crew's actions, if a control fails [D]
_TIE = 1e-9  # quality by which a crew that sends fewer messages is preferred
_MUTED = ":muted"


def lift(chosen: Floats, alone: Floats, weights: Floats) -> Floats:
    """Return the share of the shortfall of one role that a crew removes.

    Formula:
        lift = max(0, sum_t w_t (C_m*(t) - C_1(t)) / sum_t w_t (1 - C_1(t)))
        m* per family from one half of the seeds, the ratio on the other, halves
        swapped and averaged; S = N(max(0, lift - sum_j lambda_j mean(flag_j)))
        S_net: the muted crew at m* in place of C_1
    Shapes: capability (resamples, families) twice, weights (families,); result
        (resamples,).
    Units: capability in [0, 1]; a share of 1 - C_1.
    Missing: a family that one side lacks (NaN) is left out; 0 where C_1 = 1.
    Errors: ScoringError if shapes do not fit or capability lies outside [0, 1].
    Source: [S] lift, [R] estimator and penalty, eq 11 of the AAI paper; lambda [D].

    >>> lift(np.array([[0.8, 1.0]]), np.array([[0.6, 1.0]]), np.ones(2)).round(6)
    array([0.5])
    """
    if chosen.shape != alone.shape or weights.shape != alone.shape[1:]:
        raise ScoringError(
            f"Crews differ: {chosen.shape}, {alone.shape}, {weights.shape}."
        )
    for values in (chosen, alone):
        known = values[~np.isnan(values)]
        if ((known < -_TIE) | (known > 1 + _TIE)).any():
            raise ScoringError("Capability must lie in [0, 1].")
    both = ~(np.isnan(chosen) | np.isnan(alone))
    gain = (np.where(both, chosen - alone, 0.0) * weights).sum(axis=1)
    room = (np.where(both, 1.0 - alone, 0.0) * weights).sum(axis=1)
    share = np.divide(gain, room, out=np.zeros_like(gain), where=room > _TIE)
    return np.where(both.any(axis=1), np.clip(share, 0.0, 1.0), np.nan)


class _Best(NamedTuple):
    """Sizes of crews played, and m* as a place in them chosen on each half."""

    sizes: tuple[int, ...]
    places: tuple[Integers, Integers]


def _key(size: int, half: int, suffix: str = "") -> str:
    return f"S:{size}:{half}{suffix}"


def _rows(sample: Sample) -> Flags:
    """Return the scored rows that were played under a ceiling on roles."""
    capped: Flags = sample.crews & (sample.table.crew.cap != NO_CAP)
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
    if not cells or not sizes:
        return Coverage(0, cells, "no crew of more than one role in this run")
    if not (rows & (crew.cap == 1)).any():
        return Coverage(0, cells, "no crew of one role at the same budget")
    idle = _idle_control(sample, rows)
    if idle:
        return Coverage(0, cells, idle)
    repeats = np.unique(table.repeat[rows])
    if len(repeats) < 2:
        return Coverage(0, cells, "m* needs two repeats: one half chooses, one counts")
    messages = crew.messages / np.maximum(table.steps, 1)
    for size in sizes:
        rate = messages[rows & (crew.cap == size) & ~crew.muted].mean()
        statistics.add_constant(f"{_MESSAGES}{size}", float(rate))
    halves, faults = np.searchsorted(repeats, table.repeat) % 2, _faults(sample)
    used = np.zeros(len(rows), dtype=np.bool_)
    cases = [(m, "") for m in (1, *sizes)]
    cases += [(m, _MUTED) for m in _sizes(sample, muted=True)]
    for half in (0, 1):
        for size, suffix in cases:
            here = rows & (crew.cap == size) & (crew.muted == bool(suffix))
            here &= halves == half
            statistics.add_mean(_key(size, half, suffix), table.q, here)
            used |= here
            if size > 1 and not suffix:
                for name, flags in faults.items():
                    column = _key(size, half, f":{name}")
                    statistics.add_mean(column, flags.astype(float), here)
    return Coverage(int(used.sum()), cells)


def _idle_control(sample: Sample, rows: Flags) -> str:
    """Return why a control was not played, "" if all were.

    A control that fails after less than half the actions of the full crew says nothing
    of what one role, or a crew without messages, could have done.
    """
    table, crew = sample.table, sample.table.crew
    controls = {"one role": crew.cap == 1, "the muted crew": crew.muted}
    full = rows & (crew.cap > 1) & ~crew.muted
    for name, control in controls.items():
        failed = rows & control & (table.u == 0)
        if failed.any() and full.any():
            spent, whole = table.steps[failed].mean(), table.steps[full].mean()
            if spent < _CONTROL_SHARE * whole:
                return (
                    f"control not played: {name} fails after {spent:.1f} actions, the "
                    f"full crew takes {whole:.1f}"
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


def _lift(totals: Totals, best: _Best, *, net: bool) -> Floats:
    """Return the lift over one role, or over the muted crew."""
    halves = []
    for half in (0, 1):
        alone = (
            _at_best(totals, best, half, _MUTED) if net else totals.mean(_key(1, half))
        )
        halves.append(lift(_at_best(totals, best, half), alone, totals.family_weights))
    return (halves[0] + halves[1]) / 2


def _fault_shares(totals: Totals, best: _Best) -> dict[str, Floats]:
    """Return the share of the best crew's episodes that have each fault."""
    shares = {}
    for name in FAULTS:
        halves = [_at_best(totals, best, half, f":{name}") for half in (0, 1)]
        shares[name] = (totals.overall(halves[0]) + totals.overall(halves[1])) / 2
    return shares


def _reduced(gain: Floats, shares: FloatsByName, sample: Sample) -> Floats:
    """Return a lift less the penalty of the faults, 0 at least."""
    penalty = sample.protocol.sociality.penalty * np.sum(list(shares.values()), axis=0)
    reduced: Floats = np.maximum(0.0, gain - penalty)
    return reduced


def _raw(totals: Totals, sample: Sample) -> Floats:
    best = _best(totals)
    return _reduced(_lift(totals, best, net=False), _fault_shares(totals, best), sample)


def _secondary(totals: Totals, sample: Sample) -> FloatsByName:
    """Return S_net, both lifts and each fault's share."""
    best = _best(totals)
    net, shares = _lift(totals, best, net=True), _fault_shares(totals, best)
    bounds = protocol_anchors(sample, "S", np.ones(len(totals.table)))
    return {
        "S_net": calibrate(_reduced(net, shares, sample), bounds),
        "lift": _lift(totals, best, net=False),
        "lift over the muted crew": net,
    } | shares


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
        "roles played": [1, *_sizes(sample)],
    }


AXIS = Axis(
    "S",
    "sociality",
    formula=lift,
    collect=_collect,
    raw=_raw,
    secondary=_secondary,
    gated="S_net",
    diagnostics=_diagnostics,
)
