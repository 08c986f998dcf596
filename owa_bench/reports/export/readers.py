"""Table of what readers did: one row for each reader, suite and tier of a run.

A reader is an arm `reader:NAME`, which sees the text of its episodes alone. Every figure comes from
the counted episodes of a run that verifies.

Source: `docs/readers.md#the-table`.
"""

import math
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from owa_bench.errors import CheckFailure
from owa_bench.records.events import Resource
from owa_bench.records.plan import READER, PlanEntry
from owa_bench.records.price_card import PriceCard
from owa_bench.records.trace import Trace
from owa_bench.reports.read.bundle import Bundle, read
from owa_bench.reports.read.success import success_over_tasks
from owa_bench.reports.verify import verify
from owa_bench.scoring.statistics.task_means import task_of

TOKEN_CHARACTERS = 4.0  # characters of a token [D]
_MICRO = 1e6


class ReaderRow(msgspec.Struct, frozen=True, kw_only=True):
    """What one reader did in the episodes of one suite and tier of a run.

    `attempts` are all that were begun for the `planned` episodes; figures are of the `episodes`
    that count. `low` and `high` are the interval of success over tasks, None for fewer than two.
    `quality` is the mean of q_state, `p` the mean of the stated probabilities of success and
    `brier` their Brier score, over the `stated` episodes that have one. `usd` prices each character
    once: a lower bound.
    """

    run: str
    reader: str
    suite: str
    tier: int
    planned: int
    episodes: int
    attempts: int
    tasks: int
    successes: int
    low: float | None
    high: float | None
    quality: float | None
    acts: int
    characters_in: int
    characters_out: int
    usd: float | None
    stated: int
    p: float | None
    brier: float | None


class ReaderTable(NamedTuple):
    """The rows, and why runs gave none: without readers, or without evidence."""

    rows: tuple[ReaderRow, ...]
    skipped: tuple[str, ...]
    refused: tuple[str, ...]


def reader_table(run_dirs: Sequence[Path]) -> ReaderTable:
    """Return the table of several runs.

    Args:
        run_dirs: The run directories.
    Raises: RunDirectoryError: One is no run directory.
    """
    rows: list[ReaderRow] = []
    skipped: list[str] = []
    refused: list[str] = []
    for run_dir in run_dirs:
        try:
            broken = [check for check in verify(run_dir) if not check.ok]
        except CheckFailure as error:
            refused.append(f"{run_dir} does not verify: {error}")
            continue
        if broken:
            why = "; ".join(f"{check.name}: {check.detail}" for check in broken)
            refused.append(f"{run_dir} does not verify: {why}")
            continue
        own = _rows(read(run_dir))
        rows += own
        if not own:
            skipped.append(f"{run_dir} has no arm `{READER}NAME`: it is left out")
    return ReaderTable(tuple(rows), tuple(skipped), tuple(refused))


def _rows(bundle: Bundle) -> list[ReaderRow]:
    """Return the rows of one run, in the order of its plan."""
    readers = {a.name for a in bundle.plan.arms if a.agent.startswith(READER)}
    planned: dict[tuple[str, str, int], list[PlanEntry]] = defaultdict(list)
    for entry in bundle.plan.entries:
        if entry.arm in readers:
            planned[entry.arm, entry.suite, entry.tier].append(entry)
    counted = {trace.leaf.index: trace for trace in bundle.traces()} if planned else {}
    rows = []
    for (arm, suite, tier), entries in planned.items():
        indices = {entry.index for entry in entries}
        traces = [counted[index] for index in sorted(indices & counted.keys())]
        row = ReaderRow(
            run=bundle.layout.root.name,
            reader=arm,
            suite=suite,
            tier=tier,
            planned=len(entries),
            episodes=len(traces),
            attempts=sum(leaf.index in indices for leaf in bundle.leaves),
            **_success(traces),
            **_use(traces, bundle.prices),
            **_forecasts(traces),
        )
        rows.append(row)
    return rows


def _success(traces: Sequence[Trace]) -> dict[str, Any]:
    """Return success over tasks, and quality."""
    pairs = [trace.start.pair for trace in traces]
    won = [trace.end.success for trace in traces]
    interval = success_over_tasks(pairs, won)
    return {
        "tasks": len(set(map(task_of, pairs))),
        "successes": sum(won),
        "low": interval.low,
        "high": interval.high,
        "quality": _mean([trace.end.q_state for trace in traces]),
    }


def _use(traces: Sequence[Trace], prices: PriceCard) -> dict[str, Any]:
    """Return acts, characters, and their price as tokens."""
    amounts = {"characters_in": 0.0, "characters_out": 0.0}
    for trace in traces:
        for event in trace.of(Resource):
            if event.source == "harness" and event.meter in amounts:
                amounts[event.meter] += event.amount
    read_cost = prices.cost("tokens_in", amounts["characters_in"] / TOKEN_CHARACTERS)
    written = prices.cost("tokens_out", amounts["characters_out"] / TOKEN_CHARACTERS)
    known = read_cost is not None and written is not None
    return {
        "acts": sum(trace.end.steps for trace in traces),
        **{meter: int(amount) for meter, amount in amounts.items()},
        "usd": ((read_cost or 0) + (written or 0)) / _MICRO if known else None,
    }


def _forecasts(traces: Sequence[Trace]) -> dict[str, Any]:
    """Return the stated p of success, and its Brier score."""
    pairs = [
        (trace.end.stated, float(trace.end.success))
        for trace in traces
        if trace.end.stated is not None
    ]
    return {
        "stated": len(pairs),
        "p": _mean([p for p, _ in pairs]),
        "brier": _mean([(p - won) ** 2 for p, won in pairs]),
    }


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None
