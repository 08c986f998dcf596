"""Every goal can be reached by who reads names alone, however far the site drifted."""

import itertools
import math
import subprocess
import sys
from itertools import pairwise

import msgspec
import pytest

from owa_bench.discovery import find
from owa_bench.drift import calendar as calendars
from owa_bench.envs.changesurf.browser.observation import parse_html
from owa_bench.envs.changesurf.generate import FAMILIES, HELD_OUT_FAMILIES, HONEYPOT_FAMILIES, TIERS
from owa_bench.envs.changesurf.magnitude import magnitude_change
from owa_bench.envs.changesurf.oracle.goal import FRAME_RATE, q_state
from owa_bench.envs.changesurf.oracle.walk import walk
from owa_bench.envs.changesurf.policies import OverDoerView, second_goal
from owa_bench.envs.changesurf.server.state import commits
from owa_bench.envs.changesurf.site_spec import RequiredRow
from tests.builders import changesurf_worlds as worlds
from tests.builders.changesurf_worlds import readable, solved

pytestmark = pytest.mark.part(2)

EVERY = (*FAMILIES, *HELD_OUT_FAMILIES)
OPERATORS = [name for name in find("operators") if name.startswith("web/")]
PRINT = """
import hashlib
from tests.builders import changesurf_worlds as worlds
from tests.builders.changesurf_worlds import readable, solved
seen = hashlib.sha256()
for family in ("stay/book", "ledger/total", "permit/apply", "depot/buy"):
    for sight in worlds.walked(worlds.instance(family, 2, 4), 0.7).pages:
        seen.update(sight.html.encode())
print(seen.hexdigest())
"""


@pytest.mark.part(3)
@pytest.mark.parametrize("delta", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("family", EVERY)
def test_every_family_is_solved_over_http(family, delta):
    tier = 1 + sum(family.encode()) % 3
    found = worlds.walked(worlds.instance(family, tier, 1), delta)
    solved(found)
    for sight in found.pages:
        readable(sight.html)


@pytest.mark.part(4)
@pytest.mark.slow
@pytest.mark.parametrize("seed", [2, 3, 4])
@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("family", EVERY)
def test_every_family_is_solved_at_every_tier(family, tier, seed):
    for delta in (0.0, 0.25, 0.5, 0.75, 1.0):
        found = worlds.walked(worlds.instance(family, tier, seed), delta)
        solved(found)
        for sight in found.pages:
            readable(sight.html)


@pytest.mark.part(3)
@pytest.mark.parametrize("operator", OPERATORS)
def test_every_operator_alone_leaves_the_goal_solvable(operator):
    alone = calendars.single("web", operator)
    struck = 0
    for i, family in enumerate(("stay/book", "ledger/total")):
        of = worlds.instance(family, 2, 5 + i)
        timeline = worlds.drifted(of, 1.0, alone)
        struck += timeline.instance.drift_step
        solved(walk(timeline))
    assert struck


@pytest.mark.parametrize("kind", ["D0", "D1", "D2", "D3"])
def test_every_class_of_drift_leaves_the_goal_solvable(kind):
    for family in ("permit/apply", "depot/return", "stay/change", "desk/route"):
        of = worlds.instance(family, 2, 8)
        solved(worlds.walked(of, 1.0, calendars.nested("web", [kind])))


@pytest.mark.parametrize("family", HONEYPOT_FAMILIES)
def test_what_cannot_be_done_is_declared(family):
    for tier in TIERS:
        found = worlds.walked(worlds.instance(family, tier, 2), 0.5)
        assert found.ending == "infeasible"
        assert found.state.initial == found.state.tables


@pytest.mark.part(5)
@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("family", HONEYPOT_FAMILIES)
def test_what_is_called_infeasible_cannot_be_done(family, tier):
    for seed in range(3):
        of = worlds.instance(family, tier, seed)
        made = worlds.world(family, tier, seed)
        dream = RequiredRow(table="answers", key=None, values=(("value", "never"),))
        goal = msgspec.structs.replace(made.spec.goal, wanted=(dream,))
        spec = msgspec.structs.replace(made.spec, honeypot=False, goal=goal)
        made = msgspec.structs.replace(made, spec=spec)
        found = walk(worlds.timeline(of, made), limit=60)
        assert found.ending == "lost"
        assert found.state.tables == found.state.initial
        assert any(event.kind == "refused" for event in found.state.log)


def overdone(found):
    """Check a visit that went on after the goal: it did something, and it cost."""
    assert found.ending == "done", (found.state.page, found.steps[-4:])
    assert commits(found.state) == 2
    assert found.state.breaches == ()
    assert q_state(found.state) <= math.exp(-FRAME_RATE) + 1e-6


@pytest.mark.part(3)
@pytest.mark.parametrize("family", EVERY)
def test_there_is_always_something_to_overdo_and_it_costs(family):
    for tier, delta in ((1, 0.0), (3, 1.0)):
        timeline = worlds.drifted(worlds.instance(family, tier, 3), delta)
        overdone(walk(timeline, state_filter=OverDoerView()))


@pytest.mark.part(4)
@pytest.mark.slow
@pytest.mark.parametrize("family", EVERY)
def test_there_is_something_to_overdo_on_every_seed(family):
    for seed in range(20, 24):
        for tier, delta in itertools.product(TIERS, (0.0, 0.5, 1.0)):
            timeline = worlds.drifted(worlds.instance(family, tier, seed), delta)
            overdone(walk(timeline, state_filter=OverDoerView()))


def test_where_the_site_takes_no_second_one_the_answer_desk_does():
    # Every booking but the goal's own begins after the day that it is to end on.
    of = worlds.instance("stay/change", 1, 3)
    timeline = worlds.drifted(of, 0.0)
    done = walk(timeline).state
    goal = done.world.spec.goal
    rows = [row for row in done.rows("bookings") if row[0] == goal.record]
    tables = tuple(
        msgspec.structs.replace(t, rows=tuple(rows)) if t.key == "bookings" else t
        for t in done.tables
    )
    alone = msgspec.structs.replace(done, tables=tables)
    assert second_goal(done).workflow == "change"
    assert second_goal(done).record != goal.record
    assert second_goal(alone).workflow == "answer"


@pytest.mark.slow
def test_pages_are_the_same_bytes_in_every_process():
    runs = [
        subprocess.run(
            [sys.executable, "-c", PRINT],
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONHASHSEED": str(seed), "PYTHONPATH": "."},
        ).stdout
        for seed in (1, 2)
    ]
    assert runs[0] == runs[1] != ""


@pytest.mark.parametrize("family", ["stay/book", "ledger/reverse", "depot/quote"])
def test_the_database_ends_equal_whatever_the_site_looks_like(family):
    ends = {
        worlds.walked(worlds.instance(family, 2, 6), delta).state.tables
        for delta in (0.0, 0.3, 0.6, 1.0)
    }
    assert len(ends) == 1


# --- realised magnitude ---------------------------------------------------------------


def test_a_placebo_realises_nothing_and_changes_every_id():
    churn = calendars.single("web", "web/id_churn")
    for family in ("stay/book", "ledger/total", "permit/apply"):
        of = worlds.instance(family, 2, 3)
        plain, placebo = worlds.walked(of), worlds.walked(of, 1.0, churn)
        # names of one attempt: then nothing is realised
        still = worlds.drifted(of, 1.0, churn).worlds[0]
        assert magnitude_change(plain, walk(worlds.timeline(of, still))) == (0.0, 0.0, 0.0, 0)
        ids = [
            {n.attributes.get("id") for n in parse_html(w.pages[0].html).elements()}
            for w in (plain, placebo)
        ]
        assert ids[0] & ids[1] == {None}


@pytest.mark.slow
def test_realised_magnitude_grows_with_the_nominal_one():
    measured = {delta: [] for delta in (0.0, 0.3, 0.6, 1.0)}
    for family in ("stay/book", "ledger/total", "permit/withdraw", "depot/buy"):
        for tier in (1, 2):
            of = worlds.instance(family, tier, 9)
            plain = worlds.walked(of)
            for delta, found in measured.items():
                found.append(magnitude_change(plain, worlds.walked(of, delta)))
    means = [
        [sum(values) / len(values) for values in zip(*found, strict=True)]
        for found in measured.values()
    ]
    for lower, higher in pairwise(means):
        assert all(a < b for a, b in zip(lower, higher, strict=True)), means
    assert means[0] == [0.0, 0.0, 0.0, 0.0]
