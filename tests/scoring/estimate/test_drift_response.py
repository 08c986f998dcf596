"""Dose and response by hand: whom a curve counts, what a pair is, what stays out."""

import msgspec
import pytest

from owa_bench.records.events import RealisedDrift
from owa_bench.records.score import AgentVerdict, CellTable
from owa_bench.records.trace import Trace
from owa_bench.scoring.estimate import drift_response
from owa_bench.scoring.estimate.drift_response import BY_CLASS, BY_GROUP
from owa_bench.scoring.pipeline import judge
from tests.builders.episodes import PRICES, PROTOCOL, ROOT, drift, episode, plan_of

GROUPS = (("DOM", ("web/depth",)), ("Label", ("web/synonym",)))
PAIRS = ("a", "b", "c")


def surf(pair, delta, q_state, *, calendar="", operators=(), measures=(), more=(), **changes):
    extra = (RealisedDrift(step=1, measures=measures),) if measures else ()
    return episode(
        suite="changesurf",
        family="stay/find",
        pair=pair,
        delta=delta,
        q_state=q_state,
        stated=None,
        calendar=calendar,
        operators=operators,
        classes=tuple("D1" for _ in operators),
        extra=(*extra, *more),
        **changes,
    )


def numbered(traces):
    made = []
    for index, trace in enumerate(traces):
        start = msgspec.structs.replace(trace.start, index=index)
        leaf = msgspec.structs.replace(trace.leaf, index=index, attempt_id=f"{index:06d}.0")
        made.append(Trace(leaf, (start, *trace.events[1:])))
    return made


def judged(traces, groups=GROUPS) -> AgentVerdict:
    made = numbered(traces)
    plan = plan_of(made, battery=None, groups=groups)
    found = judge(plan, made, PROTOCOL, PRICES, evidence_root="e", replay_root=ROOT)
    return found.verdicts[0]


def table(verdict, title) -> CellTable:
    return next(t for t in verdict.tables if t.title.startswith(title))


def rows(verdict, title):
    """Return rows by (drift, magnitude), each a mapping from column to cell."""
    found = table(verdict, title)
    made = [dict(zip(found.columns, row, strict=True)) for row in found.rows]
    return {(row["drift"], row["magnitude"]): row for row in made}


def q(q_state):
    """Quality of an episode that stated no p, at q_state 1 and below theta."""
    return 0.9 * q_state + 0.1 * 0.75


@pytest.fixture(scope="module")
def verdict():
    met = {"operators": ("web/synonym",), "measures": (("tree", 0.25), ("steps", 2.0))}
    return judged(
        [
            *(surf(pair, 0.0, 1.0) for pair in PAIRS),
            surf("a", 0.5, 0.0, **met),
            surf("b", 0.5, 1.0, **met),
            surf("c", 0.5, 1.0, operators=("web/depth",)),
            *(surf(p, 1.0, 0.0, operators=("web/depth",)) for p in PAIRS),
            *(surf(p, 1.0, 0.5, calendar="nested:DOM") for p in PAIRS),
            *(surf(p, 1.0, 1.0, calendar="single:web/churn") for p in PAIRS),
        ]
    )


def test_a_class_played_alone_is_shown_alone(verdict):
    found = rows(verdict, "quality by what drifted")
    assert found["DOM alone", 1.0]["episodes"] == 3
    assert found["DOM alone", 1.0]["Q"] == pytest.approx(q(0.5), abs=1e-6)
    assert found["DOM alone", 0.0]["Q"] == pytest.approx(q(1.0), abs=1e-6)
    assert ("DOM among others", 1.0) not in found
    assert found["churn alone", 1.0]["Q"] == pytest.approx(q(1.0), abs=1e-6)


def test_a_class_not_played_alone_is_shown_by_what_it_struck(verdict):
    found = rows(verdict, "quality by what drifted")
    one = found["Label among others", 0.5]
    assert (one["episodes"], one["tasks"]) == (2, 2)
    assert one["Q"] == pytest.approx((q(0.0) + q(1.0)) / 2, abs=1e-6)
    assert found["Label among others", 0.0]["tasks"] == 2  # a and b, not c
    assert found["all operators", 0.5]["episodes"] == 3
    assert found["D1 among others", 0.5]["episodes"] == 3
    assert ("D2 among others", 0.5) not in found


def test_realised_magnitude_is_the_mean_of_what_was_measured(verdict):
    found = rows(verdict, "quality by what drifted")
    one = found["Label among others", 0.5]
    assert (one["tree"], one["steps"], one["weight share"]) == (0.25, 2.0, 0.5)
    assert found["Label among others", 0.0]["tree"] == 0.0
    assert found["DOM alone", 1.0]["tree"] is None  # nobody measured


def test_pairs_are_the_same_task_clean_and_drifted(verdict):
    found = rows(verdict, "drifted against clean")
    one = found["all operators", 0.5]
    assert (one["pairs"], one["worse"], one["same"], one["better"]) == (3, 1, 2, 0)
    assert one["difference"] == pytest.approx((q(0.0) - q(1.0)) / 3, abs=1e-5)
    assert one["low"] < one["difference"] < one["high"]
    flat = found["churn alone", 1.0]
    assert flat["difference"] == 0.0
    assert flat["low"] < 0.0 < flat["high"]  # three equal pairs prove little
    assert flat["worse"] == flat["better"] == 0


def test_an_episode_without_a_clean_partner_is_in_no_pair():
    verdict = judged(
        [
            surf("a", 0.0, 1.0),
            surf("a", 1.0, 0.0, operators=("web/depth",)),
            surf("b", 1.0, 0.0, operators=("web/depth",)),
        ]
    )
    assert rows(verdict, "drifted against clean")["all operators", 1.0]["pairs"] == 1
    alone = judged([surf("b", 1.0, 0.0, operators=("web/depth",))])
    gaps = table(alone, "drifted against clean")
    assert gaps.rows == ()
    assert "draw magnitude 0" in gaps.note


def test_one_task_a_family_has_no_interval_and_says_so():
    found = judged([surf("a", 0.0, 1.0), surf("a", 1.0, 0.0)])
    shown = table(found, "quality by what drifted")
    assert {row[5] for row in shown.rows} == {None}
    assert "a family holds one task" in shown.note


def test_calendars_of_their_own_enter_no_axis(verdict):
    table_of = next(t for t in verdict.tables if t.title == "by magnitude")
    counts = {row[0]: row[1] for row in table_of.rows}
    assert (counts[0.0], counts[0.5], counts[1.0]) == (3, 3, 3)
    assert verdict.counted == 15  # they are paid for and counted all the same


def test_curves_stand_in_their_panels(verdict):
    panels = {}
    for curve in verdict.curves:
        panels.setdefault(curve.panel, []).append(curve.name)
    assert panels[BY_GROUP] == [
        *("all operators", "DOM alone", "Label among others", "churn alone")
    ]
    assert panels[BY_CLASS] == ["D1 among others"]
    assert panels[drift_response.GAPS][0] == "all operators"
    dom = next(c for c in verdict.curves if c.name == "DOM alone" and c.beside)
    assert dom.x == (0.0, 1.0)
    assert all(low <= y <= high for low, y, high in zip(dom.low, dom.y, dom.high, strict=True))


def test_a_suite_without_groups_has_no_doses():
    found = judged([surf("a", 0.0, 1.0), surf("a", 1.0, 0.0)], groups=())
    assert not [t for t in found.tables if "drifted" in t.title]
    assert not any(curve.panel for curve in found.curves)


def test_a_class_is_the_one_in_effect_not_the_announced_one():
    """Episodes under "nested:D1": one vendor told, one told nothing, one in part."""
    effective = {"a": ("D1", "D1"), "b": ("D3", "D3"), "c": ("D1", "D2")}
    traces = [surf(pair, 0.0, 1.0) for pair in PAIRS]
    for pair, classes in effective.items():
        extra = tuple(drift("web/depth", one, "D1") for one in classes)
        traces.append(surf(pair, 1.0, 0.5, calendar="nested:D1", more=extra))
    found = rows(judged(traces), "quality by what drifted")
    assert found["D1 alone", 1.0]["episodes"] == 1
    assert found["nested:D1", 1.0]["episodes"] == 3
    assert ("D3 alone", 1.0) not in found
