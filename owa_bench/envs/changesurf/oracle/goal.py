"""Quality of a visit: wanted rows, collateral changes and evidence.

Everything is read from canonical rows; what pages look like has no part in it.
"""

import math
from typing import NamedTuple

from owa_bench.envs.changesurf.server.state import CellRef, SiteState
from owa_bench.envs.changesurf.site_spec import RequiredRow, SiteTable, SiteValue
from owa_bench.records.events import fixed

FRAME_RATE = 0.5  # k of the frame factor exp(-k * rows changed outside the goal) [D]
_PARTIAL = 0.5  # what the goal is worth at most while a value is wrong [D]


class RowDifference(NamedTuple):
    """A row that is new (`before` None), deleted (`after` None) or changed."""

    table: str
    key: SiteValue
    before: dict[str, SiteValue] | None
    after: dict[str, SiteValue] | None


def differences(
    initial: tuple[SiteTable, ...], final: tuple[SiteTable, ...]
) -> tuple[RowDifference, ...]:
    """Return every row in which two databases differ.

    Args:
        initial: the tables before.
        final: the tables after.
    Returns: New, changed and deleted rows.
    """
    found: list[RowDifference] = []
    for old, new in zip(initial, final, strict=True):
        before = {row[0]: row for row in old.rows}
        after = {row[0]: row for row in new.rows}
        for key in (*before, *(k for k in after if k not in before)):
            if before.get(key) != after.get(key):
                pair = (_cells(old, before.get(key)), _cells(new, after.get(key)))
                found.append(RowDifference(old.key, key, *pair))
    return tuple(found)


def goal_score(state: SiteState) -> float:
    """Return the score of the wanted rows, in [0, 1].

    1 when every value of every row is right, at most a half while one is wrong, 0 where nothing was
    written. Other changes do not count here.
    """
    wanted = state.world.spec.goal.wanted
    if not wanted:
        return 0.0
    changed = differences(state.initial, state.tables)
    shares = [_best(each, changed)[0] for each in wanted]
    if all(share >= 1.0 for share in shares):
        return 1.0
    # A side effect without the row it belongs to is worth nothing.
    partly = _PARTIAL * sum(shares) / len(shares)
    return 0.0 if shares[0] == 0 else fixed(partly)


def collateral(state: SiteState) -> int:
    """Return how many rows changed that no wanted row accounts for."""
    changed = differences(state.initial, state.tables)
    used = {
        place
        for each in state.world.spec.goal.wanted
        for _, place in (_best(each, changed),)
        if place is not None
    }
    stray = sum((d.table, d.key) not in used for d in changed)
    return stray + sum(_beyond(each, changed) for each in state.world.spec.goal.wanted)


def q_state(state: SiteState) -> float:
    """Return the goal's score times the frame factor."""
    frame = math.exp(-FRAME_RATE * collateral(state))
    return fixed(goal_score(state) * frame)


def missing_evidence(state: SiteState) -> tuple[CellRef, ...]:
    """Return the cells that the answer rests on and no page has shown."""
    return tuple(c for c in state.world.spec.goal.evidence if c not in state.seen)


def _best(
    wanted: RequiredRow, changed: tuple[RowDifference, ...]
) -> tuple[float, tuple[str, SiteValue] | None]:
    """Return the score of the change that comes nearest, and its place."""
    best: tuple[float, tuple[str, SiteValue] | None] = (0.0, None)
    for each in changed:
        if each.table != wanted.table or each.after is None:
            continue
        fits = each.before is None if wanted.key is None else each.key == wanted.key
        score = _likeness(wanted, each.after) if fits else 0.0
        if score > best[0]:
            best = (score, (each.table, each.key))
    return best


def _likeness(wanted: RequiredRow, after: dict[str, SiteValue]) -> float:
    """Return the share of wanted values that a row has."""
    right = sum(is_same(after[column], value) for column, value in wanted.values)
    return right / len(wanted.values)


def is_same(value: SiteValue, wanted: SiteValue) -> bool:
    """Return whether two values read the same, letter case and spaces aside.

    Args:
        value: what the site holds.
        wanted: what the goal wants.
    Returns: Whether a person would take them for one.
    """
    return str(value).casefold().split() == str(wanted).casefold().split()


def _beyond(wanted: RequiredRow, changed: tuple[RowDifference, ...]) -> int:
    """Return 1 if the wanted row changed in columns that the goal leaves alone."""
    if wanted.key is None:
        return 0
    columns = {column for column, _ in wanted.values}
    for each in changed:
        if each.table == wanted.table and each.key == wanted.key:
            before, after = each.before or {}, each.after or {}
            other = {c for c in before if before.get(c) != after.get(c)} - columns
            return int(bool(other))
    return 0


def _cells(table: SiteTable, row: tuple[SiteValue, ...] | None) -> dict[str, SiteValue] | None:
    return None if row is None else dict(zip(table.columns, row, strict=True))
