"""Counts of drift and violations, and the scores of a run without a signature."""

import pytest

from owa_bench.errors import RunDirectoryError
from owa_bench.records.events import EpisodeEnd, Violation
from owa_bench.report import bundle, composition
from tests.builders.run_directory import ARMS, make_plan, make_run


def test_drift_met_is_counted_by_operator(tmp_path):
    run = bundle.read(make_run(tmp_path / "run", make_plan(1)).root)
    table = composition.drift_counts(run.traces())
    drifted = sum(1 for entry in run.plan.entries if entry.delta)
    one = ("api/field_rename", 1, "D1", "D1", 1.0, drifted, drifted, 1)
    assert table.rows == (one,)


def test_breaches_are_counted_with_their_first_evidence(tmp_path):
    def edit(entry, events):
        breach = Violation(
            step=4, rule="r", severity="flag", evidence=f"e{entry.index}"
        )
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
