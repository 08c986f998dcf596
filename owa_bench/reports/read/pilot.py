"""Pilot: the cost and time of a planned run, estimated from a run that was played.

    from owa_bench.reports.read.pilot import pilot_estimate

    for row in pilot_estimate(plan, "runs/pilot", lanes=4).rows:
        print(row.suite, row.episodes, row.amounts["USD"])

A planned episode takes what the pilot's episodes of its suite, tier and drift magnitude took on
average. Source: docs/cli.md#run
"""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

from owa_bench.records.events import EpisodeEnd, ModelCall
from owa_bench.records.observables import Flags, Floats
from owa_bench.records.plan import Plan, PlanEntry
from owa_bench.records.price_card import CACHED, INPUT, OUTPUT, amounts_used, episode_cost, usd_of
from owa_bench.reports.read.bundle import Bundle, read
from owa_bench.scoring.statistics.jackknife import Clusters, jackknife_estimate
from owa_bench.scoring.statistics.task_means import task_of

REQUESTS, READ, WRITTEN = "requests", "tokens read", "tokens written"
DOLLARS, HOURS, SUPERVISOR = "USD", "hours", "supervisor USD"
MEASURES = (REQUESTS, READ, WRITTEN, DOLLARS, HOURS, SUPERVISOR)
TOTAL = "all"
_LEVEL = 0.95
_HOUR_S = 3600.0

# Amounts of MEASURES in an episode of a suite and tier as its card has it, None: not said.
CardAmounts = Callable[[str, int], Mapping[str, float] | None]


class RangedAmount(msgspec.Struct, frozen=True):
    """An estimate with its range; without one `reason` says why."""

    estimate: float | None
    low: float | None = None
    high: float | None = None
    reason: str = ""


class SuiteEstimate(msgspec.Struct, frozen=True):
    """What the planned episodes of a suite take, or of all suites: an amount by measure."""

    suite: str
    episodes: int
    amounts: dict[str, RangedAmount]


class PilotEstimate(msgspec.Struct, frozen=True):
    """What a plan takes by a pilot.

    `rows` has one row for each suite, then the total. `unknown` lists the parts of the plan that
    the pilot cannot estimate; no row counts them. `notes` lists the estimates that rest on other
    tiers, magnitudes or agents than the planned ones.
    """

    pilot: str
    rows: tuple[SuiteEstimate, ...]
    unknown: tuple[str, ...]
    notes: tuple[str, ...]


class _PilotTable(NamedTuple):
    """The pilot's counted episodes, a row each."""

    entries: tuple[PlanEntry, ...]
    amounts: dict[str, Floats]

    def mask(self, keep: Callable[[PlanEntry], bool]) -> Flags:
        return np.array([keep(entry) for entry in self.entries], dtype=np.bool_)


class _Part(NamedTuple):
    """Planned episodes that take scale * sum(amounts) / sum(base) over rows of the pilot."""

    suite: str
    episodes: int
    tasks: frozenset[str]
    rows: Flags
    scale: dict[str, float]
    base: dict[str, Floats]


class _Stratum(NamedTuple):
    arm: str
    suite: str
    tier: int
    delta: float | None


def pilot_estimate(
    plan: Plan, pilot: str | Path, *, lanes: int = 1, card: CardAmounts = lambda suite, tier: None
) -> PilotEstimate:
    """Return the estimated cost and time of a plan.

    Formula:
        x = sum over strata h of N_h mean_h, mean_h over the pilot's episodes of the stratum;
        of a tier that it did not play N card(h) sum(y) / sum(card) over those of its suite;
        the range is for the tasks that are drawn: t over tasks, jackknife, each gap times
        sqrt(1 + T / M), T tasks of the pilot in the suite and tier, M planned by them
    Args:
        plan: What would be played.
        pilot: A run directory.
        lanes: Episodes at once, by which hours are divided.
        card: What a suite's card says that an episode takes.
    Missing: no range where the pilot played one task of a suite and tier.
    Raises: RunDirectoryError: There is no such run.
    Source: [D] docs/cli.md#run.
    """
    bundle = read(Path(pilot))
    played, notes = _pilot_table(bundle)
    parts, unknown = [], []
    arms, said = _arms(plan, bundle.plan, {entry.arm for entry in played.entries})
    notes += said
    strata: dict[_Stratum, list[PlanEntry]] = defaultdict(list)
    lost: Counter[str] = Counter()
    for entry in plan.entries:
        if entry.arm in arms:
            place = _Stratum(arms[entry.arm], entry.suite, entry.tier, entry.delta)
            strata[place].append(entry)
        else:
            lost[f"agent {entry.arm}"] += 1
    for stratum, entries in strata.items():
        part, words = _part(stratum, entries, played, card)
        if part is None:
            lost[f"{stratum.suite} tier {stratum.tier}"] += len(entries)
        else:
            parts.append(part)
            notes += [words] if words else []
    unknown += [f"{name} ({count} episodes)" for name, count in lost.items()]
    reckoned = [entry for entries in strata.values() for entry in entries]
    notes += _unlike(reckoned, played.entries)
    suites = list(dict.fromkeys(part.suite for part in parts))
    rows = [
        _row(suite, [part for part in parts if part.suite == suite], played, lanes)
        for suite in suites
    ]
    rows += [_row(TOTAL, parts, played, lanes)] if parts else []
    return PilotEstimate(str(pilot), tuple(rows), tuple(unknown), tuple(dict.fromkeys(notes)))


# --- amounts of the pilot -------------------------------------------------------------


def _pilot_table(bundle: Bundle) -> tuple[_PilotTable, list[str]]:
    """Return the amounts of each counted episode, lost attempts included, and the notes on them."""
    counted = {leaf.index for leaf in bundle.counting_leaves if leaf is not None}
    sums: dict[int, dict[str, float]] = {}
    cached = declared = 0
    for attempt in bundle.attempts():
        if attempt.leaf.index not in counted:
            continue
        own = sums.setdefault(attempt.leaf.index, dict.fromkeys(MEASURES, 0.0))
        calls = [event for event in attempt.events if isinstance(event, ModelCall)]
        seen = [call for call in calls if call.source == "harness"]
        cached += sum(call.cached for call in seen)
        declared += len(calls) - len(seen)
        own[REQUESTS] += len(seen)
        for (stream, meter), amount in amounts_used(attempt.events).items():
            if stream != "human" and meter in (INPUT, CACHED, OUTPUT):
                own[WRITTEN if meter == OUTPUT else READ] += amount
        costs = episode_cost(bundle.prices, attempt.events)
        own[DOLLARS] += _usd(costs["agent"]) + _usd(costs["evaluation"])
        own[SUPERVISOR] += _usd(costs["human"])
        ends = [event for event in attempt.events if isinstance(event, EpisodeEnd)]
        own[HOURS] += sum(end.wall_s for end in ends) / _HOUR_S
    entries = tuple(entry for entry in bundle.plan.entries if entry.index in sums)
    notes = []
    if cached:
        notes.append(f"{cached} of the pilot's requests were answered by --model-cache, unpaid")
    if declared and not any(own[REQUESTS] for own in sums.values()):
        notes.append("the pilot's agents declare calls of a model that no gateway saw: not counted")
    amounts = {name: np.array([sums[e.index][name] for e in entries]) for name in MEASURES}
    return _PilotTable(entries, amounts), notes


def _usd(cost: int | None) -> float:
    usd = usd_of(cost)
    return math.nan if usd is None else usd


# --- pilot episodes for each planned stratum -------------------------------------------


def _arms(plan: Plan, pilot: Plan, played: Iterable[str]) -> tuple[dict[str, str], list[str]]:
    """Return the pilot's agent for each planned one: of its spec, its name, or the only one."""
    names = set(played)
    known = [arm for arm in pilot.arms if arm.name in names]
    found: dict[str, str] = {}
    notes = []
    for arm in plan.arms:
        if same := [one.name for one in known if one.agent == arm.agent]:
            found[arm.name] = same[0]
        elif arm.name in names:
            found[arm.name] = arm.name
            notes.append(f"{arm.name} is another agent than the pilot's of that name: {arm.agent}")
        elif len(known) == 1 and not (arm.baseline or arm.companion):
            found[arm.name] = known[0].name
            notes.append(f"{arm.name} is reckoned as {known[0].name}, the pilot's only agent")
    return found, notes


def _part(
    stratum: _Stratum, entries: Sequence[PlanEntry], played: _PilotTable, card: CardAmounts
) -> tuple[_Part | None, str]:
    """Return the estimate of a stratum, and a note where it rests on another stratum."""
    count = len(entries)
    name = f"{stratum.suite} tier {stratum.tier}"
    tasks = frozenset(task_of(entry.pair) for entry in entries)
    ones = np.ones(len(played.entries))

    def part(rows: Flags) -> _Part:
        scale, base = dict.fromkeys(MEASURES, float(count)), dict.fromkeys(MEASURES, ones)
        return _Part(stratum.suite, count, tasks, rows, scale, base)

    own = played.mask(lambda e: e.arm == stratum.arm and e.suite == stratum.suite)
    tier = own & played.mask(lambda e: e.tier == stratum.tier)
    exact = tier & played.mask(lambda e: e.delta == stratum.delta)
    if exact.any():
        return part(exact), ""
    if tier.any():
        near = _nearest(stratum.delta, [e.delta for e in _entries_of(played, tier)])
        if near is None:
            return part(
                tier
            ), f"{name}: drift by day is reckoned as all that the pilot played of it"
        words = f"{name}: drift {stratum.delta:g} is reckoned as {near:g}, the nearest played"
        return part(tier & played.mask(lambda e: e.delta == near)), words
    wanted = card(stratum.suite, stratum.tier)
    known = {tier: card(stratum.suite, tier) for tier in {e.tier for e in _entries_of(played, own)}}
    if wanted is None or not known or None in known.values():
        return None, ""
    base = {
        measure: np.array([(known.get(e.tier) or {}).get(measure, 0.0) for e in played.entries])
        for measure in wanted
    }
    scale = {measure: count * amount for measure, amount in wanted.items()}
    words = (
        f"{name}: not played by the pilot; reckoned from the other tiers, by the ratio of what the "
        "suite's card says that an episode takes"
    )
    return _Part(stratum.suite, count, tasks, own, scale, base), words


def _entries_of(played: _PilotTable, rows: Flags) -> Iterator[PlanEntry]:
    return (entry for entry, mine in zip(played.entries, rows, strict=True) if mine)


def _nearest(delta: float | None, known: Iterable[float | None]) -> float | None:
    """Return the nearest magnitude, of two the larger; None where one is by day."""
    numbers = sorted({one for one in known if one is not None}, reverse=True)
    if delta is None or not numbers:
        return None
    return min(numbers, key=lambda one: abs(one - delta))


def _unlike(planned: Sequence[PlanEntry], played: Sequence[PlanEntry]) -> list[str]:
    """Return which families and budgets of help the pilot did not play."""
    notes = []
    for noun, of in (("families", _family), ("budgets of help", _budget)):
        seen = {of(entry) for entry in played}
        new = sorted({of(entry) for entry in planned} - seen)
        if new:
            notes.append(f"{noun} that the pilot did not play are reckoned as its own: {_few(new)}")
    return notes


def _family(entry: PlanEntry) -> str:
    return f"{entry.suite}/{entry.family}"


def _budget(entry: PlanEntry) -> str:
    return "unlimited" if entry.interventions is None else str(entry.interventions)


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")


# --- sums and their ranges ------------------------------------------------------------


def _row(suite: str, parts: Sequence[_Part], played: _PilotTable, lanes: int) -> SuiteEstimate:
    """Return what the episodes of some parts take."""
    amounts = {name: _amount(name, parts, played) for name in MEASURES}
    hours = amounts[HOURS]
    episodes = sum(part.episodes for part in parts)
    at_once = min(lanes, episodes)
    ends = [None if x is None else x / at_once for x in (hours.estimate, hours.low, hours.high)]
    amounts[HOURS] = RangedAmount(ends[0], ends[1], ends[2], hours.reason)
    return SuiteEstimate(suite, episodes, amounts)


def _amount(name: str, parts: Sequence[_Part], played: _PilotTable) -> RangedAmount:
    """Return the sum of a measure over parts, with its range over tasks."""
    values = played.amounts[name]

    tasks, of = np.unique([task_of(entry.pair) for entry in played.entries], return_inverse=True)
    point, without = 0.0, np.zeros(len(tasks))
    for part in parts:
        sums, bases = (
            np.bincount(of, weights=np.where(part.rows, column, 0.0), minlength=len(tasks))
            for column in (values, part.base[name])
        )
        point += float(part.scale[name] * sums.sum() / bases.sum())
        left = bases.sum() - bases
        ratio = np.full(len(tasks), math.nan)
        np.divide(sums.sum() - sums, left, out=ratio, where=left > 0)
        without += part.scale[name] * ratio
    if math.isnan(point):
        return RangedAmount(None, reason="the pilot's is unknown")
    cells = [f"{entry.suite} {entry.tier}" for entry in played.entries]
    names, cell = np.unique(cells, return_inverse=True)
    stratum = np.zeros(len(tasks), dtype=np.int64)
    stratum[of] = cell
    rows = np.any([part.rows for part in parts], axis=0)
    used = np.bincount(of, weights=rows) > 0
    planned: list[set[str]] = [set() for _ in names]
    for part in parts:
        for place in set(cell[part.rows]):
            planned[place] |= part.tasks
    counts = np.bincount(stratum[used], minlength=len(names))
    wider = np.sqrt([1 + n / max(len(own), 1) for n, own in zip(counts, planned, strict=True)])
    left_out = point + (without - point) * wider[stratum]
    scheme = Clusters(
        "tasks like these", "tasks", np.arange(len(tasks)), stratum, "the pilot played one task"
    )
    found = jackknife_estimate(point, left_out, scheme, used, share=False).interval(_LEVEL)
    if found.low is None or found.high is None:
        return RangedAmount(point, reason=found.reason or "")
    return RangedAmount(point, max(found.low, 0.0), found.high)
