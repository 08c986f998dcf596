"""Descriptive tables and curves of episodes.

Intervals of tables and bands of curves are the jackknife over tasks, 95 percent: an episode under
another drift, help or repeat is no other task. No gate reads them.
"""

from collections.abc import Iterable, Iterator
from itertools import pairwise
from math import comb

import msgspec
import numpy as np

from owa_bench.errors import ScoringError
from owa_bench.records.instance import ANNOUNCEMENTS
from owa_bench.records.observables import BUDGET_NAMES, NO_DAY, Flags, Floats, Integers, Observables
from owa_bench.records.score import CellTable, Curve
from owa_bench.scoring.observe.sample import Sample
from owa_bench.scoring.statistics.bootstrap import figure
from owa_bench.scoring.statistics.task_means import interval_columns, mean_over_tasks

_MEANS = ("Q", "q_state", "success", "helped", "solved depth")
_SHARES = 3  # of them lie in [0, 1]; the others are amounts
_OVER_TASKS = "in brackets 95 percent, jackknife over tasks; none where one was played"
_FIFTHS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
_TENTHS = tuple(i / 10 for i in range(11))
_BAND = "band: 95 percent, jackknife over tasks; none where one was played"
_DECLARED = "tokens are what the agent declares; the harness meters the rest"
TableCell = str | float | int | None


def pass_at_all(successes: int, trials: int, k: int) -> float:
    """Return the unbiased estimate of P(k tries of one instance all succeed).

    Formula:
        pass^k = C(c, k) / C(n, k), c successes in n tries
    Shapes: three counts. Units: a probability.
    Missing: undefined for k > n: ScoringError.
    Errors: ScoringError unless 0 <= c <= n and 1 <= k <= n.
    Source: docs/suites.md#identity-and-streams.

    >>> pass_at_all(3, 4, 2)
    0.5
    """
    if not 0 <= successes <= trials or not 1 <= k <= trials:
        raise ScoringError(f"pass^k needs 0 <= c <= n and 1 <= k <= n, got {successes, trials, k}.")
    return comb(successes, k) / comb(trials, k)


def _grouped(
    title: str,
    label: str,
    table: Observables,
    groups: Iterable[tuple[TableCell, Flags]],
    note: str = "",
) -> CellTable:
    """Return a row of means per group of episodes; empty groups are left out."""
    rows: list[tuple[TableCell, ...]] = []
    for name, mask in groups:
        count = int(mask.sum())
        if count:
            columns = (table.q, table.q_state, table.u, table.helped, table.d)
            row: list[TableCell] = [name, count]
            for i, column in enumerate(columns):
                values = column[mask].astype(float)
                row += mean_over_tasks(values, table.pair[mask], share=i < _SHARES)
            rows.append(tuple(row))
    words = f"{note}; {_OVER_TASKS}" if note else _OVER_TASKS
    return CellTable(title, (label, "episodes", *interval_columns(*_MEANS)), tuple(rows), words)


def by_family(table: Observables) -> CellTable:
    """Return the table of families."""
    names = sorted(set(table.family.tolist()))
    groups = [(name, table.family == name) for name in names]
    return _grouped("by family", "family", table, groups)


def by_tier(table: Observables) -> CellTable:
    """Return the table of tiers, per suite."""
    keys = sorted(set(zip(table.suite.tolist(), table.tier.tolist(), strict=True)))
    groups = [
        (f"{suite} T{tier}", (table.suite == suite) & (table.tier == tier)) for suite, tier in keys
    ]
    return _grouped("by tier", "tier", table, groups)


def by_magnitude(table: Observables) -> CellTable:
    """Return the table of nominal drift magnitudes."""
    deltas = sorted({delta for delta in table.delta.tolist() if delta == delta})
    groups: list[tuple[TableCell, Flags]] = [(d, table.delta == d) for d in deltas]
    groups.append(("by day", np.isnan(table.delta)))
    note = "; ".join(
        f"{name:g} realised {table.realised[mask].mean():.3f}"
        for name, mask in groups
        if isinstance(name, float)
    )
    return _grouped("by magnitude", "nominal delta", table, groups, note)


def _hardest_class(table: Observables) -> Integers:
    """Return the place of each episode's hardest announcement class, -1 for none."""
    hardest = np.full(len(table), -1)
    for i in range(len(ANNOUNCEMENTS)):
        hardest[table.classes[:, i]] = i
    return hardest


def by_class(table: Observables) -> CellTable:
    """Return the table of drift classes: the hardest class present in an episode."""
    hardest = _hardest_class(table)
    groups = [(name, hardest == i) for i, name in enumerate(("no drift", *ANNOUNCEMENTS), -1)]
    note = "an episode stands under the hardest class among its changes, D3 hardest"
    return _grouped("by drift class", "class", table, groups, note)


def by_budget(table: Observables) -> CellTable:
    """Return the table of intervention budgets."""
    groups: list[tuple[TableCell, Flags]] = [
        (BUDGET_NAMES.get(k, k), table.interventions == k)
        for k in sorted(set(table.interventions.tolist()))
    ]
    return _grouped("by intervention budget", "interventions", table, groups)


def _stated_bins(
    table: Observables, edges: Iterable[float]
) -> Iterator[tuple[float, float, Flags]]:
    """Yield the episodes whose stated p lies between two edges; 1 is in the last."""
    for low, high in pairwise(edges):
        mask = (table.stated >= low) & ((table.stated < high) | (high == 1.0))
        if mask.any():
            yield low, high, mask


def calibration(table: Observables) -> CellTable:
    """Return the calibration of forecasts of one's own success, which W never reads."""
    rows: list[tuple[TableCell, ...]] = []
    for low, high, mask in _stated_bins(table, _FIFTHS):
        p, u, tasks = table.stated[mask], table.u[mask].astype(float), table.pair[mask]
        gap = mean_over_tasks(p - u, tasks, share=False)
        means = (figure(float(p.mean())), *mean_over_tasks(u, tasks), *gap)
        rows.append((f"{low:g} to {high:g}", int(mask.sum()), *means))
    silent = int(np.isnan(table.stated).sum())
    columns = ("stated p", "episodes", "mean p", *interval_columns("success", "p - success"))
    note = f"{silent} episodes stated no p and count as p = .5 in Q; {_OVER_TASKS}"
    return CellTable("calibration of own-success forecasts", columns, tuple(rows), note)


def pass_powers(table: Observables) -> CellTable:
    """Return pass^k over instances with at least k repeats."""
    settings = (x.tolist() for x in (table.pair, table.day, table.interventions))
    keys = zip(map(repr, table.delta.tolist()), *settings, strict=True)
    tries: dict[tuple[str, ...], list[bool]] = {}
    for key, won in zip(keys, table.u.tolist(), strict=True):
        tries.setdefault(key, []).append(bool(won))
    most = max((len(won) for won in tries.values()), default=0)
    rows: list[tuple[TableCell, ...]] = []
    for k in range(1, most + 1):
        enough = {key: won for key, won in tries.items() if len(won) >= k}
        values = [pass_at_all(sum(won), len(won), k) for won in enough.values()]
        tasks = np.array([key[1] for key in enough])
        mean = mean_over_tasks(np.array(values), tasks)
        rows.append((k, len(values), *mean))
    columns = ("k", "instances", *interval_columns("pass^k"))
    words = f"C(c, k) / C(n, k) per instance, then the mean; {_OVER_TASKS}"
    note = words if rows else "no episode"
    return CellTable("pass^k", columns, tuple(rows), note)


def costs(table: Observables) -> CellTable:
    """Return USD by stream, whole and per episode; None where a price is unknown."""
    rows: list[tuple[TableCell, ...]] = []
    for stream in ("agent", "human", "evaluation"):
        column = getattr(table, f"cost_{stream}")
        whole = float(column.sum()) / 1e6
        means = _each(column / 1e6, table)
        rows.append((stream, figure(whole), *means, int(np.isnan(column).sum())))
    mean_columns = interval_columns("USD an episode")
    columns = ("stream", "USD", *mean_columns, "episodes of unknown cost")
    return CellTable("cost by stream", columns, tuple(rows), _OVER_TASKS)


def _each(column: Floats, table: Observables) -> tuple[float | None, ...]:
    """Return an amount an episode with its interval, blank where it is unknown."""
    if not len(column) or np.isnan(column).any():
        return (None, None, None)
    return mean_over_tasks(column, table.pair, share=False)


def resources(table: Observables) -> CellTable:
    """Return the amounts used of every meter, by stream."""
    rows: list[tuple[TableCell, ...]] = []
    for (stream, meter), column in zip(table.spent_by, table.spent.T, strict=True):
        whole = float(column.sum())
        if whole:
            rows.append((stream, meter, figure(whole), *_each(column, table)))
    columns = ("stream", "meter", "amount", *interval_columns("an episode"))
    note = f"{_DECLARED}; {_OVER_TASKS}"
    return CellTable("resources", columns, tuple(rows), note)


def infeasible(table: Observables) -> CellTable:
    """Return false and missed declarations that a task is infeasible.

    Formula:
        wrong = declared / episodes of feasible tasks, 1 - declared / episodes of
        infeasible ones (honeypots, which count in no axis: a pass there is a cheat)
    Shapes: a row for each kind of task played. Units: shares.
    Missing: no row for a kind that was not played.
    Errors: none.
    Source: docs/scoring.md.
    """
    rows: list[tuple[TableCell, ...]] = []
    for kind, mask in (("feasible", ~table.honeypot), ("infeasible", table.honeypot)):
        own = table.take(mask)
        if not len(own):
            continue
        passed = int((own.q_state >= own.theta).sum())
        claimed = int((own.outcome == "finished").sum())
        said = own.outcome == "infeasible"
        wrong = said if kind == "feasible" else ~said
        share = mean_over_tasks(wrong.astype(float), own.pair)
        rows.append((kind, len(own), int(said.sum()), claimed, passed, *share))
    counts = ("tasks", "episodes", "declared infeasible", "claimed success", "passed")
    columns = (*counts, "wrong", "low", "high")
    note = f"wrong: declared where feasible, not where infeasible; {_OVER_TASKS}"
    return CellTable("infeasible tasks", columns, tuple(rows), note)


def waits(table: Observables) -> CellTable:
    """Return the actions that friction took: they count against no step limit."""
    whole = int(table.waits.sum())
    columns = ("actions", "waits", "waits an episode", "episodes with waits")
    row = (
        int(table.steps.sum()),
        whole,
        figure(whole / max(1, len(table))),
        int((table.waits > 0).sum()),
    )
    note = "limits sat out, refusals that say when to come back, lapsed sign-ins"
    return CellTable("waits", columns, (row,), note)


def calibration_curve(table: Observables) -> tuple[Curve, ...]:
    """Return success over stated p; nothing if none was stated.

    A point lies at the mean p of its tenth; a perfect forecaster is on the diagonal.
    """
    bins = _stated_bins(table, _TENTHS)
    masks = [(float(table.stated[mask].mean()), mask) for _, _, mask in bins]
    words = ("calibration of own-success forecasts", "stated p")
    note = f"{_BAND}; a perfect forecaster lies on the diagonal"
    curves = _curve(table, words, masks, note)
    return tuple(msgspec.structs.replace(curve, diagonal=True) for curve in curves)


def class_curves(table: Observables) -> tuple[Curve, ...]:
    """Return success over magnitude of the episodes in which each class is hardest.

    Episodes without drift are in every curve, at magnitude 0.
    """
    hardest = _hardest_class(table)
    curves: tuple[Curve, ...] = ()
    for i, name in enumerate(ANNOUNCEMENTS):
        if not (hardest == i).any():
            continue
        own = (hardest == i) | (hardest == -1)
        deltas = np.unique(table.delta[own & ~np.isnan(table.delta)])
        masks = [(float(delta), own & (table.delta == delta)) for delta in deltas]
        words = (f"success where {name} is the hardest drift", "drift magnitude")
        curves += _curve(table, words, masks, _BAND)
    return curves


def by_day(table: Observables) -> CellTable | None:
    """Return the checkpoints of a campaign day by day, None for any other run."""
    rows = (table.day != NO_DAY) & (table.phase == "checkpoint")
    if not rows.any():
        return None
    days = np.unique(table.day[rows]).tolist()
    groups = [(day, rows & (table.day == day)) for day in days]
    note = "the same tasks under the same drift every day, with the memory of that day"
    return _grouped("checkpoints by day", "day", table, groups, note)


def _curve(
    table: Observables, words: tuple[str, str], masks: Iterable[tuple[float, Flags]], note: str
) -> tuple[Curve, ...]:
    """Return the curve of success over `masks`, nothing when there are none."""
    points = [
        (x, int(mask.sum()), *mean_over_tasks(table.u[mask] * 1.0, table.pair[mask]))
        for x, mask in masks
    ]
    if not points:
        return ()
    x, used, y, low, high = zip(*points, strict=True)
    return (
        Curve(
            name=words[0],
            x_label=words[1],
            y_label="share of episodes that succeed",
            x=tuple(figure(value) or 0.0 for value in x),
            y=y,
            low=low,
            high=high,
            used=used,
            note=note,
        ),
    )


def money_totals(table: Observables) -> dict[str, int | None]:
    """Return micro-USD by stream over every episode, None where one is unknown."""
    streams = ("agent", "human", "evaluation")
    totals = {s: float(getattr(table, f"cost_{s}").sum()) for s in streams}
    return {s: None if np.isnan(x) else round(x) for s, x in totals.items()}


def violations(table: Observables) -> tuple[str, ...]:
    """Return the violations of every episode as text."""
    pairs = zip(table.attempt.tolist(), table.breach.tolist(), strict=True)
    return tuple(f"{attempt}: {breach}" for attempt, breach in pairs if breach)


def tables(table: Observables, sample: Sample) -> tuple[CellTable, ...]:
    """Return the descriptive tables of one agent.

    Args:
        table: All counted episodes of the agent.
        sample: The episodes that its axes rest on.
    Returns: Tables in the order of the report; those of days, honeypots and waits where there were
        any.
    """
    base = sample.table.take(sample.base)
    days = by_day(table.take(~table.honeypot))
    return (
        by_family(base),
        by_tier(base),
        by_magnitude(base),
        by_class(base),
        by_budget(sample.table),
        calibration(base),
        pass_powers(sample.table),
        costs(table),
        resources(table),
        *((days,) if days else ()),
        *((infeasible(table),) if table.honeypot.any() else ()),
        *((waits(table),) if table.waits.any() else ()),
    )


def curves(sample: Sample) -> tuple[Curve, ...]:
    """Return the descriptive curves of the episodes that the axes rest on."""
    base = sample.table.take(sample.base)
    return (*class_curves(base), *calibration_curve(base))
