"""What a reader should know before believing the figures of a verdict."""

import math
from collections.abc import Iterator

import numpy as np

from owa_bench.discovery import find
from owa_bench.records.observables import NO_DAY, Observables
from owa_bench.records.plan import Plan
from owa_bench.scoring.estimates import ArmEstimates
from owa_bench.scoring.sample import Sample

_MICRO = 1e6  # micro-USD a USD


def notes(
    plan: Plan, sample: Sample, found: ArmEstimates | None, table: Observables
) -> tuple[str, ...]:
    """Return the warnings of one agent's verdict."""
    voided = int(sample.table.disqualified.sum())
    return (
        *_small_families(sample, found),
        *_small_checkpoints(sample, table),
        *_human_fed(table),
        *((f"{voided} episodes were disqualified and score 0",) if voided else ()),
        *(
            f"axis {name} comes from package {item.package}"
            for name, item in find("axes").items()
            if item.package
        ),
        *(("days are simulated",) if plan.simulated_days and _days(table) else ()),
    )


def _small_families(sample: Sample, found: ArmEstimates | None) -> Iterator[str]:
    """Warn of families with few tasks, with the half-widths that they leave."""
    rules = sample.protocol.statistics
    if found is None or found.smallest >= rules.warn_family:
        return
    widths = ", ".join(
        f"{symbol} +/- {_half_width(found, symbol, rules.level)}"
        for symbol in found.coverage
        if symbol in found.point
    )
    yield (
        f"a family holds {found.smallest} tasks, fewer than "
        f"{rules.warn_family}: {widths}"
    )


def _half_width(found: ArmEstimates, symbol: str, level: float) -> str:
    band = found.over_tasks(symbol).interval(level)
    if band.low is None or band.high is None:
        return "unknown"
    return f"{(band.high - band.low) / 2:.2f}"


def _days(table: Observables) -> bool:
    """Return whether the run holds checkpoints of days."""
    return bool(((table.phase == "checkpoint") & (table.day != NO_DAY)).any())


def _human_fed(table: Observables) -> Iterator[str]:
    """Flag human help that an adopted revision could have learnt from.

    The human stream is no agent-initiated cost, so kappa does not hold it; what it
    paid for may still stand behind a gain.
    """
    events = table.revisions
    adopted = np.unique(events.row[events.decision == "adopted"])
    before = np.zeros(len(table), dtype=np.bool_)
    for row in adopted.tolist():
        same = np.arange(len(table)) == row
        earlier = (table.phase == "practice") & (table.day != NO_DAY)
        before |= same | (earlier & (table.day <= table.day[row]))
    helped = before & ((table.cost_human != 0) | (table.patched > 0))
    if not helped.any():
        return
    cost = float(table.cost_human[helped].sum()) / _MICRO
    size = "of unknown size" if math.isnan(cost) else f"of {cost:.4g} USD"
    yield (
        f"human costs {size} in {int(helped.sum())} episodes feed {len(adopted)} "
        f"episodes with adopted revisions, {int(table.patched[helped].sum())} patches: "
        "kappa leaves them out, kappa_total holds them"
    )


def _small_checkpoints(sample: Sample, table: Observables) -> Iterator[str]:
    """Warn of checkpoints that hold few instances of a family."""
    if not _days(table):
        return
    families, pairs = sample.table.family, sample.table.pair
    counts = [len(set(pairs[families == f].tolist())) for f in sample.families]
    fewest, least = min(counts, default=0), sample.protocol.improvement.family_min
    if fewest < least:
        yield (
            f"a family kappa rests on {fewest} instances a checkpoint, fewer than "
            f"{least}"
        )
