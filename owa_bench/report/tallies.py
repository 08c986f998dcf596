"""What the episodes met, counted: drift by operator, breaches by rule."""

from collections import Counter, defaultdict
from collections.abc import Iterable

from owa_bench.records.events import Drift, Violation
from owa_bench.records.score import CellTable
from owa_bench.records.trace import Trace

_DRIFT = ("operator", "version", "class", "weight", "episodes", "changes", "targets")
_BREACHES = ("agent", "rule", "severity", "episodes", "breaches", "first", "evidence")


def drift(traces: Iterable[Trace]) -> CellTable:
    """Return operators with class, weight, and how often each struck.

    `episodes` counts episodes with at least one such change, `targets` the distinct
    targets over the whole run.
    """
    changes: Counter[tuple[str, int, str, float]] = Counter()
    episodes: Counter[tuple[str, int, str, float]] = Counter()
    targets: dict[tuple[str, int, str, float], set[str]] = defaultdict(set)
    for trace in traces:
        met = set()
        for change in trace.of(Drift):
            key = (change.operator, change.version, change.announcement, change.weight)
            changes[key] += 1
            targets[key].add(change.target)
            met.add(key)
        episodes.update(met)
    rows = tuple(
        (*key, episodes[key], changes[key], len(targets[key]))
        for key in sorted(changes)
    )
    note = "" if rows else "No drift struck in any counted episode."
    return CellTable(title="drift met", columns=_DRIFT, rows=rows, note=note)


def breaches(traces: Iterable[Trace]) -> CellTable:
    """Return broken rules of engagement by agent, with the first evidence of each."""
    counts: Counter[tuple[str, str, str]] = Counter()
    episodes: Counter[tuple[str, str, str]] = Counter()
    first: dict[tuple[str, str, str], tuple[str, str]] = {}
    for trace in traces:
        met = set()
        for breach in trace.of(Violation):
            key = (trace.start.arm, breach.rule, breach.severity)
            counts[key] += 1
            first.setdefault(key, (trace.leaf.attempt_id, breach.evidence))
            met.add(key)
        episodes.update(met)
    rows = tuple(
        (*key, episodes[key], counts[key], *first[key]) for key in sorted(counts)
    )
    note = "" if rows else "No rule of engagement was seen to be broken."
    return CellTable(title="broken rules", columns=_BREACHES, rows=rows, note=note)
