"""Axis S: what several roles achieve beyond one, coordination's faults taken off."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from owa_bench.errors import ScoringError
from owa_bench.records.observables import NEAR, NO_CAP, Flags, Floats, Integers
from owa_bench.scoring.axis import Anchors, Laid, Sample, bounds, calibrate
from owa_bench.scoring.cells import Ledger, Totals

FAULTS = ("conflict", "loop", "chatter", "collapse")
_REFERENCE = 2  # roles of the crew that sets the chatter ceiling
_TALK = "S:talk:"  # messages per action of a size, by the ledger's constants
_TIE = 1e-9  # quality by which a crew that says less is preferred


def lift(chosen: Floats, alone: Floats, weights: Floats) -> Floats:
    """Return the share of the shortfall that a crew removes.

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
    held = ~(np.isnan(chosen) | np.isnan(alone))
    gain = (np.where(held, chosen - alone, 0.0) * weights).sum(axis=1)
    room = (np.where(held, 1.0 - alone, 0.0) * weights).sum(axis=1)
    share = np.divide(gain, room, out=np.zeros_like(gain), where=room > _TIE)
    return np.where(held.any(axis=1), np.clip(share, 0.0, 1.0), np.nan)


class _Best(NamedTuple):
    """Sizes of crews played, and m* as a place in them chosen on each half."""

    sizes: tuple[int, ...]
    places: tuple[Integers, Integers]


class Sociality:
    """S of the AAI scale."""

    name = "sociality"
    symbol = "S"
    formula = staticmethod(lift)
    amounts: tuple[str, ...] = ()
    gated = "S_net"

    def lay(self, sample: Sample, ledger: Ledger) -> Laid:
        """Lay quality and faults per number of roles, muted or not, and half."""
        crew, rows = sample.table.crew, self._rows(sample)
        cells, sizes = int(rows.sum()), self._sizes(sample)
        if not cells or not sizes:
            return Laid(0, cells, "no crew of more than one role in this run")
        if not (rows & (crew.cap == 1)).any():
            return Laid(0, cells, "no crew of one role at the same budget")
        if len(np.unique(sample.table.repeat[rows])) < 2:
            return Laid(0, cells, "m* needs two repeats: one half chooses, one counts")
        faults = self._faults(sample)
        used = np.zeros(len(rows), dtype=np.bool_)
        for size, talk in zip(sizes, self._talk(sample), strict=True):
            ledger.constant(f"{_TALK}{size}", talk)
        for half in (0, 1):
            for size, muted in self._cells(sample):
                here = rows & (crew.cap == size) & (crew.muted == muted)
                here &= self._half(sample) == half
                key = _key(size, half, muted=muted)
                ledger.mean(key, sample.table.q, here)
                used |= here
                if size > 1 and not muted:
                    for name, flags in faults.items():
                        ledger.mean(f"{key}:{name}", flags.astype(float), here)
        return Laid(int(used.sum()), cells)

    def _rows(self, sample: Sample) -> Flags:
        """Return the scored rows that were played under a ceiling on roles."""
        held: Flags = sample.crews & (sample.table.crew.cap != NO_CAP)
        return held

    def _sizes(self, sample: Sample) -> list[int]:
        crew = sample.table.crew
        caps = np.unique(crew.cap[self._rows(sample) & ~crew.muted])
        return [int(m) for m in caps if m > 1]

    def _cells(self, sample: Sample) -> list[tuple[int, bool]]:
        crew, rows = sample.table.crew, self._rows(sample)
        muted = np.unique(crew.cap[rows & crew.muted])
        sizes = [(m, False) for m in (1, *self._sizes(sample))]
        return sizes + [(int(m), True) for m in muted if m > 1]

    def _half(self, sample: Sample) -> Integers:
        """Return which half of the seeds a row belongs to, by rank of its repeat."""
        repeats = np.unique(sample.table.repeat[self._rows(sample)])
        rank = np.searchsorted(repeats, sample.table.repeat)
        half: Integers = rank % 2
        return half

    def _faults(self, sample: Sample) -> Mapping[str, Flags]:
        """Return the four flags of every row."""
        crew, rules = sample.table.crew, sample.protocol.sociality
        talk = crew.tokens / np.maximum(crew.verified, 1)
        reference = self._rows(sample) & (crew.cap == _REFERENCE) & ~crew.muted
        usual = float(np.median(talk[reference])) if reference.any() else 0.0
        alike = crew.same_words[:, min(rules.near_bits, NEAR - 1)]
        collapse = np.maximum(crew.same, alike)
        return {
            "conflict": crew.conflict,
            "loop": np.maximum(crew.idle, crew.cycle) >= rules.loop_turns,
            "chatter": talk > max(rules.chatter_floor, usual),
            "collapse": collapse >= rules.collapse_turns,
        }

    def _talk(self, sample: Sample) -> list[float]:
        """Return messages per action of each size, for ties."""
        crew, rows = sample.table.crew, self._rows(sample)
        per = crew.messages / np.maximum(sample.table.steps, 1)
        held = [rows & (crew.cap == m) & ~crew.muted for m in self._sizes(sample)]
        return [float(per[mask].mean()) for mask in held]

    def _best(self, totals: Totals) -> _Best:
        """Return the place of m* (resamples, families) chosen on each half."""
        talk = {
            int(name.removeprefix(_TALK)): value
            for name, value in totals.constants.items()
            if name.startswith(_TALK)
        }
        sizes = tuple(sorted(talk))
        order = np.argsort([talk[m] for m in sizes], kind="stable")
        silent = np.argsort(order)
        places = []
        for half in (0, 1):
            quality = np.stack([totals.mean(_key(m, half)) for m in sizes], axis=2)
            ranked = np.where(np.isnan(quality), -np.inf, quality - _TIE * silent)
            places.append(np.argmax(ranked, axis=2))
        return _Best(sizes, (places[0], places[1]))

    def _pick(self, totals: Totals, best: _Best, half: int, suffix: str = "") -> Floats:
        """Return a statistic of one half at the m* that the other half chose."""
        tables = [self._cell(totals, m, half, suffix) for m in best.sizes]
        table, place = np.stack(tables, axis=2), best.places[1 - half]
        found: Floats = np.take_along_axis(table, place[:, :, None], axis=2)[:, :, 0]
        return found

    def _cell(self, totals: Totals, size: int, half: int, suffix: str) -> Floats:
        key = _key(size, half, muted=suffix == ":muted")
        name = key if suffix == ":muted" else key + suffix
        if name in totals.names:
            return totals.mean(name)
        return np.full(totals.table.shape[:2], np.nan)

    def _lift(self, totals: Totals, best: _Best, *, net: bool) -> Floats:
        """Return the lift over one role, or over the muted crew."""
        halves = []
        for half in (0, 1):
            base = (
                self._pick(totals, best, half, ":muted")
                if net
                else totals.mean(_key(1, half))
            )
            chosen = self._pick(totals, best, half)
            halves.append(lift(chosen, base, totals.family_weights))
        return (halves[0] + halves[1]) / 2

    def _shares(self, totals: Totals, best: _Best) -> dict[str, Floats]:
        """Return how often each fault befell the best crew."""
        found = {}
        for name in FAULTS:
            halves = [self._pick(totals, best, half, f":{name}") for half in (0, 1)]
            found[name] = (totals.overall(halves[0]) + totals.overall(halves[1])) / 2
        return found

    def raw(self, totals: Totals, sample: Sample) -> Floats:
        """Return lift less penalty, 0 at least."""
        best = self._best(totals)
        whole = self._lift(totals, best, net=False)
        shares = list(self._shares(totals, best).values())
        taken: Floats = sample.protocol.sociality.penalty * np.sum(shares, axis=0)
        return np.maximum(0.0, whole - taken)

    def anchors(self, totals: Totals, sample: Sample) -> Anchors:
        """The protocol's bounds."""
        return bounds(sample, self.symbol, np.ones(len(totals.table)))

    def value(self, raw: Floats, anchors: Anchors) -> Floats:
        """Return N(raw)."""
        return calibrate(raw, anchors)

    def beside(self, totals: Totals, sample: Sample) -> Mapping[str, Floats]:
        """Return S_net, both lifts and each fault's share."""
        best = self._best(totals)
        net, shares = self._lift(totals, best, net=True), self._shares(totals, best)
        taken = sample.protocol.sociality.penalty * np.sum(
            list(shares.values()), axis=0
        )
        reduced = np.maximum(0.0, net - taken)
        return {
            "S_net": calibrate(reduced, self.anchors(totals, sample)),
            "lift": self._lift(totals, best, net=False),
            "lift over the muted crew": net,
        } | shares

    def details(self, sample: Sample) -> Mapping[str, Any]:
        """Return the per-task estimate, biased upwards, and the crews played."""
        table, rows = sample.table, self._rows(sample)
        crew = table.crew
        gains = []
        for pair in np.unique(table.pair[rows & ~crew.muted]):
            here = rows & ~crew.muted & (table.pair == pair)
            means = [
                table.q[here & (crew.cap == m)].mean()
                for m in np.unique(crew.cap[here])
                if m > 1
            ]
            one = here & (crew.cap == 1)
            if means and one.any():
                alone = float(table.q[one].mean())
                room = 1 - alone
                gains.append(max(0.0, max(means) - alone) / room if room > 0 else 0.0)
        return {
            "lift_naive": float(np.mean(gains)) if gains else None,
            "roles played": [1, *self._sizes(sample)],
        }


def _key(size: int, half: int, *, muted: bool = False) -> str:
    return f"S:{size}{':muted' if muted else ''}:{half}"


AXIS = Sociality()
