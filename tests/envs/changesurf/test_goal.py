"""Mutations of a perfect visit: wrong, missing or too much scores below 1."""

import math
from types import SimpleNamespace

import msgspec
import pytest

from owa_bench.envs.changesurf.generate import FAMILIES, HELD_OUT_FAMILIES
from owa_bench.envs.changesurf.goal import (
    FRAME_RATE,
    collateral,
    differences,
    goal_score,
    missing_evidence,
    q_state,
)
from owa_bench.envs.changesurf.oracle import THETA, ChangeSurfOracle
from owa_bench.envs.changesurf.state import fresh
from owa_bench.worlds.site import Table
from tests.envs.changesurf import surfing

EVERY = (*FAMILIES, *HELD_OUT_FAMILIES)
ORACLE = ChangeSurfOracle(call=lambda step, state: {"tool": step.op, "arguments": {}})


def ended(family, tier=2):
    return surfing.walked(surfing.instance(family, tier, 3)).state


def with_rows(state, table, rows):
    tables = tuple(
        msgspec.structs.replace(t, rows=tuple(rows)) if t.key == table else t
        for t in state.tables
    )
    return msgspec.structs.replace(state, tables=tables)


def changed_row(state, table, key, column, value):
    [old] = [t for t in state.tables if t.key == table]
    place = old.columns.index(column)
    rows = [
        (*row[:place], value, *row[place + 1 :]) if row[0] == key else row
        for row in old.rows
    ]
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


@pytest.mark.parametrize("family", EVERY)
def test_a_perfect_visit_scores_one_and_an_untouched_site_zero(family):
    state = ended(family)
    assert q_state(state) == 1.0
    assert collateral(state) == 0
    assert q_state(fresh(state.world)) == 0.0


@pytest.mark.parametrize("family", EVERY)
def test_one_wrong_value_is_worth_at_most_a_half(family):
    state = ended(family)
    for table, key, columns in written(state):
        for column in columns:
            wrong = changed_row(state, table, key, column, "something else")
            assert q_state(wrong) <= 0.5, column


@pytest.mark.parametrize("family", EVERY)
def test_a_row_that_is_missing_is_worth_nothing_of_its_own(family):
    state = ended(family)
    table, key, _ = written(state)[0]
    [now] = [t for t in state.tables if t.key == table]
    [before] = [t for t in state.initial if t.key == table]
    old = {row[0]: row for row in before.rows}
    rows = [old.get(row[0]) if row[0] == key else row for row in now.rows]
    undone = with_rows(state, table, [row for row in rows if row is not None])
    assert goal_score(undone) == 0.0


@pytest.mark.parametrize("family", EVERY)
def test_a_second_commit_costs(family):
    state = ended(family)
    for wanted in state.world.spec.goal.wanted:
        if wanted.key is not None:
            continue
        [now] = [t for t in state.tables if t.key == wanted.table]
        twice = with_rows(state, wanted.table, [*now.rows, ("N99", *now.rows[-1][1:])])
        assert collateral(twice) == 1
        assert q_state(twice) == pytest.approx(math.exp(-FRAME_RATE), abs=1e-6)


@pytest.mark.parametrize("family", EVERY)
def test_every_other_row_that_changes_costs(family):
    state = ended(family)
    wanted = {(table, key) for table, key, _ in written(state)}
    scores = [1.0]
    for table in state.tables:
        for row in table.rows:
            if (table.key, row[0]) in wanted:
                continue
            state = changed_row(state, table.key, row[0], table.columns[-1], "tampered")
            scores.append(q_state(state))
            if len(scores) > 4:
                break
    assert len(scores) > 1
    assert scores == sorted(scores, reverse=True)
    assert scores[1] == pytest.approx(math.exp(-FRAME_RATE), abs=1e-6)


def test_a_column_that_the_goal_leaves_alone_costs():
    state = ended("stay/change")
    table, key, columns = written(state)[0]
    assert "guest" not in columns
    meddled = changed_row(state, table, key, "guest", "Somebody Else")
    assert collateral(meddled) == 1
    assert q_state(meddled) < THETA


def test_a_deleted_row_costs():
    state = ended("stay/book")
    [rooms] = [t for t in state.tables if t.key == "rooms"]
    assert collateral(with_rows(state, "rooms", rooms.rows[1:])) == 1


def test_the_right_row_at_the_wrong_record_is_worth_nothing():
    state = ended("stay/change")
    table, key, _ = written(state)[0]
    [now] = [t for t in state.tables if t.key == table]
    [before] = [t for t in state.initial if t.key == table]
    right = next(row for row in now.rows if row[0] == key)
    other = next(row for row in before.rows if row[0] != key)
    moved = [(row[0], *right[1:]) if row[0] == other[0] else row for row in before.rows]
    strayed = with_rows(state, table, moved)
    assert goal_score(strayed) == 0.0
    assert collateral(strayed) >= 1


def test_differences_name_every_row_once():
    old = (Table(key="t", columns=("id", "x"), rows=(("a", 1), ("b", 2), ("c", 3))),)
    new = (Table(key="t", columns=("id", "x"), rows=(("a", 1), ("b", 5), ("d", 4))),)
    found = [(d.key, d.before, d.after) for d in differences(old, new)]
    assert found == [
        ("b", {"id": "b", "x": 2}, {"id": "b", "x": 5}),
        ("c", {"id": "c", "x": 3}, None),
        ("d", None, {"id": "d", "x": 4}),
    ]


# --- the oracle -----------------------------------------------------------------------


@pytest.mark.parametrize("family", EVERY)
def test_subgoals_are_a_dag_that_a_perfect_visit_solves(family):
    state = ended(family)
    nodes = ORACLE.subgoals(state.world)
    names = [node.name for node in nodes]
    assert len(set(names)) == len(names)
    for i, node in enumerate(nodes):
        assert set(node.prerequisites) <= set(names[:i])
    assert ORACLE.solved(state.world, state) == set(names)
    assert ORACLE.solved(state.world, fresh(state.world)) == frozenset()


def test_evidence_is_missing_until_a_page_has_shown_it():
    state = ended("ledger/total")
    assert missing_evidence(state) == ()
    blind = msgspec.structs.replace(state, seen=frozenset())
    assert set(missing_evidence(blind)) == set(state.world.spec.goal.evidence)


def test_an_infeasible_goal_is_worth_nothing_and_hinted_as_such():
    of = surfing.instance("stay/book-honeypot", 2, 3)
    timeline = surfing.timeline(of)
    state = fresh(timeline.worlds[0])
    assert ORACLE.quality(timeline, state) == 0.0
    assert ORACLE.hint(timeline, state)["tool"] == "declare_infeasible"


def test_a_hint_ends_with_finish_and_speaks_the_truth_of_it():
    of = surfing.instance("stay/book", 2, 3)
    timeline = surfing.timeline(of)
    done = ended("stay/book")
    hint = ORACLE.hint(timeline, done)
    assert hint == {"tool": "finish", "arguments": {"answer": "done", "p": 1.0}}
    spoilt = changed_row(done, "rooms", done.tables[0].rows[0][0], "name", "Shed")
    assert ORACLE.hint(timeline, spoilt)["arguments"]["p"] == 0.0


def test_looking_about_is_accepted_once_and_only_on_the_way():
    state = ended("stay/book")
    start = fresh(state.world)
    there = msgspec.structs.replace(start, visited=frozenset({"list:rooms"}))
    astray = msgspec.structs.replace(start, visited=frozenset({"list:bookings"}))
    assert ORACLE.accepts(start, {}, there)
    assert not ORACLE.accepts(start, {}, astray)
    assert not ORACLE.accepts(there, {}, there)


def test_a_control_that_comes_right_is_accepted():
    site = msgspec.structs.replace(ended("stay/book"), page="flow:book/0")
    right = str(dict(site.world.spec.goal.values)["guest"])

    def seen(value):
        control = SimpleNamespace(ident="x", value=value, checked=None)
        return SimpleNamespace(site=site, controls=(control,))

    assert ORACLE.accepts(seen(""), {}, seen(right))
    assert not ORACLE.accepts(seen(""), {}, seen("nonsense"))


def test_propositions_have_a_truth_and_the_category_is_the_site():
    world = surfing.world("depot/buy", 2)
    kinds = {resolved.kind for resolved in ORACLE.propositions(world)}
    assert kinds == {"fact", "unit", "default"}
    assert ORACLE.categories(world) == ("depot",)
    facts = {
        ORACLE.propositions(surfing.world("depot/buy", 2, seed))[0].truth
        for seed in range(12)
    }
    assert facts == {True, False}
