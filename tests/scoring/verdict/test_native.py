"""Native suites beside the axes: their table by hand, and what a verdict keeps."""

import msgspec
import pytest

from owa_bench.records.score import AgentVerdict
from owa_bench.records.trace import Trace
from owa_bench.scoring.novelty.trials import ArmTrial, TrialEpisode
from owa_bench.scoring.observe.observables import observe
from owa_bench.scoring.pipeline import judge
from owa_bench.scoring.verdict.native import NativeResults, with_native
from tests.builders.episodes import PRICES, PROTOCOL, ROOT, episode, plan_of


def played(arm: str, qualities: list[float], start: int) -> list[Trace]:
    return [
        episode(
            index=start + i,
            arm=arm,
            suite="pole",
            family="gentle",
            pair=f"pole/{i}",
            q_state=q,
            verified=10 + i,
        )
        for i, q in enumerate(qualities)
    ]


def trial(arm: str) -> ArmTrial:
    episodes = tuple(
        TrialEpisode(i, 0.8 if i < 2 else 0.4, float(i >= 2), 0.5, i >= 2, True) for i in range(7)
    )
    return ArmTrial(arm, "trial/0", "gentle T1", episodes)


def extended(
    *, alone: bool = True, trials: tuple[ArmTrial, ...] = (), native: bool = True
) -> tuple[AgentVerdict, AgentVerdict]:
    """Return the second arm's verdict before and after."""
    traces = [*played("first", [0.5, 0.7], 0), *played("second", [0.6, 1.0, 0.2], 2)]
    if not alone:
        traces.append(episode(index=5, arm="second", pair="other"))
    plan = plan_of(traces)
    suites = tuple(
        msgspec.structs.replace(suite, native=native and suite.name == "pole")
        for suite in plan.suites
    )
    plan = msgspec.structs.replace(plan, suites=suites)
    before = judge(
        plan_of(traces), traces, PROTOCOL, PRICES, evidence_root="", replay_root=ROOT
    ).verdicts[1]
    results = NativeResults(plan, observe(traces, PRICES), trials)
    return before, with_native(before, results)


def test_performance_by_level_beside_the_first_arm() -> None:
    before, after = extended()
    table = next(t for t in after.tables if t.title == "performance by level")
    (row,) = table.rows
    assert row[:4] == ("pole/gentle", 1, 0.0, 3)
    # .6, 1 and .2: mean .6, deviation .4; .1 and .3 above the first arm's pairs.
    assert row[4] == pytest.approx(0.6)
    assert row[5] == pytest.approx(0.4 / 3**0.5, abs=1e-6)
    assert row[6] == pytest.approx(0.2)
    assert row[7] == pytest.approx(0.02**0.5 / 2**0.5, abs=1e-6)
    assert row[8] == 11.0
    assert after.counted == before.counted + 3
    assert after.infrastructure == before.infrastructure - 3
    assert after.cost_micro_usd["agent"] == 3 * 1000  # the first arm's two are its own


def test_a_run_of_native_suites_alone_has_no_axes_and_no_level() -> None:
    _, after = extended()
    assert (after.level, after.axes, after.gates, after.provisional) == (None, (), (), False)
    assert [t.title for t in after.tables] == ["performance by level"]
    assert len(after.warnings) == 1


def test_beside_other_suites_the_axes_stay() -> None:
    before, after = extended(alone=False)
    assert after.axes == before.axes
    assert after.tables[:-1] == before.tables
    assert after.warnings[:-1] == before.warnings


def test_a_run_without_native_suites_is_left_as_it_is() -> None:
    before, after = extended(native=False)
    assert after == before


def test_trials_add_a_table_and_the_arms_own_curve() -> None:
    _, after = extended(trials=(trial("first"), trial("second")))
    assert [t.title for t in after.tables][1:] == ["novelty (SAIL-ON)"]
    (curve,) = after.curves
    assert curve.x == (-2.0, -1.0, 0.0, 1.0, 2.0, 3.0, 4.0)
    assert curve.y == (0.8, 0.8, 0.4, 0.4, 0.4, 0.4, 0.4)
    assert curve.used == (0,) * 7
    _, lonely = extended(trials=(trial("second"),))
    table = lonely.tables[1]
    assert table.columns == ("why there are no novelty metrics",)


def test_one_episode_has_no_error_and_without_pairs_no_difference() -> None:
    traces = [*played("first", [], 0), *played("second", [0.25], 0)]
    first = episode(index=1, arm="first", suite="pole", family="gentle", pair="x")
    plan = plan_of([*traces, first])
    suites = (msgspec.structs.replace(plan.suites[0], native=True),)
    plan = msgspec.structs.replace(plan, suites=suites)
    before, _ = extended()
    results = NativeResults(plan, observe([*traces, first], PRICES), ())
    table = with_native(before, results).tables[0]
    assert table.rows[0][3:8] == (1, 0.25, None, None, None)
