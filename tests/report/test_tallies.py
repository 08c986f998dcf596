from owa_bench.records.events import EpisodeEnd, Violation
from owa_bench.report import bundle, tallies
from tests.report.small_run import ARMS, make_plan, make_run


def test_drift_met_is_counted_by_operator(tmp_path):
    run = bundle.read(make_run(tmp_path / "run", make_plan(1)).root)
    table = tallies.drift(run.traces())
    drifted = sum(1 for entry in run.plan.entries if entry.delta)
    assert table.rows == (("api/field_rename", 1, "D1", 1.0, drifted, drifted, 1),)


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
    assert tallies.breaches(run.traces()).rows == (
        (ARMS[1], "r", "flag", episodes, 2 * episodes, "000001.0", "e1"),
    )


def test_nothing_met_says_so():
    assert tallies.drift(()).note
    assert tallies.breaches(()).rows == ()
