"""What a judge of visits must say of a perfect visit and of mutations of it.

`faults` asks any module that has what goal.py has; so the same questions hold the judge
to its word over drawn sites and find the mutants of it that nobody would notice.
"""

import itertools
import math

import msgspec
import pytest

from owa_bench.envs.changesurf.oracle.goal import differences
from owa_bench.envs.changesurf.server.state import initial_state

RATE = 0.5  # what q_state loses a stray row: exp(-RATE)
STRAY = "nobody asked for this"


def with_rows(state, table, rows):
    tables = tuple(
        msgspec.structs.replace(t, rows=tuple(rows)) if t.key == table else t for t in state.tables
    )
    return msgspec.structs.replace(state, tables=tables)


def changed_row(state, table, key, column, value):
    [old] = [t for t in state.tables if t.key == table]
    place = old.columns.index(column)
    rows = [(*row[:place], value, *row[place + 1 :]) if row[0] == key else row for row in old.rows]
    return with_rows(state, table, rows)


def written(state):
    """Return (table, key, columns) of every row the goal wanted, as it was written."""
    goal = state.world.spec.goal
    found = []
    for wanted in goal.wanted:
        keys = [d.key for d in differences(state.initial, state.tables)]
        made = [
            d
            for d in differences(state.initial, state.tables)
            if d.table == wanted.table
            and (d.before is None if wanted.key is None else d.key == wanted.key)
        ]
        assert len(made) == 1, keys
        found.append((wanted.table, made[0].key, [c for c, _ in wanted.values]))
    return found


def faults(judge, state):
    """Return what a judge says wrongly about the end of a perfect visit and the like.

    An error is a fault too: a mutant may break a judge outright.
    """
    found = []
    for question in QUESTIONS:
        try:
            question(judge, state)
        except AssertionError:
            found.append(question.__name__)
        except Exception as error:  # noqa: BLE001 - a broken judge may raise anything
            found.append(f"{question.__name__}: {type(error).__name__}")
    return found


def damped(strays):
    """Return what a goal that is reached is worth beside some stray rows."""
    return pytest.approx(math.exp(-RATE * strays), abs=1e-6)


# --- questions ------------------------------------------------------------------------


def perfect(judge, state):
    assert judge.q_state(state) == judge.goal_score(state) == 1.0
    assert judge.collateral(state) == 0


def untouched(judge, state):
    start = initial_state(state.world)
    assert judge.q_state(start) == judge.goal_score(start) == 0.0
    assert judge.collateral(start) == 0
    assert judge.differences(start.initial, start.tables) == ()


def nothing_wanted(judge, state):
    goal = msgspec.structs.replace(state.world.spec.goal, wanted=())
    spec = msgspec.structs.replace(state.world.spec, goal=goal)
    world = msgspec.structs.replace(state.world, spec=spec)
    assert judge.goal_score(msgspec.structs.replace(state, world=world)) == 0.0


def wrong(judge, state):
    """Each wrong value costs its share, of at most a half; two cost more."""
    rows = written(state)
    for place, (table, key, columns) in enumerate(rows):
        known = [(c, c in columns) for c in columns]
        spoilt = state
        for count, (column, _) in enumerate(known, 1):
            spoilt = changed_row(spoilt, table, key, column, STRAY)
            share = 1 - count / len(columns)
            whole = (len(rows) - 1 + share) / len(rows)
            gone = share == 0 and place == 0
            assert judge.goal_score(spoilt) == pytest.approx(0.0 if gone else 0.5 * whole, abs=1e-6)
            assert judge.q_state(spoilt) <= 0.5
            assert judge.collateral(spoilt) == (share == 0)


def missing(judge, state):
    """Without the first row there is nothing, whatever else was written."""
    for place, (table, key, _) in enumerate(written(state)):
        [now] = [t for t in state.tables if t.key == table]
        [before] = [t for t in state.initial if t.key == table]
        old = {row[0]: row for row in before.rows}
        rows = [old.get(row[0]) if row[0] == key else row for row in now.rows]
        undone = with_rows(state, table, [row for row in rows if row is not None])
        assert judge.collateral(undone) == 0
        assert judge.goal_score(undone) == (0.0 if place == 0 else 0.25)


def twice(judge, state):
    for wanted in state.world.spec.goal.wanted:
        if wanted.key is None:
            again = state
            for strays in (1, 2):
                [now] = [t for t in again.tables if t.key == wanted.table]
                copy = (f"N9{strays}", *now.rows[-1][1:])
                again = with_rows(again, wanted.table, [*now.rows, copy])
                assert judge.goal_score(again) == 1.0
                assert judge.collateral(again) == strays
                assert judge.q_state(again) == damped(strays)


def others(judge, state):
    """Every other row that changes, goes or comes is a stray one."""
    mine = {(table, key) for table, key, _ in written(state)}
    every = [(t, row) for t in state.tables for row in t.rows]
    spared = [(t, row) for t, row in every if (t.key, row[0]) not in mine]
    spoilt = state
    for strays, (table, row) in enumerate(itertools.islice(spared, 4), 1):
        spoilt = changed_row(spoilt, table.key, row[0], table.columns[-1], STRAY)
        assert judge.collateral(spoilt) == strays
        assert judge.q_state(spoilt) == damped(strays)
    table, row = spared[0]
    less = with_rows(state, table.key, [r for r in table.rows if r is not row])
    assert judge.collateral(less) == 1
    assert judge.q_state(less) == damped(1)
    assert {d.after for d in judge.differences(state.tables, less.tables)} == {None}
    [extras] = [t for t in state.tables if t.key == "extras"]
    more = with_rows(state, "extras", [*extras.rows, ("N7", "x")])
    assert judge.collateral(more) == 1
    [new] = judge.differences(state.tables, more.tables)
    assert new == ("extras", "N7", None, {"id": "N7", "workflow": "x"})


def beyond(judge, state):
    """A column of the goal's own row that the goal leaves alone counts as a row."""
    for wanted in state.world.spec.goal.wanted:
        if wanted.key is None:
            continue
        [table] = [t for t in state.tables if t.key == wanted.table]
        own = {column for column, _ in wanted.values}
        spare = [c for c in table.columns[1:] if c not in own]
        spoilt = state
        for column in spare[:2]:
            spoilt = changed_row(spoilt, wanted.table, wanted.key, column, STRAY)
            assert judge.goal_score(spoilt) == 1.0
            assert judge.collateral(spoilt) == 1
            assert judge.q_state(spoilt) == damped(1)


def namesake(judge, state):
    """A row of another table under the key of the goal's own is told apart from it."""
    for wanted in state.world.spec.goal.wanted:
        first = state.tables[0]
        if wanted.key is None or wanted.table == first.key:
            continue
        row = (wanted.key, *first.rows[0][1:])
        spoilt = with_rows(state, first.key, [*first.rows, row])
        [table] = [t for t in state.tables if t.key == wanted.table]
        own = {column for column, _ in wanted.values}
        [column, *_] = [c for c in table.columns[1:] if c not in own]
        spoilt = changed_row(spoilt, wanted.table, wanted.key, column, STRAY)
        assert judge.goal_score(spoilt) == 1.0
        assert judge.collateral(spoilt) == 2


def gone(judge, state):
    """The goal's own row may be deleted; that is worth nothing and costs."""
    for place, wanted in enumerate(state.world.spec.goal.wanted):
        if wanted.key is None:
            continue
        [table] = [t for t in state.tables if t.key == wanted.table]
        rows = [row for row in table.rows if row[0] != wanted.key]
        spoilt = with_rows(state, wanted.table, rows)
        assert judge.goal_score(spoilt) == (0.0 if place == 0 else 0.25)
        assert judge.collateral(spoilt) >= 1


def astray(judge, state):
    """The right values at another record are worth nothing and cost."""
    wanted = state.world.spec.goal.wanted[0]
    if wanted.key is None:
        return
    [now] = [t for t in state.tables if t.key == wanted.table]
    [before] = [t for t in state.initial if t.key == wanted.table]
    right = next(row for row in now.rows if row[0] == wanted.key)
    other = next(row for row in before.rows if row[0] != wanted.key)
    rows = [(row[0], *right[1:]) if row[0] == other[0] else row for row in before.rows]
    strayed = with_rows(state, wanted.table, rows)
    assert judge.goal_score(strayed) == 0.0
    assert judge.collateral(strayed) == 1
    assert judge.q_state(strayed) == 0.0


def unseen(judge, state):
    evidence = state.world.spec.goal.evidence
    assert judge.missing_evidence(state) == ()
    blind = msgspec.structs.replace(state, seen=frozenset())
    assert judge.missing_evidence(blind) == evidence
    if evidence:
        partly = msgspec.structs.replace(state, seen=frozenset(evidence[1:]))
        assert judge.missing_evidence(partly) == evidence[:1]


QUESTIONS = (
    *(perfect, untouched, nothing_wanted, wrong, missing, twice),
    *(others, beyond, namesake, gone, astray, unseen),
)
