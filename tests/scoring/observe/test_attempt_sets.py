"""Attempt sets on rows written by hand: which rows, whose part, what is at fault."""

from types import SimpleNamespace

import numpy as np
import pytest
from msgspec import structs
from scipy import stats

from owa_bench.canonical import sha256
from owa_bench.records.trace import Trace
from owa_bench.scoring.observe import attempt_sets
from owa_bench.scoring.observe.attempt_sets import (
    REVISION,
    RevisionEvidence,
    human_part,
    morning_digest,
    own_controls,
    read_sets,
    set_rows,
)
from owa_bench.scoring.observe.observables import observe
from tests.builders.attempt_sets import GAIN, change, practice, sets
from tests.builders.columns import Columns
from tests.builders.episodes import PRICES, plan_of

EMPTY = sha256(b"")
WINDOW = (1, 3)


def rows(**columns):
    """Return five episodes, with changes."""
    fields = {
        "index": np.arange(5),
        "day": np.array([0, 1, 2, 3, 4]),
        "since": np.ones(5, int),
        "condition": np.full(5, "after"),
        "phase": np.full(5, "practice"),
        "pair": np.array(["a", "b", "c", "d", "e"]),
        "family": np.array(["s/f", "s/f", "s/f", "s/g", "s/g"]),
        "q": np.array([0.1, 0.3, 0.5, 0.7, 0.9]),
        "interventions": np.zeros(5, int),
        "memory": np.array(["m0", "m1", "m2", "m3", "m4"]),
        "helped": np.zeros(5, int),
        "cost_human": np.zeros(5),
        "patched": np.zeros(5, int),
        "fingerprint": np.full(5, "f"),
    }
    return Columns(**fields | columns)


def at(place, value=1, count=5):
    """Return a column of zeros with one value at a place."""
    return np.where(np.arange(count) == place, value, 0)


def test_a_bound_is_a_quantile_of_t_with_a_degree_of_freedom_at_least():
    for freedom, used in ((0, 1), (1, 1), (9, 9)):
        found = RevisionEvidence(sets=(), freedom=freedom).reach(0.5, 0.95)
        assert found == pytest.approx(0.5 * stats.t.ppf(0.95, used))
    none = RevisionEvidence(sets=())
    assert none.freedom == 0
    assert np.isnan([none.raw, none.gated, none.error, none.gated_error]).all()


def test_controls_are_arms_of_the_same_agent():
    def arm(agent, fingerprint="f", *, frozen=False, placebo=False):
        return SimpleNamespace(agent=agent, fingerprint=fingerprint, frozen=frozen, placebo=placebo)

    own = arm("agent")
    frozen, placebo = arm("agent", frozen=True), arm("agent", placebo=True)
    others = arm("other", frozen=True), arm("agent", "g", placebo=True)
    plan = SimpleNamespace(arms=(own, frozen, *others, placebo))
    assert own_controls(plan, own) == (frozen, placebo)


def test_a_set_is_played_on_the_morning_that_ends_its_window():
    table = rows(
        since=np.array([1, 1, 1, 0, 1]),
        day=np.array([3, 3, 2, 3, 3]),
        condition=np.array(["after", "before", "after", "after", "after"]),
    )
    assert np.flatnonzero(set_rows(table, "after", WINDOW)).tolist() == [0, 4]


def test_pairs_that_every_set_holds_equally_often_count():
    parts = {
        "one": Columns(pair=np.array(["a", "b", "b", "c", "d"])),
        "two": Columns(pair=np.array(["d", "c", "c", "b", "b"])),
    }
    assert attempt_sets._common_pairs(parts) == ("b", "d")
    assert attempt_sets._common_pairs({}) == ()
    part = Columns(pair=np.array(["b", "a", "b"]), q=np.array([0.2, 0.5, 0.4]))
    found = attempt_sets._by_pair(part, ("a", "b"))
    assert found == pytest.approx([0.5, 0.3])


def test_capability_before_a_window_is_that_of_unaided_checkpoints():
    table = rows(
        phase=np.array(["checkpoint"] * 4 + ["practice"]),
        day=np.array([0, 0, 1, 0, 0]),
        interventions=np.array([0, 0, 0, 3, 0]),
    )
    families = ("s/f", "s/g")
    found = attempt_sets._earlier(table, families, 1)
    assert found[0] == pytest.approx(0.2)
    assert np.isnan(found[1])
    assert attempt_sets._earlier(table, families, 2)[0] == pytest.approx(0.3)


def test_the_memory_of_a_morning_is_that_of_the_last_practice_before():
    assert [morning_digest(rows(), day) for day in (0, 1, 3, 9)] == [EMPTY, "m0", "m2", "m4"]


def revisions(*events, **columns):
    """Return practice with revision events of (row, decision)."""
    table = rows(**columns)
    table.revisions = SimpleNamespace(
        row=np.array([row for row, _ in events], dtype=int),
        decision=np.array([decision for _, decision in events]),
    )
    return table


@pytest.mark.parametrize(
    ("events", "stages"),
    [
        ((), (False, False)),
        (((1, "proposed"), (2, "adopted")), (True, True)),
        (((2, "proposed"), (1, "adopted")), (True, False)),
        (((1, "proposed"), (1, "adopted")), (True, False)),
        (((1, "proposed"), (2, "rejected")), (True, False)),
        (((0, "proposed"), (2, "adopted")), (True, False)),  # said before the window
        (((1, "proposed"), (3, "adopted")), (True, False)),  # adopted after it
        (((3, "proposed"), (3, "adopted")), (False, False)),
    ],
)
def test_a_check_lies_between_the_first_proposal_and_the_adoption(events, stages):
    """Practice of days 1 and 2 is inside the window."""
    found = attempt_sets._stages(revisions(*events), WINDOW, np.array([0, 1]))
    assert found == (stages[0], True, stages[1])


def test_lines_that_changed_are_implemented():
    for lines, implemented in (([], False), ([0], False), ([0, 1], True)):
        found = attempt_sets._stages(revisions(), WINDOW, np.array(lines, dtype=int))
        assert found.implemented == implemented


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({}, ""),
        ({"helped": at(1)}, "help in 1 practice episodes"),
        ({"cost_human": at(2, 1.0)}, "help in 1 practice episodes"),
        ({"helped": at(1), "cost_human": at(2, 5.0)}, "help in 2 practice episodes"),
        ({"patched": at(3)}, "a human patch"),
        (
            {"fingerprint": np.array(["f", "f", "g", "f", "f"])},
            "the agent's files changed between days",
        ),
    ],
)
def test_the_part_of_humans_is_named(columns, words):
    assert human_part(rows(**columns)) == words


def played(**changes):
    """Return the parts of sound sets of two pairs, indices 10 to 21."""
    parts = {}
    for place, name in enumerate((*REVISION, "placebo")):
        memory = {"before": "m0", "after": "m2"}.get(name, "m9")
        parts[name] = Columns(
            index=np.array([10, 11]) + 2 * place,
            pair=np.array(["h0", "h1"]),
            phase=np.full(2, "holdout"),
            memory=np.full(2, memory),
        )
    parts["ablated"].changes = SimpleNamespace(
        row=np.array([0, 1]),
        before=np.full(2, "m0"),
        after=np.full(2, "m2"),
        played=np.full(2, "m9"),
    )
    for name, columns in changes.items():
        vars(parts[name]).update(columns)
    return parts


def entries(**changes):
    """Return the plan of those sets, and of the practice before them."""
    terms = {"interventions": 0, "role_cap": None, "muted": False, "tools_off": ()}
    sets = [
        SimpleNamespace(index=i, pair=f"h{i % 2}", condition="set", world_day=3, **terms)
        for i in range(10, 22)
    ]
    practice = [
        SimpleNamespace(index=i, pair=f"x{i}", condition="", world_day=i, **terms) for i in range(5)
    ]
    for index, columns in changes.get("at", {}).items():
        vars([*practice, *sets][index if index < 5 else index - 5]).update(columns)
    return SimpleNamespace(entries=(*practice, *sets))


def faults(parts, plan=None, practice=None):
    practice = rows() if practice is None else practice
    return list(attempt_sets._faults(plan or entries(), parts, practice, WINDOW))


def test_sound_sets_have_no_fault_and_one_law():
    assert faults(played()) == []
    assert attempt_sets._one_law(entries(), played())
    assert not attempt_sets._one_law(entries(at={12: {"world_day": 1}}), played())


@pytest.mark.parametrize("gone", REVISION)
def test_a_set_that_lacks_is_named(gone):
    parts = {name: part for name, part in played().items() if name != gone}
    assert faults(parts) == [f"no attempts of the sets {gone}"]


@pytest.mark.parametrize("index", [10, 15, 21])
@pytest.mark.parametrize(
    "terms", [{"interventions": 1}, {"role_cap": 2}, {"muted": True}, {"tools_off": ("a",)}]
)
def test_sets_on_other_budgets_are_named(index, terms):
    plan = entries(at={index: terms})
    assert faults(played(), plan) == ["the sets were not played on equal budgets"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"after": {"phase": np.array(["holdout", "practice"])}}, "holdout phase"),
        (
            {"before": {"memory": np.array(["m0", "m1"])}},
            "the set before did not begin with the memory of its morning",
        ),
        (
            {"after": {"memory": np.array(["m2", "m3"])}},
            "the set after did not begin with the memory of its morning",
        ),
        (
            {"ablated": {"memory": np.array(["m9", "m2"])}},
            "the set ablated did not begin with the reverted memory",
        ),
        ({"before": {"index": np.array([2, 10])}}, None),
        (
            {"before": {"index": np.array([1, 10])}},
            "a set was played before the practice of its window was over",
        ),
    ],
)
def test_each_fault_has_words(changes, words):
    """Practice of days 0 to 2 has the indices 0 to 2."""
    found = faults(played(**changes))
    if words is None:
        assert found == []
    else:
        assert len(found) == 1
        assert words in found[0]


@pytest.mark.parametrize(
    ("column", "values"),
    [("row", np.array([0])), ("before", np.array(["m0", "m1"])), ("after", np.array(["m2", "m1"]))],
)
def test_an_ablation_that_does_not_say_what_it_reverts_is_named(column, values):
    parts = played()
    setattr(parts["ablated"].changes, column, values)
    assert faults(parts) == ["the set ablated does not say what was reverted"]


def test_a_pair_of_the_holdout_that_was_played_elsewhere_is_named():
    plan = entries(at={4: {"pair": "h1"}})
    assert faults(played(), plan) == ["a pair of the holdout was played elsewhere"]
    silent = rows().take(np.zeros(5, bool))
    memory = {"memory": np.full(2, EMPTY)}
    parts = played(before=memory, after=memory)
    parts["ablated"].changes.before = np.full(2, EMPTY)
    parts["ablated"].changes.after = np.full(2, EMPTY)
    assert faults(parts, practice=silent) == []


def test_a_window_holds_its_sets_and_the_practice_before_its_end():
    """Help on the day of practice that begins the morning after does not count."""
    helps = {"interventions": 2, "hints_after": (1,)}
    traces = [
        *practice(3),
        *practice(1, first=3, said=False, **helps),
        *sets(GAIN, tasks=2, noise=0.0, shown=change(3, families=("ocr",))),
    ]
    late = traces[3]
    start = structs.replace(late.start, day=3, pair="practice/3")
    traces[3] = Trace(late.leaf, (start, *late.events[1:]))
    plan = plan_of(traces, battery=None)
    arm = next(arm for arm in plan.arms if arm.name == "agent")
    table = observe(iter(traces), PRICES)
    (found,) = read_sets(plan, arm, table, ("toolquest/other", "toolquest/reconcile"))
    assert (found.window, found.fault, found.human) == ((0, 3), "", "")
    assert found.family.tolist() == [1, 1]
    assert {name: q.tolist() for name, q in found.q.items()} == {
        name: [pytest.approx(0.9 * mean + 0.1)] * 2 for name, mean in GAIN.items()
    }  # a tenth of quality is the forecast, which was right
    assert (found.lines, found.installed, found.one_law) == (3, ("ocr",), True)
    assert found.attempts["after"] == ("001002.0", "001003.0")
    other = next(arm for arm in plan.arms if arm.placebo)
    assert read_sets(plan, other, table, ("toolquest/reconcile",)) == ()
