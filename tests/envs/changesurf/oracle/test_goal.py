"""Mutations of a perfect visit: wrong, missing or too much scores below 1."""

from types import SimpleNamespace

import msgspec
import pytest

from owa_bench.drift import calendar as calendars
from owa_bench.envs.changesurf.generate import FAMILIES, HELD_OUT_FAMILIES
from owa_bench.envs.changesurf.oracle import goal
from owa_bench.envs.changesurf.oracle.goal import differences, missing_evidence
from owa_bench.envs.changesurf.oracle.oracle import ChangeSurfOracle
from owa_bench.envs.changesurf.server.state import initial_state
from owa_bench.envs.changesurf.site_spec import SiteTable
from tests.builders import changesurf_worlds as worlds
from tests.builders import goal_questions
from tests.builders.goal_questions import changed_row

EVERY = (*FAMILIES, *HELD_OUT_FAMILIES)
ORACLE = ChangeSurfOracle()


def visit(site):
    return SimpleNamespace(site=site, controls=())


def ended(family, tier=2):
    return worlds.walked(worlds.instance(family, tier, 3)).state


@pytest.mark.parametrize("family", EVERY)
def test_a_perfect_visit_is_worth_one_and_what_is_wrong_or_too_much_less(family):
    for tier in (1, 2, 3):
        assert goal_questions.faults(goal, ended(family, tier)) == []


def test_differences_name_every_row_once():
    old = (SiteTable(key="t", columns=("id", "x"), rows=(("a", 1), ("b", 2), ("c", 3))),)
    new = (SiteTable(key="t", columns=("id", "x"), rows=(("a", 1), ("b", 5), ("d", 4))),)
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
    assert ORACLE.solved(state.world, visit(state)) == set(names)
    assert ORACLE.solved(state.world, visit(initial_state(state.world))) == frozenset()


def test_evidence_is_missing_until_a_page_has_shown_it():
    state = ended("ledger/total")
    assert missing_evidence(state) == ()
    blind = msgspec.structs.replace(state, seen=frozenset())
    assert set(missing_evidence(blind)) == set(state.world.spec.goal.evidence)


def test_an_infeasible_goal_is_worth_nothing_and_hinted_as_such():
    of = worlds.instance("stay/book-honeypot", 2, 3)
    timeline = worlds.timeline(of)
    state = visit(initial_state(timeline.worlds[0]))
    assert ORACLE.quality(timeline, state) == 0.0
    assert ORACLE.hint(timeline, state)["tool"] == "declare_infeasible"


def test_a_hint_ends_with_finish_and_speaks_the_truth_of_it():
    of = worlds.instance("stay/book", 2, 3)
    timeline = worlds.timeline(of)
    done = ended("stay/book")
    hint = ORACLE.hint(timeline, visit(done))
    assert hint == {"tool": "finish", "arguments": {"answer": "done", "p": 1.0}}
    spoilt = changed_row(done, "rooms", done.tables[0].rows[0][0], "name", "Shed")
    assert ORACLE.hint(timeline, visit(spoilt))["arguments"]["p"] == 0.0


def test_looking_about_gains_once_and_only_on_the_way():
    state = ended("stay/book")
    start = initial_state(state.world)
    there = msgspec.structs.replace(start, visited=frozenset({"list:rooms"}))
    astray = msgspec.structs.replace(start, visited=frozenset({"list:bookings"}))
    assert ORACLE.gained(visit(start), {}, visit(there)) == {"page list:rooms"}
    assert not ORACLE.gained(visit(start), {}, visit(astray))
    assert not ORACLE.gained(visit(there), {}, visit(there))


def test_a_control_that_comes_right_gains_its_text():
    site = msgspec.structs.replace(ended("stay/book"), page="flow:book/0")
    right = str(dict(site.world.spec.goal.values)["guest"])

    def seen(value):
        control = SimpleNamespace(ident="x", value=value, checked=None)
        return SimpleNamespace(site=site, controls=(control,))

    assert ORACLE.gained(seen(""), {}, seen(right)) == {f"text {right}"}
    assert not ORACLE.gained(seen(""), {}, seen("nonsense"))


def listed(world):
    """Return the propositions of an episode that this world is the only one of."""
    return ORACLE.propositions(SimpleNamespace(worlds=(world,)))


def test_propositions_have_a_truth_and_the_kind_of_tool_is_the_browser():
    world = worlds.world("depot/buy", 2)
    kinds = {resolved.kind for resolved in listed(world)}
    assert kinds == {"fact", "unit", "default"}
    assert ORACLE.categories(world) == ("browser",)
    facts = {listed(worlds.world("depot/buy", 2, seed))[0].truth for seed in range(12)}
    assert facts == {True, False}


@pytest.mark.parametrize(
    ("kind", "operator"),
    [("unit", "silent_units"), ("unit", "units"), ("default", "default_value")],
)
def test_what_drift_made_true_is_true(kind, operator):
    calendar = calendars.single("web", f"web/{operator}")
    truths = set()
    for seed in range(8):
        of = worlds.instance("depot/buy", 2, seed)
        base = worlds.world("depot/buy", 2, seed)
        [asked] = [p for p in base.spec.propositions if p.kind == kind]
        [drifted] = worlds.drifted(of, 1.0, calendar).worlds
        plain, now = (next(r.truth for r in listed(w) if r.kind == kind) for w in (base, drifted))
        assert not plain
        truths.add(now)
        if kind == "unit":
            assert now == drifted.plan.listing(asked.subject[0]).cents
    assert True in truths
