"""References: what shipped agents reach on the cells that an agent was scored on.

An agent that holds back where a control is guessed lowers what it is compared with. The protocol
names, for each suite, shipped agents whose own episodes on the same instances bound that
comparison. Source: docs/scoring.md#references.
"""

from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from owa_bench.records.observables import Array, Flags, Floats, Observables
from owa_bench.records.plan import Plan
from owa_bench.records.protocol import Protocol
from owa_bench.scoring.observe.sample import Sample, scored_rows

_Cell = tuple[object, ...]


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
    table, best = sample.table, np.full(len(rows), np.nan)
    if sample.references is None or not len(sample.references):
        return best
    cells = list(_cells(table))
    by_arm = _means_by_arm(sample.references, column)
    for suite in np.unique(table.suite[rows]).tolist():
        places = np.flatnonzero(rows & (table.suite == suite))
        values = [
            [means[cells[place]] for place in places]
            for means in by_arm
            if all(cells[place] in means for place in places)
        ]
        if values:
            best[places] = max(values, key=lambda one: float(np.mean(one)))
    return best


def _means_by_arm(references: Observables, column: str) -> list[dict[_Cell, float]]:
    """Return the mean of each cell that a reference arm played, an item an arm."""
    read: dict[str, dict[_Cell, list[float]]] = {}
    values = np.asarray(getattr(references, column), dtype=np.float64).tolist()
    rows = zip(references.arm.tolist(), _cells(references), values, strict=True)
    for arm, cell, value in rows:
        read.setdefault(arm, defaultdict(list))[cell].append(value)
    return [{cell: float(np.mean(own)) for cell, own in cells.items()} for cells in read.values()]


def _cells(table: Observables) -> Iterator[_Cell]:
    """Yield the cell of every row; NaN magnitudes are alike."""
    columns: tuple[Array, ...] = (
        table.pair,
        np.char.mod("%r", table.delta),
        table.day,
        table.interventions,
        table.side,
        table.crew.cap,
        table.crew.muted,
    )
    return zip(*(column.tolist() for column in columns), strict=True)
