"""Counts of drift and violations, and the scores of a run without a signature."""

from types import SimpleNamespace

import msgspec
import pytest

from owa_bench.canonical import key_id
from owa_bench.errors import RunDirectoryError
from owa_bench.records.events import EpisodeEnd, Violation
from owa_bench.records.score import CellTable
from owa_bench.reports import composition
from owa_bench.reports.read import bundle
from tests.builders.episodes import drift
from tests.builders.run_directory import ARMS, make_plan, make_run


def test_drift_met_is_counted_by_operator(tmp_path):
    run = bundle.read(make_run(tmp_path / "run", make_plan(1)).root)
    table = composition.drift_counts(run.traces())
    drifted = sum(1 for entry in run.plan.entries if entry.delta)
    one = ("api/field_rename", 1, "D1", "D1", 1.0, drifted, drifted, 1)
    assert table.rows == (one,)


def test_breaches_are_counted_with_their_first_evidence(tmp_path):
    def edit(entry, events):
        breach = Violation(step=4, rule="r", severity="flag", evidence=f"e{entry.index}")
        cheats = entry.arm == ARMS[1]
        if not cheats:
            return events
        end = next(i for i, e in enumerate(events) if isinstance(e, EpisodeEnd))
        return [*events[:end], breach, breach, *events[end:]]

    run = bundle.read(make_run(tmp_path / "run", make_plan(1), edit=edit).root)
    episodes = len(run.plan.entries) // 2
    assert composition.violation_counts(run.traces()).rows == (
        (ARMS[1], "r", "flag", episodes, 2 * episodes, "000001.0", "e1"),
    )


def test_nothing_met_says_so():
    assert composition.drift_counts(()).note
    assert composition.violation_counts(()).rows == ()


def test_a_run_is_scored_by_arm_and_equal_to_itself(tmp_path):
    layout = make_run(tmp_path / "run", make_plan(1))
    found = composition.score(str(layout.root))
    assert set(found) == {arm.name for arm in make_plan(1).arms}
    verdict = next(iter(found.values()))
    values = {axis.symbol: axis.value for axis in verdict.axes}
    assert set(values) >= set("AGPMTRSEW$")
    assert composition.score(layout.root) == found


def test_no_run_is_named(tmp_path):
    with pytest.raises(RunDirectoryError):
        composition.score(tmp_path / "nothing")


def striking(attempt, *events):
    """Return a trace of some drift or violation events."""
    return SimpleNamespace(
        leaf=SimpleNamespace(attempt_id=attempt),
        start=SimpleNamespace(arm="a"),
        of=lambda kind: (event for event in events if isinstance(event, kind)),
    )


def test_an_operator_has_a_row_a_class_with_episodes_changes_and_targets():
    def strike(target, effective="D3", weight=1.0):
        one = drift("api/x", effective)
        return msgspec.structs.replace(one, target=target, weight=weight)

    traces = [
        striking("1", strike("t"), strike("t"), strike("u"), strike("t", weight=0.5)),
        striking("2", strike("t"), strike("v", "D1")),
    ]
    table = composition.drift_counts(traces)
    assert table.rows == (
        ("api/x", 1, "D1", "D1", 1.0, 1, 1, 1),
        ("api/x", 1, "D3", "D3", 0.5, 1, 1, 1),
        ("api/x", 1, "D3", "D3", 1.0, 2, 4, 2),
    )
    assert table.note == ""
    assert composition.drift_counts([striking("1")]).note.startswith("No drift struck")


def test_broken_rules_say_so_or_that_none_was():
    breach = Violation(step=1, rule="r", severity="flag", evidence="e")
    assert composition.violation_counts([striking("1", breach)]).note == ""
    none = composition.violation_counts([striking("1")])
    assert none.note.startswith("No rule of engagement")


@pytest.mark.parametrize(
    ("streams", "cost"),
    [
        ({"agent": 3, "human": 4, "evaluation": 9}, 7),
        ({"agent": 3}, None),
        ({"agent": None, "human": 4}, None),
        ({"agent": 3, "human": None}, None),
    ],
)
def test_an_arm_costs_what_agent_and_humans_cost(streams, cost):
    verdict = SimpleNamespace(arm="a", cost_micro_usd=streams)
    found = composition._costs(SimpleNamespace(verdicts=[verdict]))
    assert found == {"a": cost}


def facts(monkeypatch, plan, **changes):
    """Return the facts of a run of which no file is read."""
    monkeypatch.setattr(composition, "rating_tables", lambda _: ())
    monkeypatch.setattr(
        composition, "checklist_table", lambda *_: CellTable("checklist", (), (), "")
    )
    leaves = [
        SimpleNamespace(status=status)
        for status in ("complete", "infrastructure", "unfinished", "infrastructure")
    ]
    fields = {
        "plan": plan,
        "protocol": None,
        "norms": None,
        "registry": None,
        "leaves": leaves,
        "counting_leaves": (leaves[0], None),
        "due": plan.entries,
        "missing": (7, 8, 9),
    }
    return composition._facts(SimpleNamespace(**fields | changes), None)


def test_the_head_of_the_page_counts_attempts_by_how_they_ended(monkeypatch):
    plan = make_plan(1)
    found = facts(monkeypatch, plan)
    assert (found.planned, found.attempts, found.counted) == (24, 4, 1)
    assert (found.infrastructure, found.unfinished, found.without_attempt) == (2, 1, 3)
    assert found.suites == ("toolquest v1",)
    assert found.arms == tuple((a.name, a.agent, a.fingerprint) for a in plan.arms)
    assert found.key_id == key_id(bytes.fromhex(plan.public_key))
    assert found.verifier_nonce is None
    (suites,) = found.tables
    families = ", ".join(plan.suites[0].families)
    assert suites.rows == (("toolquest", 1, families, "1", 1.0, "0" * 16),)


def test_the_head_of_the_page_names_what_the_plan_has(monkeypatch):
    assert facts(monkeypatch, make_plan(1, public_key="")).key_id == ""
    given = facts(monkeypatch, make_plan(1, verifier_nonce="n"))
    assert given.verifier_nonce == "n"
    challenged = make_plan(1, challenger="ab" * 32, verifier_nonce="n")
    words = f"challenge of key {key_id(bytes.fromhex('ab' * 32))}, given after"
    monkeypatch.setattr(composition, "submission_words", lambda _: "plan 2 of a lab")
    assert facts(monkeypatch, challenged).verifier_nonce.startswith(words)
    assert facts(monkeypatch, challenged).verifier_nonce.endswith("plan 2 of a lab")
    battery = facts(monkeypatch, make_plan(1, battery="toolquest"))
    assert [table.title for table in battery.tables] == ["suites", "checklist"]
    norms = CellTable("norms", (), (), "")
    monkeypatch.setattr(composition, "norm_tables", lambda *_: (norms,))
    with_norms = facts(monkeypatch, make_plan(1), norms="norms")
    assert with_norms.tables[1:] == (norms,)


@pytest.mark.parametrize(
    ("days", "simulated", "shown"),
    [((0, 0), True, False), ((0, 3), True, True), ((None, 3), True, True), ((0, 3), False, False)],
)
def test_days_are_simulated_where_any_entry_has_one(monkeypatch, days, simulated, shown):
    plan = make_plan(1, simulated_days=simulated)
    entries = tuple(
        msgspec.structs.replace(entry, day=day)
        for entry, day in zip(plan.entries[:2], days, strict=True)
    )
    plan = msgspec.structs.replace(plan, entries=entries)
    assert facts(monkeypatch, plan).simulated_days is shown
