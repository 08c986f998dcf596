"""References: what shipped agents reach on the cells that an agent was scored on.

An agent that holds back where a control is guessed lowers what it is compared with. The protocol
names, for each suite, shipped agents whose own episodes on the same instances bound that
comparison. Source: docs/scoring.md#references.
"""

from collections.abc import Callable

import numpy as np

from owa_bench.records.observables import Array, Flags, Floats, Integers, Observables
from owa_bench.records.plan import Plan
from owa_bench.records.protocol import Protocol
from owa_bench.scoring.observe.sample import Sample, scored_rows

# What makes a cell.
_COLUMNS: tuple[Callable[[Observables], Array], ...] = (
    lambda table: table.pair,
    lambda table: table.delta,
    lambda table: table.day,
    lambda table: table.interventions,
    lambda table: table.side,
    lambda table: table.crew.cap,
    lambda table: table.crew.muted,
)


def reference_episodes(plan: Plan, episodes: Observables, protocol: Protocol) -> Observables:
    """Return the scored episodes of the run's reference agents.

    Args:
        plan: The run's plan, which says who plays an arm.
        episodes: Counted episodes of every arm.
        protocol: It names the references of each suite.
    Returns: The episodes; of a suite without references none.
    """
    agents = {arm.name: arm.agent for arm in plan.arms}
    named = [
        agents.get(arm) in protocol.references.get(suite, ())
        for arm, suite in zip(episodes.arm.tolist(), episodes.suite.tolist(), strict=True)
    ]
    plain = (episodes.calendar == "") & ~episodes.honeypot
    rows: Flags = np.array(named, dtype=np.bool_) & plain & scored_rows(episodes)
    return episodes.take(rows)


def reference_values(sample: Sample, rows: Flags, column: str) -> Floats:
    """Return what the best reference of the suite reaches in the cell of each row.

    A cell is an instance under one drift, help, side, ceiling on roles and mute.

    Args:
        sample: The agent's sample, with the run's reference episodes.
        rows: (episodes,) the agent's rows that are asked for.
        column: Column that is read, "q" or "u".
    Returns: (episodes,): the mean of the cell; NaN outside `rows`, and where no reference played
        every cell of the suite. The best has the greatest mean over the cells.
    """
    table, references = sample.table, sample.references
    best = np.full(len(rows), np.nan)
    if references is None or not len(references):
        return best
    asked = np.flatnonzero(rows)
    cells, known = _cells((table, asked), (references, np.arange(len(references))))
    means = _means_by_arm(references, column, known, int(max(cells.max(initial=0), known.max())))
    suites = table.suite[asked]
    for suite in np.unique(suites).tolist():
        here = suites == suite
        values = [own[cells[here]] for own in means]
        whole = [one for one in values if not np.isnan(one).any()]
        if whole:
            best[asked[here]] = max(whole, key=lambda one: float(np.mean(one)))
    return best


def _means_by_arm(references: Observables, column: str, cells: Integers, last: int) -> list[Floats]:
    """Return each reference arm's mean in cells 0 to `last`; NaN in a cell that it did not play."""
    values = np.asarray(getattr(references, column), dtype=np.float64)
    found = []
    for arm in np.unique(references.arm).tolist():
        own = references.arm == arm
        sums = np.bincount(cells[own], weights=values[own], minlength=last + 1)
        counts = np.bincount(cells[own], minlength=last + 1)
        found.append(np.where(counts > 0, sums / np.maximum(counts, 1), np.nan))
    return found


def _cells(*tables: tuple[Observables, Integers]) -> list[Integers]:
    """Return a number for the cell of each row asked for; one cell has one number in all tables.

    NaN magnitudes are alike.
    """
    counts = [len(rows) for _, rows in tables]
    number = np.zeros(sum(counts), dtype=np.int64)
    for column in _COLUMNS:
        parts = [column(table)[rows] for table, rows in tables]
        values, code = np.unique(np.concatenate(parts), return_inverse=True)
        number = number * len(values) + code.reshape(-1)
        number = np.unique(number, return_inverse=True)[1].reshape(-1)
    return np.split(number, np.cumsum(counts)[:-1])
